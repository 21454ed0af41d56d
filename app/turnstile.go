package app

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// turnstile lets calls that wait for the same permits ask for them one after the
// other, in the order of their coming. If all asked, all were told nearly the same
// wait, came back together, and all but one had asked for nothing: with 32 calls
// that was most of what a query cost. The zero value is ready.
type turnstile struct {
	mu    sync.Mutex
	lanes map[string]*lane
}

// lane is the queue for one set of buckets; gone when nobody stands in it.
type lane struct {
	head    chan struct{} // holds one while somebody asks
	waiting int
}

// take takes a permit from every bucket, waiting until the deadline at most;
// errLimited when there was none by then. A call that finds nobody waiting asks at
// once.
func (t *turnstile) take(ctx context.Context, quota ports.Quota, buckets []ports.Bucket, now func() time.Time, deadline time.Time) error {
	key := laneKey(buckets)
	if !t.crowded(key) {
		if wait, err := quota.Take(ctx, buckets); err != nil || wait <= 0 {
			return err
		}
	}
	l := t.join(key)
	defer t.leave(key, l)
	timer := time.NewTimer(deadline.Sub(now()))
	defer timer.Stop()
	select {
	case l.head <- struct{}{}:
		defer func() { <-l.head }()
	case <-timer.C:
		return errLimited
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		wait, err := quota.Take(ctx, buckets)
		if err != nil || wait <= 0 {
			return err
		}
		if now().Add(wait).After(deadline) {
			return errLimited
		}
		pause(ctx, wait, nil)
	}
}

func (t *turnstile) crowded(key string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.lanes[key] != nil
}

func (t *turnstile) join(key string) *lane {
	t.mu.Lock()
	defer t.mu.Unlock()
	l := t.lanes[key]
	if l == nil {
		l = &lane{head: make(chan struct{}, 1)}
		if t.lanes == nil {
			t.lanes = map[string]*lane{}
		}
		t.lanes[key] = l
	}
	l.waiting++
	return l
}

func (t *turnstile) leave(key string, l *lane) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if l.waiting--; l.waiting == 0 {
		delete(t.lanes, key)
	}
}

// laneKey is the same for the same buckets.
func laneKey(buckets []ports.Bucket) string {
	var b strings.Builder
	for _, bucket := range buckets {
		b.WriteString(bucket.Key)
		b.WriteByte(0)
	}
	return b.String()
}
