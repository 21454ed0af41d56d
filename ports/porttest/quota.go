package porttest

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// QuotaFixture is a quota whose buckets are full.
type QuotaFixture struct {
	Quota ports.Quota
	// Advance moves the quota's clock, which stands still otherwise.
	Advance func(time.Duration)
	// Other is the same quota as another process sees it; nil when there is no
	// other process.
	Other ports.Quota
	// Break takes the shared store away; nil when there is none.
	Break func()
}

// Quota runs the conformance suite of [ports.Quota].
func Quota(t *testing.T, open func(t *testing.T) QuotaFixture) {
	tests := []struct {
		name string
		run  func(*testing.T, QuotaFixture)
	}{
		{"BurstThenWait", quotaBurstThenWait},
		{"Refill", quotaRefill},
		{"AllOrNone", quotaAllOrNone},
		{"ShutBucket", quotaShutBucket},
		{"LimitsMayChange", quotaLimitsMayChange},
		{"Crowd", quotaCrowd},
		{"SharedByProcesses", quotaShared},
		{"StoreAway", quotaStoreAway},
		{"CanceledContext", quotaCanceled},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

func quotaTake(t *testing.T, q ports.Quota, buckets ...ports.Bucket) time.Duration {
	t.Helper()
	wait, err := q.Take(t.Context(), buckets)
	if err != nil {
		t.Fatalf("take: %v", err)
	}
	if wait < 0 {
		t.Fatalf("take: wait %v", wait)
	}
	return wait
}

func quotaBurstThenWait(t *testing.T, f QuotaFixture) {
	b := ports.Bucket{Key: "burst", Rate: 2, Burst: 3}
	for i := range 3 {
		if wait := quotaTake(t, f.Quota, b); wait != 0 {
			t.Fatalf("permit %d of a full bucket: wait %v", i+1, wait)
		}
	}
	if wait := quotaTake(t, f.Quota, b); wait <= 0 || wait > 500*time.Millisecond {
		t.Errorf("empty bucket of 2 per second: wait %v, want 500ms", wait)
	}
	if wait := quotaTake(t, f.Quota); wait != 0 {
		t.Errorf("no bucket at all: wait %v", wait)
	}
}

func quotaRefill(t *testing.T, f QuotaFixture) {
	b := ports.Bucket{Key: "refill", Rate: 10, Burst: 2}
	quotaTake(t, f.Quota, b)
	quotaTake(t, f.Quota, b)
	for i := range 5 {
		wait := quotaTake(t, f.Quota, b)
		if wait <= 0 {
			t.Fatalf("round %d: a permit before its time", i)
		}
		f.Advance(wait)
		if again := quotaTake(t, f.Quota, b); again != 0 {
			t.Fatalf("round %d: after the wait of %v there are %v left", i, wait, again)
		}
	}
	f.Advance(time.Hour) // no more than the burst is saved up
	for range 2 {
		if wait := quotaTake(t, f.Quota, b); wait != 0 {
			t.Fatalf("full again: wait %v", wait)
		}
	}
	if quotaTake(t, f.Quota, b) == 0 {
		t.Error("more than the burst was saved up")
	}
}

func quotaAllOrNone(t *testing.T, f QuotaFixture) {
	wide := ports.Bucket{Key: "platform", Rate: 1, Burst: 5}
	narrow := ports.Bucket{Key: "account", Rate: 0.5, Burst: 1}
	if quotaTake(t, f.Quota, wide, narrow) != 0 {
		t.Fatal("both are full")
	}
	for range 10 { // none of these may cost a permit of the wide bucket
		if wait := quotaTake(t, f.Quota, wide, narrow); wait <= time.Second || wait > 2*time.Second {
			t.Fatalf("wait %v, want the longer of the two: 2s", wait)
		}
	}
	for i := range 4 {
		if wait := quotaTake(t, f.Quota, wide); wait != 0 {
			t.Fatalf("permit %d of the wide bucket was lost to a refusal: wait %v", i+2, wait)
		}
	}
}

func quotaShutBucket(t *testing.T, f QuotaFixture) {
	open := ports.Bucket{Key: "open", Rate: 1, Burst: 1}
	for _, shut := range []ports.Bucket{{Key: "no-rate", Burst: 5}, {Key: "no-burst", Rate: 5}} {
		if quotaTake(t, f.Quota, open, shut) <= 0 {
			t.Errorf("bucket %s gave a permit", shut.Key)
		}
	}
	if quotaTake(t, f.Quota, open) != 0 {
		t.Error("the other bucket lost a permit")
	}
}

func quotaLimitsMayChange(t *testing.T, f QuotaFixture) {
	b := ports.Bucket{Key: "changing", Rate: 1, Burst: 10}
	quotaTake(t, f.Quota, b)
	b.Burst = 2
	taken := 0
	for quotaTake(t, f.Quota, b) == 0 {
		taken++
	}
	if taken != 2 {
		t.Errorf("took %d permits after the burst fell to 2", taken)
	}
	b.Rate = 100
	f.Advance(10 * time.Millisecond)
	if wait := quotaTake(t, f.Quota, b); wait != 0 {
		t.Errorf("the new rate does not hold: wait %v", wait)
	}
}

func quotaCrowd(t *testing.T, f QuotaFixture) {
	a := ports.Bucket{Key: "crowd", Rate: 0.001, Burst: 40}
	var taken atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		own := ports.Bucket{Key: fmt.Sprintf("own-%d", i), Rate: 0.001, Burst: 100}
		wg.Go(func() {
			for range 20 {
				if wait, err := f.Quota.Take(t.Context(), []ports.Bucket{a, own}); err != nil {
					t.Error(err)
				} else if wait == 0 {
					taken.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if taken.Load() != 40 {
		t.Errorf("a crowd took %d permits of 40", taken.Load())
	}
}

func quotaShared(t *testing.T, f QuotaFixture) {
	if f.Other == nil {
		t.Skip("this quota is of one process")
	}
	b := ports.Bucket{Key: "shared", Rate: 0.001, Burst: 10}
	taken := 0
	for range 10 {
		for _, q := range []ports.Quota{f.Quota, f.Other} {
			if quotaTake(t, q, b) == 0 {
				taken++
			}
		}
	}
	if taken != 10 {
		t.Errorf("two processes took %d permits of 10", taken)
	}
}

func quotaStoreAway(t *testing.T, f QuotaFixture) {
	if f.Break == nil {
		t.Skip("this quota has no store that could be away")
	}
	b := ports.Bucket{Key: "away", Rate: 0.1, Burst: 10}
	quotaTake(t, f.Quota, b)
	f.Break()
	taken := 0
	for range 50 {
		if quotaTake(t, f.Quota, b) == 0 {
			taken++
		}
	}
	if taken < 1 || taken > 5 {
		t.Errorf("took %d permits without the store, want some but a fraction of 10", taken)
	}
}

func quotaCanceled(t *testing.T, f QuotaFixture) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := f.Quota.Take(ctx, []ports.Bucket{{Key: "canceled", Rate: 1, Burst: 1}}); err == nil {
		t.Error("Take with a canceled context succeeded")
	}
}
