package pgstore

import (
	"sync"
	"time"
)

const (
	// floorMargin is how far below the oldest row of a batch the next look begins,
	// in ids: rows that were being written meanwhile have lower ids than some that
	// are visible already, and must not be overtaken.
	floorMargin = 4096
	// floorTime is how long a floor counts: a row that came back is seen after it.
	floorTime = time.Second
)

// floors remembers where in the queue each worker found its rows. The entries of
// what was taken stay in the index until the next vacuum, a minute's worth as a
// rule; a look that began at the oldest end would walk over all of them. A floor is
// only kept while batches are full and nothing was passed over. The zero value is
// ready.
type floors struct {
	mu  sync.Mutex
	all map[int]floor
}

type floor struct {
	above int64
	until time.Time
}

// get returns the id above which the worker looks; 0 for a look at everything.
func (f *floors) get(worker int, now time.Time) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.all[worker]; ok && now.Before(known.until) {
		return known.above
	}
	if f.all == nil {
		f.all = map[int]floor{}
	}
	f.all[worker] = floor{until: now.Add(floorTime)}
	return 0
}

// raise says that the worker's oldest row has this id; it follows get.
func (f *floors) raise(worker int, oldest int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if known, ok := f.all[worker]; ok {
		known.above = max(oldest-floorMargin, 0)
		f.all[worker] = known
	}
}

// drop has the worker look at everything next.
func (f *floors) drop(worker int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.all, worker)
}
