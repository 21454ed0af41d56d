package redisnotify

import (
	"sync"
	"time"

	"golang.org/x/time/rate"
)

// localBuckets decides while Redis is away: a fraction of each limit, so that
// all processes together stay near the whole.
type localBuckets struct {
	fraction float64

	mu       sync.Mutex
	calls    int
	limiters map[string]*rate.Limiter
}

// localSweep is how many calls pass between two rounds that forget full
// buckets.
const localSweep = 1024

func newLocalBuckets(fraction float64) *localBuckets {
	return &localBuckets{fraction: fraction, limiters: map[string]*rate.Limiter{}}
}

// take takes from every bucket or from none, and returns the longest wait.
func (b *localBuckets) take(now time.Time, shares []share) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.sweep(now)
	limiters := make([]*rate.Limiter, len(shares))
	var wait time.Duration
	for i, s := range shares {
		limiters[i] = b.limiter(now, s)
		if missing := float64(s.want) - limiters[i].TokensAt(now); missing > 1e-9 {
			seconds := missing / float64(limiters[i].Limit())
			wait = max(wait, time.Duration(min(seconds, maxWait.Seconds())*float64(time.Second)), time.Nanosecond)
		}
	}
	if wait > 0 {
		return wait
	}
	for i, s := range shares {
		limiters[i].AllowN(now, s.want)
	}
	return 0
}

// limiter returns the bucket's limiter under the limits of today. A fresh one
// holds the permits of an outage's first moment: at least as many as one call
// wants, or it could never go on.
func (b *localBuckets) limiter(now time.Time, s share) *rate.Limiter {
	limit := rate.Limit(s.Rate * b.fraction)
	burst := max(int(float64(s.Burst)*b.fraction), s.want)
	l := b.limiters[s.Key]
	if l == nil {
		l = rate.NewLimiter(limit, burst)
		b.limiters[s.Key] = l
		return l
	}
	if l.Limit() != limit {
		l.SetLimitAt(now, limit)
	}
	if l.Burst() < burst {
		l.SetBurstAt(now, burst)
	}
	return l
}

func (b *localBuckets) sweep(now time.Time) {
	if b.calls++; b.calls%localSweep != 0 {
		return
	}
	for key, l := range b.limiters {
		if l.TokensAt(now) >= float64(l.Burst()) {
			delete(b.limiters, key)
		}
	}
}
