package app_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/ports"
)

// inboxOf is an inbox in which every round finds the next number of deliveries, and
// nothing after the last. A round takes a millisecond.
type inboxOf struct {
	ports.Inbox
	taken  []int
	rounds []time.Time
}

func (i *inboxOf) Process(ctx context.Context, _ ports.ProcessParams, _ func(ports.InboxRow) ports.Decoded) (ports.ProcessReport, error) {
	i.rounds = append(i.rounds, time.Now())
	n := len(i.rounds) - 1
	if n >= len(i.taken) {
		<-ctx.Done()
		return ports.ProcessReport{}, ctx.Err()
	}
	select {
	case <-time.After(time.Millisecond):
	case <-ctx.Done():
	}
	return ports.ProcessReport{Taken: i.taken[n]}, nil
}

// TestProcessPace: full batches follow one another, a small one gives the next time
// to gather, and an empty one waits its interval.
func TestProcessPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		inbox := &inboxOf{taken: []int{10, 10, 3, 1, 0}}
		p, err := app.NewProcess(app.ProcessDeps{Env: steady(), Inbox: inbox, Vendors: app.NewVendors(newVendor())},
			app.ProcessConfig{Workers: 1, Batch: 10, Pace: 20 * time.Millisecond, Interval: 100 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		done := make(chan error, 1)
		began := time.Now()
		go func() { done <- p.Run(ctx) }()
		<-time.After(time.Second)
		stop()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		want := []time.Duration{0, 1, 2, 22, 42, 143}
		if len(inbox.rounds) != len(want) {
			t.Fatalf("%d rounds, want %d", len(inbox.rounds), len(want))
		}
		for n, at := range inbox.rounds {
			if got := at.Sub(began); got != want[n]*time.Millisecond {
				t.Errorf("round %d began after %v, want %v", n+1, got, want[n]*time.Millisecond)
			}
		}
	})
}
