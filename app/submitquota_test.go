package app_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/ports"
)

// countingQuota counts the permits that it gives.
type countingQuota struct {
	ports.Quota
	mu    sync.Mutex
	taken int
}

func (q *countingQuota) Take(ctx context.Context, buckets []ports.Bucket) (time.Duration, error) {
	wait, err := q.Quota.Take(ctx, buckets)
	q.mu.Lock()
	defer q.mu.Unlock()
	if wait == 0 && err == nil {
		q.taken++
	}
	return wait, err
}

// Two submitters on one store take no more permits than they make creates, and no
// attempt is created twice.
func TestSubmittersShareAQuota(t *testing.T) {
	t.Parallel()
	b := setup(t)
	const tasks = 60
	for range tasks {
		b.create()
	}
	quota := &countingQuota{Quota: memory.NewQuota(b.clock.Now)}
	two := make([]*app.Submitter, 2)
	for i := range two {
		var err error
		two[i], err = app.NewSubmitter(app.SubmitterDeps{
			Env: b.env, Transitions: b.store, Work: b.store, Providers: b.vendor, Tokens: b.tokens, Quota: quota,
		}, app.SubmitterConfig{Concurrency: 4, Quota: app.QuotaConfig{Account: app.Rate{PerSecond: 5, Burst: 5}}})
		b.must(err)
	}
	creates := func() (attempts, calls int) {
		b.vendor.mu.Lock()
		defer b.vendor.mu.Unlock()
		for _, n := range b.vendor.creates {
			attempts, calls = attempts+1, calls+n
		}
		return attempts, calls
	}
	for round := 0; round < 100; round++ {
		var group sync.WaitGroup
		for _, s := range two {
			group.Go(func() {
				if _, err := s.Step(b.ctx()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		attempts, calls := creates()
		if quota.taken != calls || attempts != calls {
			t.Fatalf("round %d: %d permits, %d creates of %d attempts", round, quota.taken, calls, attempts)
		}
		if calls == tasks {
			return
		}
		b.clock.Advance(200 * time.Millisecond)
	}
	t.Errorf("not all %d tasks were submitted", tasks)
}
