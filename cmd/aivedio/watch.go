package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/tmaxmax/go-sse"

	"github.com/aivedio/aivedio/internal/wire"
)

// watchOptions are shared by watch and submit.
type watchOptions struct {
	JSON    bool          `help:"Print JSON; with a watch one event a line, the last one the snapshot at the end."`
	Timeout time.Duration `help:"Stop watching after this time, with exit code 4; 0 waits for the end." default:"0s"`
}

type taskWatchCmd struct {
	target
	watchOptions
	ID string `arg:"" help:"Task id." placeholder:"tsk_…"`
}

// Run follows the task.
func (cmd taskWatchCmd) Run(ctx context.Context, std streams) error {
	c, err := cmd.client()
	if err != nil {
		return err
	}
	first, err := c.task(ctx, cmd.ID)
	if err != nil {
		return err
	}
	return watchTask(ctx, c, std, first, cmd.watchOptions)
}

// watcher follows one task: snapshot, then increments from the snapshot's
// cursor, over as many connections as it takes.
type watcher struct {
	c      *apiClient
	id     string
	cursor string
	show   display
	notice func(string)
	pause  *backoff.ExponentialBackOff
	// version is the newest that was shown; nothing goes backwards.
	version int64
	// lost is set during an outage.
	lost bool
}

// errTerminal ends a watch whose task has ended.
var errTerminal = errors.New("terminal")

// errMoved ends a connection that the server asked to end: no outage.
var errMoved = errors.New("the stream goes on elsewhere")

// watchTask follows a task from its snapshot until it ends and turns its end into
// an exit code.
func watchTask(ctx context.Context, c *apiClient, std streams, first taskAnswer, opt watchOptions) error {
	if opt.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opt.Timeout)
		defer cancel()
	}
	w := newWatcher(c, std, first.Task.ID, opt.JSON)
	err := w.follow(ctx, first)
	switch {
	case errors.Is(err, errTerminal):
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		w.show.close()
		return &exitError{code: exitRunning, err: fmt.Errorf("the task is still going on after %s", opt.Timeout)}
	case ctx.Err() != nil:
		w.show.close()
		return &exitError{code: exitInterrupted}
	default:
		w.show.close()
		return err
	}
	last, err := c.task(context.WithoutCancel(ctx), w.id)
	if err != nil {
		return err
	}
	if err := w.show.end(last); err != nil {
		return err
	}
	return taskExit(last.Task.Status)
}

func newWatcher(c *apiClient, std streams, id string, asJSON bool) *watcher {
	return &watcher{
		c: c, id: id, show: newDisplay(std, asJSON), notice: func(s string) { fmt.Fprintln(std.err, s) },
		pause: &backoff.ExponentialBackOff{InitialInterval: 200 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 5 * time.Second},
	}
}

// follow shows the task until it ends, which is errTerminal, and reads on over
// every outage.
func (w *watcher) follow(ctx context.Context, first taskAnswer) error {
	if err := w.begin(first); err != nil {
		return err
	}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, w.once(ctx) },
		backoff.WithBackOff(w.pause), backoff.WithMaxElapsedTime(0), backoff.WithNotify(func(err error, _ time.Duration) { w.interrupted(err) }))
	return err
}

// interrupted tells of an outage, once.
func (w *watcher) interrupted(err error) {
	if w.lost || errors.Is(err, errMoved) {
		return
	}
	w.lost = true
	w.show.close()
	w.notice("connection lost, trying again")
}

// connected ends an outage.
func (w *watcher) connected() {
	w.pause.Reset()
	if w.lost {
		w.lost = false
		w.notice("connected again")
	}
}

// begin shows a snapshot, from whose cursor the stream goes on.
func (w *watcher) begin(snap taskAnswer) error {
	w.cursor, w.version = snap.Cursor, 0
	w.see(eventOfTask(snap.Task))
	if snap.Task.Status.Terminal() {
		return backoff.Permanent(errTerminal)
	}
	return nil
}

// once is one connection: from a snapshot where there is no cursor yet.
func (w *watcher) once(ctx context.Context) error {
	if w.cursor == "" {
		snap, err := w.c.task(ctx, w.id)
		if err != nil {
			return w.permanent(err)
		}
		if err := w.begin(snap); err != nil {
			return err
		}
	}
	req, err := w.c.request(ctx, http.MethodGet, w.c.path("events")+"?"+url.Values{"after": {w.cursor}, "task_id": {w.id}}.Encode(), nil)
	if err != nil {
		return backoff.Permanent(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := w.c.open(req)
	if err != nil {
		return w.permanent(err)
	}
	defer resp.Body.Close()
	w.connected()
	if resp.StatusCode == http.StatusNoContent { // nothing more to come
		w.cursor = ""
		return errMoved
	}
	return w.read(resp.Body)
}

// read shows events until the stream or the task ends.
func (w *watcher) read(body io.Reader) error {
	for ev, err := range sse.Read(body, nil) {
		if err != nil {
			return fmt.Errorf("event stream: %w", err)
		}
		if ev.LastEventID != "" {
			w.cursor = ev.LastEventID
		}
		switch ev.Type {
		case wire.StreamEvent:
			var e wire.Event
			if err := json.Unmarshal([]byte(ev.Data), &e); err != nil {
				return fmt.Errorf("event: %w", err)
			}
			w.see(e)
			if e.TaskID == w.id && e.Status.Terminal() {
				return backoff.Permanent(errTerminal)
			}
		case "reset":
			w.cursor = ""
			return errMoved
		case "unauthorized":
			return backoff.Permanent(errors.New("the key is no longer accepted"))
		case "busy", "move", "end":
			return errMoved
		}
	}
	return io.ErrUnexpectedEOF
}

// see shows news of the task, never backwards.
func (w *watcher) see(e wire.Event) {
	if e.TaskID != w.id || e.TaskVersion <= w.version {
		return
	}
	w.version = e.TaskVersion
	w.show.event(e)
}

// permanent ends the watch at answers that another try would get again.
func (w *watcher) permanent(err error) error {
	var p *problem
	if errors.As(err, &p) && p.Status < 500 && p.Status != http.StatusTooManyRequests {
		return backoff.Permanent(err)
	}
	return err
}

// eventOfTask shows a snapshot as if it were an event.
func eventOfTask(t wire.Task) wire.Event {
	return wire.Event{EventID: t.LastEventID, TaskID: t.ID, TaskVersion: t.TaskVersion, Status: t.Status, Stage: t.Stage, Progress: t.Progress, AssetID: t.AssetID, Error: t.Error, OccurredAt: t.UpdatedAt}
}
