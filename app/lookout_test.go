package app_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// claims counts the looks at a store.
type claims struct {
	*memory.Store
	polls atomic.Int64
}

func (c *claims) Claim(ctx context.Context, params ports.ClaimParams) ([]ports.Job, error) {
	if params.Kind == ports.WorkPoll {
		c.polls.Add(1)
	}
	return c.Store.Claim(ctx, params)
}

// brokenIndex never answers.
type brokenIndex struct{}

func (brokenIndex) Note(context.Context, []time.Time) error { return errAway }
func (brokenIndex) Next(context.Context, time.Time) (ports.DueAnswer, error) {
	return ports.DueAnswer{}, errors.New("away")
}

// runPolled runs a poller with the index for a while in a bubble and returns the
// queries with their lag behind next_poll_at, and the looks at the store.
func runPolled(t *testing.T, index ports.DueIndex, during func()) (lags []time.Duration, looks int64) {
	t.Helper()
	b := setup(t)
	b.env.Now = time.Now
	b.store = memory.NewStore(time.Now)
	b.must(seed(b))
	b.build(b.store, b.store)
	for range 10 {
		b.submitted()
	}
	var mu sync.Mutex
	b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
		mu.Lock()
		lags = append(lags, time.Since(*req.Attempt.NextPollAt))
		mu.Unlock()
		return ports.QueryResult{Observation: domain.Observation{Provider: "acme", ProviderTaskID: req.Attempt.ProviderTaskID, Status: domain.ObservedRunning}}, nil
	}
	work := &claims{Store: b.store}
	poll, err := app.NewPoll(app.PollDeps{
		Env: b.env, Transitions: b.store, Work: work, Vendors: app.NewVendors(b.vendor), Due: index,
	}, app.PollConfig{})
	b.must(err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- poll.Run(ctx) }()
	for range 600 {
		<-time.After(100 * time.Millisecond)
		during()
	}
	stop()
	b.must(<-ended)
	return lags, work.polls.Load()
}

// The index spares looks; and whatever becomes of it, every query comes, late by a
// second at most.
func TestPollDueIndex(t *testing.T) {
	t.Parallel()
	flushed := memory.NewDueIndex()
	for name, tc := range map[string]struct {
		index  ports.DueIndex
		during func()
		looks  int64
	}{
		"none":          {nil, func() {}, 1 << 20},
		"whole":         {memory.NewDueIndex(), func() {}, 200},
		"flushed often": {flushed, flushed.Flush, 1 << 20},
		"away":          {brokenIndex{}, func() {}, 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				lags, looks := runPolled(t, tc.index, tc.during)
				if len(lags) < 40 {
					t.Errorf("%d queries in a minute", len(lags))
				}
				for _, lag := range lags {
					if lag > 1300*time.Millisecond {
						t.Fatalf("a query was %v late", lag)
					}
				}
				if looks > tc.looks {
					t.Errorf("%d looks at the store for %d queries", looks, len(lags))
				}
			})
		})
	}
}
