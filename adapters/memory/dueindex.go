package memory

import (
	"context"
	"sync"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// DueIndex is ports.DueIndex in process.
type DueIndex struct {
	mu      sync.Mutex
	moments map[time.Time]struct{}
}

var _ ports.DueIndex = (*DueIndex)(nil)

// NewDueIndex returns an empty index.
func NewDueIndex() *DueIndex { return &DueIndex{moments: map[time.Time]struct{}{}} }

// dueStep is the grain of the moments.
const dueStep = 50 * time.Millisecond

// Note implements ports.DueIndex.
func (d *DueIndex) Note(ctx context.Context, moments []time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, at := range moments {
		d.moments[at.UTC().Add(dueStep-1).Truncate(dueStep)] = struct{}{}
	}
	return ctx.Err()
}

// Next implements ports.DueIndex.
func (d *DueIndex) Next(ctx context.Context, now time.Time) (ports.DueAnswer, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	var answer ports.DueAnswer
	for at := range d.moments {
		switch {
		case !at.After(now):
			delete(d.moments, at)
			answer.Due = true
		case answer.Next.IsZero() || at.Before(answer.Next):
			answer.Next = at
		}
	}
	return answer, ctx.Err()
}

// Flush forgets everything, as a Redis may at any time.
func (d *DueIndex) Flush() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.moments)
}
