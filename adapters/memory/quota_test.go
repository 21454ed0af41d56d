package memory_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

// quotaClock is a clock that moves when told to.
type quotaClock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *quotaClock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *quotaClock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestQuota(t *testing.T) {
	t.Parallel()
	porttest.Quota(t, func(*testing.T) porttest.QuotaFixture {
		clock := &quotaClock{now: time.Unix(1_700_000_000, 0)}
		return porttest.QuotaFixture{Quota: memory.NewQuota(clock.Now), Advance: clock.Advance}
	})
}

// TestQuotaForgetsFullBuckets takes from many buckets: those that are full
// again are forgotten, and an empty one is not.
func TestQuotaForgetsFullBuckets(t *testing.T) {
	t.Parallel()
	clock := &quotaClock{now: time.Unix(1_700_000_000, 0)}
	q := memory.NewQuota(clock.Now)
	slow := ports.Bucket{Key: "slow", Rate: 0.0001, Burst: 1}
	if wait, err := q.Take(t.Context(), []ports.Bucket{slow}); wait != 0 || err != nil {
		t.Fatal(wait, err)
	}
	for i := range 5000 {
		clock.Advance(time.Millisecond)
		b := ports.Bucket{Key: fmt.Sprintf("b%d", i), Rate: 100, Burst: 1}
		if wait, err := q.Take(t.Context(), []ports.Bucket{b}); wait != 0 || err != nil {
			t.Fatal(wait, err)
		}
	}
	if n := q.Size(); n > 1100 {
		t.Errorf("%d buckets are kept", n)
	}
	if wait, err := q.Take(t.Context(), []ports.Bucket{slow}); wait == 0 || err != nil {
		t.Errorf("the slow bucket was forgotten: wait %v, %v", wait, err)
	}
}
