package httpapi

import (
	"sync"
	"time"
)

// warnEvery is the least time between two warnings of one kind: what strangers or an
// outage cause with each request must not fill the log.
const warnEvery = time.Minute

// throttle lets one of many like warnings pass and counts the others. Keys are our own
// words, so that they are few. The zero value is ready; it is safe for concurrent use.
type throttle struct {
	mu    sync.Mutex
	kinds map[string]*warned
}

// warned is when a kind passed last, and how many have come since.
type warned struct {
	at    time.Time
	count int
}

// take counts one more of a kind. pass: it may be logged, for count of them.
func (t *throttle) take(key string, now time.Time) (count int, pass bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds == nil {
		t.kinds = map[string]*warned{}
	}
	k := t.kinds[key]
	if k == nil {
		k = &warned{at: now.Add(-warnEvery)}
		t.kinds[key] = k
	}
	k.count++
	if now.Sub(k.at) < warnEvery {
		return 0, false
	}
	count = k.count
	k.at, k.count = now, 0
	return count, true
}
