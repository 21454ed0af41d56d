package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/cenkalti/backoff/v5"
	"github.com/schollz/progressbar/v3"
	"github.com/tmaxmax/go-sse"

	"github.com/aivedio/aivedio/domain"
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
	return watchTask(ctx, c, std, cmd.ID, cmd.watchOptions)
}

// watcher follows one task: snapshot, then increments from the snapshot's
// cursor, over as many connections as it takes.
type watcher struct {
	c      *apiClient
	id     string
	cursor string
	show   display
	// version is the newest that was shown; nothing goes backwards.
	version int64
}

// errTerminal ends a watch whose task has ended.
var errTerminal = errors.New("terminal")

// watchTask follows a task until it ends and turns its end into an exit code.
func watchTask(ctx context.Context, c *apiClient, std streams, id string, opt watchOptions) error {
	if opt.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, opt.Timeout)
		defer cancel()
	}
	w := &watcher{c: c, id: id, show: newDisplay(std, opt.JSON)}
	_, err := backoff.Retry(ctx, func() (struct{}, error) { return struct{}{}, w.once(ctx) },
		backoff.WithBackOff(&backoff.ExponentialBackOff{InitialInterval: 200 * time.Millisecond, RandomizationFactor: 0.5, Multiplier: 2, MaxInterval: 5 * time.Second}),
		backoff.WithMaxElapsedTime(0))
	switch {
	case errors.Is(err, errTerminal):
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		w.show.close()
		return &exitError{code: exitRunning, err: fmt.Errorf("the task is still going on after %s", opt.Timeout)}
	case ctx.Err() != nil:
		w.show.close()
		return &exitError{code: exitInterrupted}
	default:
		w.show.close()
		return err
	}
	last, err := w.snapshot(context.WithoutCancel(ctx))
	if err != nil {
		return err
	}
	if err := w.show.end(last); err != nil {
		return err
	}
	return taskExit(last.Task.Status)
}

// once is one connection: from a snapshot where there is no cursor yet.
func (w *watcher) once(ctx context.Context) error {
	if w.cursor == "" {
		snap, err := w.snapshot(ctx)
		if err != nil {
			return w.permanent(err)
		}
		w.cursor, w.version = snap.Cursor, 0
		w.see(eventOfTask(snap.Task))
		if snap.Task.Status.Terminal() {
			return backoff.Permanent(errTerminal)
		}
	}
	req, err := w.c.request(ctx, http.MethodGet, w.c.path("events")+"?"+url.Values{"after": {w.cursor}, "task_id": {w.id}}.Encode(), nil)
	if err != nil {
		return backoff.Permanent(err)
	}
	req.Header.Set("Accept", "text/event-stream")
	resp, err := w.c.http.Do(req)
	if err != nil {
		return fmt.Errorf("event stream: %w", err)
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusNoContent: // nothing more to come
		w.cursor = ""
		return errors.New("the stream has ended")
	case resp.StatusCode != http.StatusOK:
		return w.permanent(readProblem(resp))
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
			return errors.New("the stream asked for a new snapshot")
		case "unauthorized":
			return backoff.Permanent(errors.New("the key is no longer accepted"))
		case "busy", "move", "end":
			return fmt.Errorf("the stream said %s", ev.Type)
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

func (w *watcher) snapshot(ctx context.Context) (taskAnswer, error) {
	var answer taskAnswer
	err := w.c.call(ctx, http.MethodGet, w.c.path("tasks", w.id), nil, &answer)
	return answer, err
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

// display shows a watch: JSON lines, a line an event, or a bar on a terminal.
type display interface {
	event(e wire.Event)
	end(last taskAnswer) error
	close()
}

func newDisplay(std streams, asJSON bool) display {
	if asJSON {
		return jsonDisplay{std}
	}
	if f, ok := std.err.(*os.File); ok && isTerminal(f) {
		return newBarDisplay(std)
	}
	return lineDisplay{std}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

type jsonDisplay struct{ std streams }

func (d jsonDisplay) event(e wire.Event)        { _ = d.std.json(e) } // a closed pipe shows at the end
func (d jsonDisplay) end(last taskAnswer) error { return d.std.json(last) }
func (d jsonDisplay) close()                    {}

type lineDisplay struct{ std streams }

func (d lineDisplay) event(e wire.Event) {
	fmt.Fprintf(d.std.out, "%s  v%-3d %-18s %-11s %s\n", clockOf(e.OccurredAt), e.TaskVersion, e.Status, e.Stage, percent(e.Progress))
}
func (d lineDisplay) end(last taskAnswer) error { return printTask(d.std, last, false) }
func (d lineDisplay) close()                    {}

// barDisplay draws one bar per stage; the bar of a stage that was left stays.
type barDisplay struct {
	std   streams
	bar   *progressbar.ProgressBar
	stage domain.Stage
}

func newBarDisplay(std streams) *barDisplay { return &barDisplay{std: std} }

func (d *barDisplay) event(e wire.Event) {
	if d.bar == nil || d.stage != e.Stage {
		d.close()
		d.stage = e.Stage
		d.bar = progressbar.NewOptions(100, progressbar.OptionSetWriter(d.std.err), progressbar.OptionSetWidth(30),
			progressbar.OptionSetDescription(fmt.Sprintf("%-11s", e.Stage)), progressbar.OptionShowElapsedTimeOnFinish(), progressbar.OptionSetPredictTime(false))
	}
	d.bar.Describe(fmt.Sprintf("%-11s %-18s", e.Stage, e.Status))
	if e.Progress != nil {
		_ = d.bar.Set(*e.Progress)
		return
	}
	_ = d.bar.RenderBlank()
}

func (d *barDisplay) end(last taskAnswer) error {
	d.close()
	return printTask(d.std, last, false)
}

func (d *barDisplay) close() {
	if d.bar != nil {
		fmt.Fprintln(d.std.err)
		d.bar = nil
	}
}
