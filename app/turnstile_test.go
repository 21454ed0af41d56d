package app

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// bucketQuota is one token bucket without a burst, which counts how often it was
// asked.
type bucketQuota struct {
	mu    sync.Mutex
	every time.Duration
	next  time.Time
	asked atomic.Int64
}

func (q *bucketQuota) Take(ctx context.Context, _ []ports.Bucket) (time.Duration, error) {
	q.asked.Add(1)
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if now.Before(q.next) {
		return q.next.Sub(now), ctx.Err()
	}
	q.next = now.Add(q.every)
	return 0, ctx.Err()
}

var laneBuckets = []ports.Bucket{{Key: "account:a", Rate: 10, Burst: 1}}

func TestTurnstileAsksOncePerPermit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const calls = 32
		q, ts, began := &bucketQuota{every: 100 * time.Millisecond}, &turnstile{}, time.Now()
		var got atomic.Int64
		var wg sync.WaitGroup
		for range calls {
			wg.Go(func() {
				if err := ts.take(t.Context(), q, laneBuckets, time.Now, began.Add(time.Minute)); err == nil {
					got.Add(1)
				}
			})
		}
		wg.Wait()
		if got.Load() != calls || time.Since(began) != (calls-1)*q.every {
			t.Errorf("%d permits in %v", got.Load(), time.Since(began))
		}
		// All may ask once before anybody waits; then twice per permit: told to wait,
		// and given.
		if n := q.asked.Load(); n > 3*calls {
			t.Errorf("asked %d times for %d permits", n, calls)
		}
		if len(ts.lanes) != 0 {
			t.Errorf("%d lanes are left", len(ts.lanes))
		}
	})
}

func TestTurnstileKeepsTheOrder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, ts := &bucketQuota{every: 100 * time.Millisecond}, &turnstile{}
		var order []int
		var mu sync.Mutex
		var wg sync.WaitGroup
		for n := range 8 {
			wg.Go(func() {
				if err := ts.take(t.Context(), q, laneBuckets, time.Now, time.Now().Add(time.Minute)); err != nil {
					t.Error(err)
				}
				mu.Lock()
				order = append(order, n)
				mu.Unlock()
			})
			synctest.Wait() // it stands in the lane before the next one comes
		}
		wg.Wait()
		for n, who := range order {
			if who != n {
				t.Fatalf("order %v", order)
			}
		}
	})
}

func TestTurnstileGivesUpInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q, ts, began := &bucketQuota{every: time.Second}, &turnstile{}, time.Now()
		var limited, got atomic.Int64
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				switch err := ts.take(t.Context(), q, laneBuckets, time.Now, began.Add(2500*time.Millisecond)); {
				case errors.Is(err, errLimited):
					limited.Add(1)
				case err == nil:
					got.Add(1)
				}
			})
		}
		wg.Wait()
		if got.Load() != 3 || limited.Load() != 7 { // at 0, 1 and 2 s
			t.Errorf("%d permits, %d limited", got.Load(), limited.Load())
		}
		if took := time.Since(began); took > 2500*time.Millisecond {
			t.Errorf("the last gave up after %v", took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 2)
		for range 2 {
			go func() { done <- ts.take(ctx, q, laneBuckets, time.Now, time.Now().Add(time.Hour)) }()
		}
		synctest.Wait()
		cancel()
		for range 2 {
			if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
				t.Errorf("a call whose context ended: %v", err)
			}
		}
	})
}

// Calls that share no permit do not wait for one another.
func TestTurnstileHasLanes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		slow, fast, ts := &bucketQuota{every: time.Hour}, &bucketQuota{}, &turnstile{}
		deadline := time.Now().Add(24 * time.Hour)
		if err := ts.take(t.Context(), slow, laneBuckets, time.Now, deadline); err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		go func() { done <- ts.take(t.Context(), slow, laneBuckets, time.Now, deadline) }()
		synctest.Wait()
		began := time.Now()
		if err := ts.take(t.Context(), fast, []ports.Bucket{{Key: "account:b"}}, time.Now, deadline); err != nil || time.Since(began) != 0 {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
