package app

import (
	"sync"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Bell wakes every loop that waits for it. A ring is an accelerator and may be
// missed without harm: each loop also looks by itself. A nil Bell never rings.
type Bell struct {
	mu sync.Mutex
	ch chan struct{}
}

// Wait returns a channel that the next Ring closes. A loop takes it before it
// looks for work, so that a ring meanwhile is not lost.
func (b *Bell) Wait() <-chan struct{} {
	if b == nil {
		return nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch == nil {
		b.ch = make(chan struct{})
	}
	return b.ch
}

// Ring wakes all who wait. It never blocks.
func (b *Bell) Ring() {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.ch != nil {
		close(b.ch)
		b.ch = nil
	}
}

// Bells are the wake-ups between the use cases of one process. Processes do not
// ring for each other: there the polling interval is the floor.
type Bells struct {
	// Submit rings when an attempt is created.
	Submit *Bell
	// Process rings when deliveries are stored.
	Process *Bell
	// Poll rings when a query is wanted at once.
	Poll *Bell
	// Relay rings when events are stored.
	Relay *Bell
	// Media and Cancel ring when an operation is started.
	Media  *Bell
	Cancel *Bell
}

// NewBells returns a full set.
func NewBells() Bells {
	return Bells{Submit: &Bell{}, Process: &Bell{}, Poll: &Bell{}, Relay: &Bell{}, Media: &Bell{}, Cancel: &Bell{}}
}

// Committed rings for whatever the stored results give other roles to do.
func (b Bells) Committed(results []ports.Result) {
	var relay, poll, submit, media, cancel bool
	for _, r := range results {
		relay = relay || r.Event != nil
		poll = poll || r.Decision.Verdict.Kind == domain.VerdictNeedsQuery || r.Decision.Conflict != nil
		submit = submit || r.Decision.NewAttempt != nil
		for _, op := range r.Decision.Operations {
			media = media || op.Type == domain.OperationFetchOutput
			cancel = cancel || op.Type == domain.OperationCancelProvider
		}
	}
	rings := []struct {
		bell   *Bell
		wanted bool
	}{{b.Relay, relay}, {b.Poll, poll}, {b.Submit, submit}, {b.Media, media}, {b.Cancel, cancel}}
	for _, r := range rings {
		if r.wanted {
			r.bell.Ring()
		}
	}
}
