package porttest

import (
	"context"
	"crypto/rand"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// busRowID numbers outbox rows over all tests of the process, as one outbox
// would.
var busRowID atomic.Int64

// busID is a random identifier.
func busID() domain.ID {
	var id domain.ID
	_, _ = rand.Read(id[:]) // never fails
	return id
}

// busProject makes the events of one project.
type busProject struct {
	id    domain.ProjectID
	tasks []domain.TaskID
	next  int64
}

func newBusProject() *busProject {
	return &busProject{
		id:    domain.ProjectID{ID: busID()},
		tasks: []domain.TaskID{{ID: busID()}, {ID: busID()}, {ID: busID()}},
	}
}

// rows makes the next n events, with every field set that an event can carry.
func (p *busProject) rows(n int) []ports.OutboxRow {
	rows := make([]ports.OutboxRow, n)
	for i := range rows {
		p.next++
		progress := int(p.next % 100)
		trace := domain.TraceID{ID: busID()}
		event := domain.Event{
			TenantID: domain.TenantID{ID: busID()}, ProjectID: p.id, UserID: domain.UserID{ID: busID()},
			TaskID: p.tasks[p.next%3], AttemptID: domain.AttemptID{ID: busID()},
			Version: p.next, Type: domain.EventTaskStatusChanged, Status: domain.Status(domain.PhaseRunning),
			Phase: domain.PhaseRunning, Cancel: domain.CancelNone, Stage: domain.StageGenerating,
			Progress: &progress, Source: domain.SourcePoll, TraceID: trace,
		}
		if p.next%5 == 0 {
			event.Error = &domain.PublicError{Code: domain.ClassProvider, Retryable: true, TraceID: trace}
			event.AssetID = domain.AssetID{ID: busID()}
		}
		rows[i] = ports.OutboxRow{ID: busRowID.Add(1), Event: ports.StoredEvent{
			Event: event, EventID: p.next,
			CreatedAt: time.UnixMilli(1_700_000_000_000 + p.next).UTC(),
		}}
	}
	return rows
}

// busProjects makes n projects with m events each; the rows of one project are
// in order, those of different projects are interleaved.
func busProjects(n, m int) []ports.OutboxRow {
	all := make([][]ports.OutboxRow, n)
	for i := range all {
		all[i] = newBusProject().rows(m)
	}
	var rows []ports.OutboxRow
	for event := range m {
		for project := range n {
			rows = append(rows, all[project][event])
		}
	}
	return rows
}

func busEvents(rows []ports.OutboxRow) []ports.StoredEvent {
	events := make([]ports.StoredEvent, len(rows))
	for i, r := range rows {
		events[i] = r.Event
	}
	return events
}

// busRecorder is a handler that remembers what it was called with.
type busRecorder struct {
	// before is called with each batch and decides the handler's result; nil
	// succeeds.
	before func(events []ports.StoredEvent) error

	mu      sync.Mutex
	batches [][]ports.StoredEvent // every call
	handled []ports.StoredEvent   // calls that succeeded
	changed chan struct{}
}

func newBusRecorder() *busRecorder { return &busRecorder{changed: make(chan struct{})} }

func (r *busRecorder) handle(_ context.Context, events []ports.StoredEvent) error {
	events = slices.Clone(events)
	r.mu.Lock()
	r.batches = append(r.batches, events)
	r.signal()
	r.mu.Unlock()
	if r.before != nil {
		if err := r.before(events); err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.handled = append(r.handled, events...)
	r.signal()
	return nil
}

// signal wakes every await; the caller holds mu.
func (r *busRecorder) signal() {
	close(r.changed)
	r.changed = make(chan struct{})
}

func (r *busRecorder) calls() [][]ports.StoredEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.batches)
}

func (r *busRecorder) events() []ports.StoredEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.handled)
}

// await waits until the recorder's state satisfies done.
func (r *busRecorder) await(t *testing.T, patience time.Duration, what string, done func() bool) {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	for {
		r.mu.Lock()
		changed := r.changed
		r.mu.Unlock()
		if done() {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("after %v still waiting for %s; %d events were handled in %d calls", patience, what, len(r.events()), len(r.calls()))
		}
	}
}

// awaitAll waits until every row was handled at least once.
func (r *busRecorder) awaitAll(t *testing.T, patience time.Duration, rows []ports.OutboxRow) {
	t.Helper()
	r.await(t, patience, "all published events", func() bool { return len(busMissing(r.events(), rows)) == 0 })
}

// busKey names an event.
type busKey struct {
	project domain.ProjectID
	event   int64
}

func busKeyOf(e ports.StoredEvent) busKey { return busKey{e.ProjectID, e.EventID} }

func busMissing(events []ports.StoredEvent, rows []ports.OutboxRow) []busKey {
	have := make(map[busKey]bool, len(events))
	for _, e := range events {
		have[busKeyOf(e)] = true
	}
	var missing []busKey
	for _, r := range rows {
		if !have[busKeyOf(r.Event)] {
			missing = append(missing, busKeyOf(r.Event))
		}
	}
	return missing
}

// wantFirstsInOrder checks that the first occurrences of each project's events
// come without a gap and in order.
func wantFirstsInOrder(t *testing.T, events []ports.StoredEvent) {
	t.Helper()
	seen := map[domain.ProjectID]int64{}
	for _, e := range events {
		switch last := seen[e.ProjectID]; {
		case e.EventID == last+1:
			seen[e.ProjectID] = e.EventID
		case e.EventID > last:
			t.Fatalf("project %s: event %d came before %d", e.ProjectID, e.EventID, last+1)
		}
	}
}

func flattenBus(batches [][]ports.StoredEvent) []ports.StoredEvent {
	return slices.Concat(batches...)
}
