package memory

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// quotaMaxWait is the longest wait that is ever answered, and the answer for a
// bucket that is shut: limits change while one waits.
const quotaMaxWait = time.Minute

// quotaSweep is how many calls pass between two rounds that forget full
// buckets: a full bucket and an unknown one are the same.
const quotaSweep = 1024

// Quota keeps token buckets in the process. It is safe for concurrent use.
type Quota struct {
	now func() time.Time

	mu      sync.Mutex
	calls   int
	buckets map[string]tokenBucket
}

var _ ports.Quota = (*Quota)(nil)

// NewQuota returns a quota whose buckets are full. A nil now is the wall clock.
func NewQuota(now func() time.Time) *Quota {
	if now == nil {
		now = time.Now
	}
	return &Quota{now: now, buckets: map[string]tokenBucket{}}
}

// Take implements [ports.Quota]. A bucket that is named twice gives two
// permits.
func (q *Quota) Take(ctx context.Context, buckets []ports.Bucket) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	now := q.now()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.sweep(now)
	changed := make(map[string]tokenBucket, len(buckets))
	var wait time.Duration
	for _, b := range buckets {
		state, ok := changed[b.Key]
		if !ok {
			state = q.buckets[b.Key]
		}
		state = state.refilled(b, now)
		wait = max(wait, state.wait())
		state.tokens--
		changed[b.Key] = state
	}
	if wait > 0 {
		return wait, nil
	}
	for key, state := range changed {
		q.buckets[key] = state
	}
	return 0, nil
}

func (q *Quota) sweep(now time.Time) {
	if q.calls++; q.calls%quotaSweep != 0 {
		return
	}
	for key, state := range q.buckets {
		limits := ports.Bucket{Key: key, Rate: state.rate, Burst: int(state.burst)}
		if state.refilled(limits, now).tokens >= state.burst {
			delete(q.buckets, key)
		}
	}
}

// tokenBucket is a bucket as it was last touched; the zero value is full.
type tokenBucket struct {
	tokens, rate, burst float64
	at                  time.Time
}

// refilled is the bucket at now, under the limits that hold now. A clock that
// steps back refills nothing.
func (s tokenBucket) refilled(b ports.Bucket, now time.Time) tokenBucket {
	tokens := float64(b.Burst)
	if !s.at.IsZero() {
		gained := max(0, now.Sub(s.at).Seconds()) * max(0, b.Rate)
		tokens = min(tokens, s.tokens+gained)
		if now.Before(s.at) {
			now = s.at
		}
	}
	return tokenBucket{tokens: tokens, rate: b.Rate, burst: float64(b.Burst), at: now}
}

// wait is how long until there is a permit, 0 when there is one.
func (s tokenBucket) wait() time.Duration {
	if s.rate <= 0 || s.burst < 1 {
		return quotaMaxWait
	}
	const almost = 1e-9 // what adding fractions may lose
	missing := 1 - s.tokens
	if missing <= almost {
		return 0
	}
	nanos := math.Ceil(missing / s.rate * float64(time.Second))
	return time.Duration(min(nanos, float64(quotaMaxWait)))
}

// Size is the number of buckets that are kept.
func (q *Quota) Size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.buckets)
}
