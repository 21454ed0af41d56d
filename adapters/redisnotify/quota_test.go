package redisnotify

import (
	"crypto/rand"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

// clock moves when told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func TestQuota(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	t.Run("Suite", func(t *testing.T) {
		porttest.Quota(t, func(t *testing.T) porttest.QuotaFixture {
			c := &clock{now: time.Unix(1_700_000_000, 0)}
			cfg := QuotaConfig{Prefix: "test:" + rand.Text(), Now: c.Now, Cooldown: time.Hour, Timeout: 5 * time.Second}
			link := newLink(t, server.Addr)
			return porttest.QuotaFixture{
				Quota:   NewQuota(dial(t, link.addr), cfg),
				Other:   NewQuota(dial(t, server.Addr), cfg),
				Advance: c.Advance,
				Break:   func() { link.cut() },
			}
		})
	})
}

// TestQuotaClockOfRedis takes without an injected clock.
func TestQuotaClockOfRedis(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	rdb := dial(t, server.Addr)
	q := NewQuota(rdb, QuotaConfig{Prefix: "test:" + rand.Text(), Timeout: 5 * time.Second})
	b := []ports.Bucket{{Key: "k", Rate: 50, Burst: 1}}
	if wait, err := q.Take(t.Context(), b); wait != 0 || err != nil {
		t.Fatal(wait, err)
	}
	for {
		wait, err := q.Take(t.Context(), b)
		if err != nil || wait > 20*time.Millisecond {
			t.Fatalf("wait %v, %v", wait, err)
		}
		if wait == 0 {
			break
		}
	}
	ttl, err := rdb.PTTL(t.Context(), "{"+q.cfg.Prefix+"}:k").Result()
	if err != nil || ttl <= 0 || ttl > 2*time.Second {
		t.Errorf("the key lives for %v, %v", ttl, err)
	}
}

// TestQuotaComesBack loses Redis and finds it again after the cooldown.
func TestQuotaComesBack(t *testing.T) {
	t.Parallel()
	server := testenv.Redis(t)
	q := NewQuota(dial(t, server.Addr), QuotaConfig{Prefix: "test:" + rand.Text(), Cooldown: time.Millisecond, Timeout: time.Second})
	wide := []ports.Bucket{{Key: "wide", Rate: 0.001, Burst: 100}}
	take := func() int {
		taken := 0
		for range 150 {
			wait, err := q.Take(t.Context(), wide)
			if err != nil {
				t.Fatal(err)
			}
			if wait == 0 {
				taken++
			}
		}
		return taken
	}
	server.Stop()
	if n := take(); n != 10 {
		t.Errorf("took %d permits without Redis, want a tenth of 100", n)
	}
	server.Start()
	if n := take(); n < 99 {
		t.Errorf("took %d permits of the fresh store, want 100", n)
	}
}

// TestQuotaFallbackForgets shows that full local buckets are forgotten.
func TestQuotaFallbackForgets(t *testing.T) {
	t.Parallel()
	b := newLocalBuckets(0.5)
	now := time.Unix(1_700_000_000, 0)
	for i := range 4000 {
		now = now.Add(time.Millisecond)
		s := share{ports.Bucket{Key: fmt.Sprintf("k%d", i), Rate: 1000, Burst: 2}, 1}
		if wait := b.take(now, []share{s}); wait != 0 {
			t.Fatal(wait)
		}
	}
	if len(b.limiters) > 1100 {
		t.Errorf("%d buckets are kept", len(b.limiters))
	}
}
