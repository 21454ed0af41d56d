package app

import (
	"cmp"
	"context"
	"fmt"
	"time"
)

// Loop repeats one role's rounds. It is a value: fill it and call Run.
type Loop struct {
	// Name is the role in the log and in the metrics.
	Name string
	// Step does one bounded round and returns how much it did.
	Step func(ctx context.Context) (worked int, err error)
	// Interval is how long to wait after a round that found nothing.
	Interval time.Duration
	// Full is how much a round does at most. After one that did less, and not
	// nothing, Gather passes before the next, whatever rings: more work comes together
	// and is done for the price of one round. Zero Gather does not wait.
	Full   int
	Gather time.Duration
	// MaxBackoff bounds the wait after failed rounds, which doubles from Interval;
	// 10 s when zero.
	MaxBackoff time.Duration
	// Grace is how long the round in hand may go on after the context has ended;
	// 30 s when zero, never more than Env.StopGrace.
	Grace time.Duration
	// Drain, when set, is called after the last round, still within Grace, and
	// returns when what the rounds left running has ended.
	Drain func()
	// Bell ends the wait after an empty round early; nil for none.
	Bell *Bell
	// Env gives jitter, logger and metrics; its defaults are filled in.
	Env Env
}

// Run repeats Step until the context ends, lets the round in hand finish within
// Grace and returns nil. A failed round, or one that panicked, is logged once per
// row of failures; the loop goes on.
func (l Loop) Run(ctx context.Context) error {
	l.Env = l.Env.WithDefaults()
	roundCtx, cancel := graceful(ctx, l.grace())
	defer cancel()
	failures := 0
	for ctx.Err() == nil {
		bell := l.Bell.Wait()
		worked, err := l.round(roundCtx)
		if ctx.Err() != nil {
			break
		}
		wait := l.Interval
		switch {
		case err != nil && worked == 0:
			wait, bell = l.backoff(failures), nil // a bell must not make a failing service busier
		case err == nil && worked > 0:
			wait, bell = l.Gather, nil
			if worked >= l.Full {
				wait = 0
			}
		}
		failures = l.report(err, failures, wait)
		pause(ctx, time.Duration(float64(wait)*l.Env.Jitter()), bell)
	}
	if l.Drain != nil {
		l.Drain()
	}
	return nil
}

// round runs Step and turns a panic into an error, so that one bad row cannot end
// the process.
func (l Loop) round(ctx context.Context) (worked int, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a round: %v", p)
		}
	}()
	return l.Step(ctx)
}

func (l Loop) backoff(failures int) time.Duration {
	limit := l.MaxBackoff
	if limit == 0 {
		limit = 10 * time.Second
	}
	wait := max(l.Interval, 100*time.Millisecond)
	for range min(failures, 20) {
		wait = min(2*wait, limit)
	}
	return min(wait, limit)
}

// report logs the first of a row of failures and their end, and counts them.
func (l Loop) report(err error, failures int, wait time.Duration) int {
	switch {
	case err == nil && failures > 0:
		l.Env.Logger.Info("role recovered", "role", l.Name, "failures", failures)
		return 0
	case err == nil:
		return 0
	case failures == 0:
		l.Env.Logger.Error("round failed", "role", l.Name, "error", err, "again_in", wait)
	default:
		l.Env.Logger.Debug("round failed again", "role", l.Name, "error", err, "failures", failures+1)
	}
	l.Env.Metrics.Add(MetricLoopErrors, 1, l.Name)
	return failures + 1
}

// grace is Grace within the process's own limit.
func (l Loop) grace() time.Duration {
	grace := cmp.Or(l.Grace, 30*time.Second)
	if limit := l.Env.StopGrace; limit > 0 {
		grace = min(grace, limit)
	}
	return grace
}

// graceful returns a context that outlives its parent by the grace. Values stay.
func graceful(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(inner, func() { timer.Stop() })
	})
	return inner, func() { stop(); cancel() }
}

// detached returns a context for the last write of a job, which must not be lost
// because the process is stopping.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), storing)
}

// storing is the time that a last write may take.
const storing = 5 * time.Second

// pause waits for the time, the bell or the end of the context.
func pause(ctx context.Context, wait time.Duration, bell <-chan struct{}) {
	if wait <= 0 {
		return
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-bell:
	case <-ctx.Done():
	}
}
