package main

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"
)

// TestStopOrder holds that who calls vendors stops before the intake has ended, and
// who digests what was taken in after it.
func TestStopOrder(t *testing.T) {
	t.Parallel()
	cfg := DefaultConfig()
	r := &runner{process: &process{cfg: cfg, log: slog.New(slog.DiscardHandler)}}
	ended := map[string]chan struct{}{"out": make(chan struct{}), "in": make(chan struct{})}
	for name, outward := range map[string]bool{"out": true, "in": false} {
		r.work = append(r.work, loop{name, func(ctx context.Context) error {
			<-ctx.Done()
			close(ended[name])
			return nil
		}, outward})
	}
	r.onIntakeEnd = append(r.onIntakeEnd, func(ctx context.Context) error {
		select {
		case <-ended["out"]:
		case <-ctx.Done():
			return errors.New("the outward loop still takes work")
		}
		select {
		case <-ended["in"]:
			t.Error("the inward loop ended before the intake")
		default:
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	began := time.Now()
	if err := r.run(ctx, nil); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > cfg.StopTimeout/4 {
		t.Errorf("the stop took %s", took)
	}
	<-ended["in"]
}
