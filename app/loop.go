package app

import (
	"context"
	"fmt"
	"log/slog"
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
	// MaxBackoff bounds the wait after failed rounds, which doubles from Interval;
	// 10 s when zero.
	MaxBackoff time.Duration
	// Grace is how long the round in hand may go on after the context has ended;
	// 30 s when zero.
	Grace time.Duration
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
	roundCtx, cancel := graceful(ctx, l.Grace)
	defer cancel()
	failures := 0
	for ctx.Err() == nil {
		bell := l.Bell.Wait()
		worked, err := l.round(roundCtx)
		if ctx.Err() != nil {
			break
		}
		wait := time.Duration(0)
		switch {
		case err != nil:
			wait, bell = l.backoff(failures), nil // a bell must not make a failing service busier
			l.failed(err, failures, wait)
			failures++
		case failures > 0:
			l.Env.Logger.Info("role recovered", "role", l.Name, "failures", failures)
			failures = 0
		}
		if err == nil && worked == 0 {
			wait = l.Interval
		}
		pause(ctx, time.Duration(float64(wait)*l.Env.Jitter()), bell)
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

func (l Loop) failed(err error, failures int, wait time.Duration) {
	l.Env.Metrics.Add(MetricLoopErrors, 1, l.Name)
	level := slog.LevelError
	if failures > 0 {
		level = slog.LevelDebug
	}
	l.Env.Logger.Log(context.Background(), level, "round failed", "role", l.Name, "error", err, "again_in", wait)
}

// graceful returns a context that outlives its parent by the grace. Values stay.
func graceful(ctx context.Context, grace time.Duration) (context.Context, context.CancelFunc) {
	if grace == 0 {
		grace = 30 * time.Second
	}
	inner, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() {
		timer := time.AfterFunc(grace, cancel)
		context.AfterFunc(inner, func() { timer.Stop() })
	})
	return inner, func() { stop(); cancel() }
}

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
