package stream

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// pollAnswer is the body of a long-poll.
type pollAnswer struct {
	Events []json.RawMessage `json:"events"`
	// Cursor is the position of the next request.
	Cursor string `json:"cursor"`
	// Reset: the position of this request is of no use, take a snapshot. Reason is
	// null otherwise.
	Reset  bool               `json:"reset"`
	Reason *ports.ResetReason `json:"reason"`
}

// servePoll answers at once when there are events, else with the first that come
// within the wait, else with none.
func (h *Hub) servePoll(w http.ResponseWriter, r *http.Request, req StreamRequest, q query) error {
	req.Auth = nil // the next request is the next check
	out := &poll{limit: q.limit, wait: q.wait, position: q.cursor}
	if err := h.follow(r.Context(), req, q, out); err != nil {
		return err
	}
	if r.Context().Err() != nil {
		return nil
	}
	if out.failed {
		return fmt.Errorf("long-poll: %w", ports.ErrUnavailable)
	}
	body, err := json.Marshal(out.answer())
	if err != nil {
		return fmt.Errorf("encode a long-poll: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Now().Add(h.cfg.WriteTimeout)) // not every writer has deadlines
	if _, err := w.Write(append(body, '\n')); err != nil {
		h.stats.writeErrors.Add(1)
		h.cfg.Logger.Debug("stream: connection cut", "error", err)
	}
	return nil
}

// poll collects the answer of one long-poll.
type poll struct {
	limit    int
	wait     time.Duration
	timer    *time.Timer
	frames   []*frame
	position domain.Cursor
	notice   *resetNotice
	failed   bool
}

func (o *poll) start(at domain.Cursor, _ bool) error {
	o.position = at
	return nil
}

// events ends the poll with the first events; what exceeds the limit is left for
// the next one.
func (o *poll) events(frames []*frame, at domain.Cursor) error {
	o.frames, o.position = frames, at
	if len(frames) > o.limit {
		o.frames = frames[:o.limit]
		o.position = o.frames[o.limit-1].cursor
	}
	return errDone
}

func (o *poll) caughtUp(at domain.Cursor) error {
	o.position = at
	if o.wait == 0 {
		return errDone
	}
	o.timer = time.NewTimer(o.wait)
	return nil
}

func (o *poll) reset(n resetNotice) error {
	o.notice, o.position = &n, n.head
	return errDone
}

func (o *poll) tick() <-chan time.Time { return o.timer.C }

func (o *poll) ticked(at domain.Cursor) error {
	o.position = at
	return errDone
}

// end of a long-poll is an answer without events; only a failed read is told.
func (o *poll) end(c Close, _ domain.Cursor) error {
	o.failed = c == closeUnavailable
	return nil
}

func (o *poll) answer() pollAnswer {
	a := pollAnswer{Events: make([]json.RawMessage, len(o.frames)), Cursor: o.position.String()}
	for i, f := range o.frames {
		a.Events[i] = f.data
	}
	if o.notice != nil {
		a.Reset, a.Reason = true, &o.notice.reason
	}
	return a
}

var (
	_ sink = (*poll)(nil)
	_ sink = (*sse)(nil)
)
