package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// sink is the transport of one client; only its own goroutine calls it. Any
// error ends the stream; errDone ends it in peace.
type sink interface {
	// start is called once, before anything is read from the position. proven says
	// that the position is ours; one that the client brought is not, yet.
	start(at domain.Cursor, proven bool) error
	// events writes frames in order and flushes; at is the position after them,
	// which may lie beyond the last one.
	events(frames []*frame, at domain.Cursor) error
	// caughtUp is called once, when the history is written.
	caughtUp(at domain.Cursor) error
	// reset tells the client to take a new snapshot and go on from head.
	reset(n resetNotice) error
	// tick is the transport's clock while the client is live: heartbeat or wait.
	tick() <-chan time.Time
	ticked(at domain.Cursor) error
	// end writes the last words.
	end(c Close, at domain.Cursor) error
}

// errDone ends a stream that has done its work.
var errDone = errors.New("done")

// maxResets bounds the resets in a row while a client catches up: more mean that
// the store contradicts itself.
const maxResets = 3

// follow serves one client from subscription to its end. The order is what makes
// it lose nothing: register, watch, read, write, drain what came meanwhile, live.
// The error is ErrBusy when the client was never admitted.
func (h *Hub) follow(ctx context.Context, req StreamRequest, q query, out sink) error {
	s := newSubscriber(h.cfg, req.Task, func(n int) { h.stats.conflated.Add(int64(n)) })
	p, err := h.register(ctx, req.Project, s)
	if err != nil {
		return err
	}
	defer h.unregister(p, s)
	h.stats.opened.Add(1)
	h.cfg.reached(PointRegistered)
	h.watch(ctx, p)
	h.cfg.reached(PointWatched)

	f := &follower{hub: h, project: p, sub: s, out: out, auth: req.Auth, batch: h.cfg.ReadBatch}
	err = f.catchUp(ctx, q)
	if err == nil {
		err = f.drain()
	}
	if err == nil {
		err = f.live(ctx)
	}
	return f.ending(ctx, err)
}

// follower is the state of one client on its way.
type follower struct {
	hub     *Hub
	project *project
	sub     *Subscriber
	out     sink
	auth    func(context.Context) error
	batch   int
	// at is the last position written, filtered out or conflated.
	at domain.Cursor
	// caughtUp: what is written from now on is news.
	caughtUp bool
}

// ending turns the error of a stream into its last words. What is left after that
// is the fault of a dead connection, which nobody can be told.
func (f *follower) ending(ctx context.Context, err error) error {
	switch {
	case errors.Is(err, errDone), ctx.Err() != nil:
		return nil
	case denied(err):
		return f.out.end(closeDenied, f.at)
	case errors.Is(err, errRead):
		f.hub.readFailed(f.project.id, err)
		return f.out.end(closeUnavailable, f.at)
	default:
		return err
	}
}

// denied reports whether the caller's right has ended.
func denied(err error) bool {
	return errors.Is(err, app.ErrUnauthenticated) || errors.Is(err, ports.ErrNotFound)
}

// errRead marks a failed read of the store.
var errRead = errors.New("read the stream")

// begin finds the position from which the client is served.
func (f *follower) begin(ctx context.Context, q query) error {
	if q.kind == cursorGiven {
		f.at = q.cursor
		return f.out.start(f.at, false)
	}
	head, err := f.hub.cfg.Events.Head(ctx, f.project.id)
	if err != nil {
		return fmt.Errorf("%w: %w", errRead, err)
	}
	f.at = head
	if q.kind != cursorBad {
		return f.out.start(head, true)
	}
	// The head must not reach the client before the reset: one that is cut between
	// the two would come back from there and never learn what it has missed.
	if err := f.out.start(head, false); err != nil {
		return err
	}
	return f.out.reset(resetNotice{head, ports.ResetBad})
}

// catchUp reads and writes from the position to the head, page by page, until the
// client has joined the live ones.
func (f *follower) catchUp(ctx context.Context, q query) error {
	if err := f.begin(ctx, q); err != nil {
		return err
	}
	for resets := 0; ; {
		f.hub.stats.reads.Add(1)
		page, err := f.hub.cfg.Events.After(ctx, f.project.id, f.at, f.batch)
		if err != nil {
			return fmt.Errorf("%w: %w", errRead, err)
		}
		f.hub.cfg.reached(PointRead)
		if page.Reset != "" {
			if resets++; resets > maxResets {
				return fmt.Errorf("%w: its own head is refused again and again: %s", errRead, page.Reset)
			}
			f.at = page.Head
			if err := f.out.reset(resetNotice{page.Head, page.Reset}); err != nil {
				return err
			}
			continue
		}
		joined, err := f.page(page)
		if err != nil || joined {
			return err
		}
		if f.hub.ctx.Err() != nil { // nothing will tell why another read is needed
			return f.last(closeDraining)
		}
	}
}

// page writes one page of history; joined is set when it was the last and the
// client is live.
func (f *follower) page(page ports.EventPage) (joined bool, err error) {
	all := newFrames(page.Events)
	wanted := all
	if !f.sub.task.IsZero() {
		wanted = nil
		for _, frame := range all {
			if f.sub.wants(frame) {
				wanted = append(wanted, frame)
			}
		}
	}
	switch {
	case len(all) > 0:
		f.at = all[len(all)-1].cursor
	case page.Head.EventID == f.at.EventID:
		f.at = page.Head // the same event, with its tag
	}
	if len(wanted) > 0 {
		if err := f.write(wanted); err != nil {
			return false, err
		}
	}
	f.hub.cfg.reached(PointWritten)
	return len(all) < f.batch && f.project.join(f.sub, f.at, all), nil
}

func (f *follower) write(frames []*frame) error {
	err := f.out.events(frames, f.at)
	if err != nil && !errors.Is(err, errDone) {
		return err
	}
	f.hub.stats.written.Add(int64(len(frames)))
	if f.caughtUp { // the age of history says nothing of our speed
		now := f.hub.cfg.Now()
		for _, frame := range frames {
			f.hub.age.Observe(now.Sub(frame.createdAt).Seconds())
		}
	}
	return err
}

// drain writes what came between the read and the join.
func (f *follower) drain() error {
	if err := f.flush(); err != nil {
		return err
	}
	f.caughtUp = true
	f.hub.cfg.reached(PointDrained)
	return f.out.caughtUp(f.at)
}

// flush writes all that waits, and the last words if the stream is to end.
func (f *follower) flush() error {
	b := f.sub.take()
	if b.reset != nil {
		f.at = b.reset.head
		if err := f.out.reset(*b.reset); err != nil {
			return err
		}
	}
	if b.close != nil && *b.close == closeSlow {
		f.hub.stats.slow.Add(1)
		return f.last(*b.close) // what was dropped is read again at the next visit
	}
	f.at = b.through
	if len(b.frames) > 0 {
		if err := f.write(b.frames); err != nil {
			return err
		}
	}
	if b.close != nil {
		return f.last(*b.close)
	}
	return nil
}

func (f *follower) last(c Close) error {
	if err := f.out.end(c, f.at); err != nil {
		return err
	}
	return errDone
}

// live writes what the project offers until somebody ends it.
func (f *follower) live(ctx context.Context) error {
	checked := make(chan error, 1)
	var timer *time.Timer
	var recheck <-chan time.Time
	if f.auth != nil {
		timer = time.NewTimer(f.hub.cfg.spread(f.hub.cfg.AuthEvery, 0.2))
		defer timer.Stop()
		recheck = timer.C
	}
	for {
		var err error
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-f.hub.ctx.Done():
			return f.last(closeDraining)
		case <-f.sub.wake:
			err = f.flush()
		case <-f.out.tick():
			if err = f.flush(); err == nil {
				err = f.out.ticked(f.at)
			}
		case <-recheck:
			recheck = nil
			go func() { checked <- f.auth(ctx) }() // a slow answer must not hold up events
		case err = <-checked:
			if !denied(err) {
				err = nil
			}
			timer.Reset(f.hub.cfg.spread(f.hub.cfg.AuthEvery, 0.2))
			recheck = timer.C
		}
		if err != nil {
			return err
		}
	}
}
