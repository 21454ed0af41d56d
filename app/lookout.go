package app

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// lookEvery is how long a poller believes an index that says nothing is due: what
// the index was never told, or has lost, is that much late at most.
const lookEvery = time.Second

// lookout tells a poller when a look at the store is worth it. Without an index
// every look is. Apart from note it is for one goroutine.
type lookout struct {
	env   Env
	index ports.DueIndex
	notes batcher[time.Time, struct{}]
	// until is up to when an index that is silent counts, away up to when one that
	// failed is not asked.
	until, away time.Time
}

func newLookout(env Env, index ports.DueIndex) *lookout {
	l := &lookout{env: env, index: index}
	l.notes = batcher[time.Time, struct{}]{
		flush: l.flush, flushers: 1, size: 512, depth: 1 << 14, timeout: time.Second, linger: pollLinger,
	}
	return l
}

// look reports whether the store is to be asked now.
func (l *lookout) look(ctx context.Context) bool {
	now := l.env.Now()
	if l.index == nil || now.Before(l.away) {
		return true
	}
	answer, err := l.index.Next(ctx, now)
	if err != nil {
		l.away = now.Add(lookEvery)
		l.env.Logger.Debug("the index of due times does not answer", "error", err)
		return true
	}
	if !answer.Due && !answer.Next.IsZero() && now.Before(l.until) {
		return false
	}
	l.until = now.Add(lookEvery)
	return true
}

// looked says how the look went: after a failed one, or one that left work, this
// poller looks again and the others are told to.
func (l *lookout) looked(more bool, err error) {
	if l.index == nil || (err == nil && !more) {
		return
	}
	l.until = time.Time{}
	l.note(l.env.Now())
}

// note tells the index of a moment, without waiting; a note that is lost makes a
// query late by lookEvery at most.
func (l *lookout) note(at time.Time) {
	if l.index != nil {
		_, _ = l.notes.enqueue(at) // a full queue loses a hint
	}
}

func (l *lookout) flush(ctx context.Context, moments []time.Time) ([]struct{}, error) {
	if err := l.index.Note(ctx, moments); err != nil {
		l.env.Logger.Debug("due times could not be noted", "error", err)
	}
	return make([]struct{}, len(moments)), nil
}

// drain returns when no note is under way.
func (l *lookout) drain() {
	_ = l.notes.drain(context.Background()) // each flush is bounded in time
}
