package stream

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// sse writes Server-Sent Events.
type sse struct {
	cfg Config
	w   http.ResponseWriter
	rc  *http.ResponseController
	req StreamRequest
	// head: the response head is out; proven: the position is known to be good;
	// caught: the history is written.
	head, proven, caught bool
	// ended: the newest news of the filtered task is its end.
	ended     bool
	heartbeat *time.Timer
}

func newSSE(cfg Config, w http.ResponseWriter, req StreamRequest) *sse {
	return &sse{cfg: cfg, w: w, rc: http.NewResponseController(w), req: req}
}

func (o *sse) stop() {
	if o.heartbeat != nil {
		o.heartbeat.Stop()
	}
	_ = o.rc.SetWriteDeadline(time.Time{}) // the connection may serve another request
}

// writeChunk bounds what one write deadline has to cover.
const writeChunk = 32 << 10

// deadline is for the operating system, so it is the real clock.
func (o *sse) deadline() error {
	err := o.rc.SetWriteDeadline(time.Now().Add(o.cfg.WriteTimeout))
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (o *sse) flush() error {
	err := o.rc.Flush()
	if errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return err
}

func (o *sse) send(text string) error {
	if err := o.writeHead(); err != nil {
		return err
	}
	if err := o.deadline(); err != nil {
		return err
	}
	if _, err := io.WriteString(o.w, text); err != nil {
		return err
	}
	return o.flush()
}

// padding makes proxies that collect the first kilobytes pass the stream on.
var padding = ":" + strings.Repeat(" ", 2048) + "\n\n"

// writeHead sends the response head, the padding and the reconnect time, once.
func (o *sse) writeHead() error {
	if o.head {
		return nil
	}
	o.head = true
	streamHeaders(o.w.Header())
	o.w.WriteHeader(http.StatusOK)
	if err := o.deadline(); err != nil {
		return err
	}
	_, err := io.WriteString(o.w, padding+retryLine(o.cfg.between(2*time.Second, 5*time.Second))+"\n")
	return err
}

// streamHeaders are those of specification 12.9.3: no proxy may collect, keep or
// change the stream.
func streamHeaders(header http.Header) {
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-cache, no-transform")
	header.Set("Connection", "keep-alive")
	header.Set("X-Accel-Buffering", "no")
}

func retryLine(d time.Duration) string {
	return "retry: " + strconv.FormatInt(d.Milliseconds(), 10) + "\n"
}

// start sends the position alone where the client has none, so that even one that
// sees no event comes back to where it began.
func (o *sse) start(at domain.Cursor, proven bool) error {
	o.ended = o.req.overAt(at)
	o.heartbeat = time.NewTimer(o.cfg.spread(o.cfg.Heartbeat, 0.2))
	o.proven = proven
	if !proven {
		return o.send("")
	}
	return o.send("id: " + at.String() + "\n\n")
}

// events writes the shared frames as they are.
func (o *sse) events(frames []*frame, at domain.Cursor) error {
	o.proven = true
	for len(frames) > 0 {
		if err := o.deadline(); err != nil {
			return err
		}
		size := 0
		for len(frames) > 0 && size < writeChunk {
			n, err := o.w.Write(frames[0].sse)
			if err != nil {
				return err
			}
			size += n
			o.ended = o.req.filtered() && frames[0].terminal
			frames = frames[1:]
		}
		if err := o.flush(); err != nil {
			return err
		}
	}
	if o.caught {
		return o.endIfOver(at)
	}
	return nil // a retry may follow in the history
}

func (o *sse) caughtUp(at domain.Cursor) error {
	o.caught, o.proven = true, true
	return o.endIfOver(at)
}

// endIfOver ends the stream of a finished task.
func (o *sse) endIfOver(at domain.Cursor) error {
	if !o.ended {
		return nil
	}
	if err := o.end(closeEnd, at); err != nil {
		return err
	}
	return errDone
}

func (o *sse) reset(n resetNotice) error {
	o.ended, o.proven = false, true
	return o.control("reset", n.head, 0, map[string]any{"cursor": n.head.String(), "reason": n.reason})
}

func (o *sse) tick() <-chan time.Time { return o.heartbeat.C }

// ticked sends the heartbeat: a comment with the time and the digest, the last
// event written or deliberately conflated. On a filtered stream the id goes along
// alone, so that the cursor of a quiet task does not grow old.
func (o *sse) ticked(at domain.Cursor) error {
	o.heartbeat.Reset(o.cfg.spread(o.cfg.Heartbeat, 0.2))
	text := ": ping " + strconv.FormatInt(o.cfg.Now().Unix(), 10) + " " + strconv.FormatInt(at.EventID, 10) + "\n"
	if o.req.filtered() {
		text += "id: " + at.String() + "\n"
	}
	return o.send(text + "\n")
}

func (o *sse) end(c Close, at domain.Cursor) error {
	retry := o.cfg.between(c.RetryMin, c.RetryMax)
	return o.control(c.Event, at, retry, map[string]any{
		"code": c.Code, "reason": c.Reason, "reconnect": c.Reconnect, "retry_ms": retry.Milliseconds(),
	})
}

// control sends an event of the stream itself.
func (o *sse) control(event string, at domain.Cursor, retry time.Duration, data map[string]any) error {
	text, err := json.Marshal(data)
	if err != nil {
		return fmt.Errorf("encode the %s event: %w", event, err)
	}
	var b strings.Builder
	if o.proven {
		b.WriteString("id: " + at.String() + "\n")
	}
	if retry > 0 {
		b.WriteString(retryLine(retry))
	}
	b.WriteString("event: " + event + "\ndata: ")
	b.Write(text)
	b.WriteString("\n\n")
	return o.send(b.String())
}
