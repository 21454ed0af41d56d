package porttest

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/ports"
)

// BusFixture is a fresh bus with nothing on it.
type BusFixture struct {
	Bus ports.Bus
	// Patience bounds every wait for a delivery, those after a handler's failure
	// included. Default 10 s.
	Patience time.Duration
	// Exact says that the bus repeats nothing by itself: every event is handled
	// once per group when no handler fails. A broker may repeat at any time.
	Exact bool
}

// Bus runs the conformance suite of [ports.Bus].
func Bus(t *testing.T, open func(t *testing.T) BusFixture) {
	tests := []struct {
		name string
		run  func(*testing.T, BusFixture)
	}{
		{"DeliversWholeEvents", busDeliversWholeEvents},
		{"BatchesAreSorted", busBatchesAreSorted},
		{"RepeatedPublish", busRepeatedPublish},
		{"OrderSurvivesRepeatedSuffixes", busOrderSurvivesRepeatedSuffixes},
		{"ErrorBringsBatchBack", busErrorBringsBatchBack},
		{"PanicBringsBatchBack", busPanicBringsBatchBack},
		{"NewGroupStartsLater", busNewGroupStartsLater},
		{"GroupMembersShare", busGroupMembersShare},
		{"CloseWaitsForHandler", busCloseWaitsForHandler},
		{"CloseUnderLoad", busCloseUnderLoad},
		{"AfterClose", busAfterClose},
		{"Nothing", busNothing},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			f.Patience = cmp.Or(f.Patience, 10*time.Second)
			test.run(t, f)
		})
	}
}

func busDeliversWholeEvents(t *testing.T, f BusFixture) {
	a, b := newBusRecorder(), newBusRecorder()
	f.subscribe(t, "a", a)
	f.subscribe(t, "b", b)
	rows := busProjects(30, 20)
	f.publish(t, rows)
	for _, r := range []*busRecorder{a, b} {
		r.awaitAll(t, f.Patience, rows)
		wantFirstsInOrder(t, r.events())
		got := r.events()
		if f.Exact && len(got) != len(rows) {
			t.Errorf("got %d events of %d", len(got), len(rows))
		}
		if diff := gocmp.Diff(busByKey(busEvents(rows)), busByKey(got)); diff != "" {
			t.Errorf("events changed on the way (-published +handled):\n%s", diff)
		}
	}
}

func busByKey(events []ports.StoredEvent) map[busKey]ports.StoredEvent {
	m := make(map[busKey]ports.StoredEvent, len(events))
	for _, e := range events {
		m[busKeyOf(e)] = e
	}
	return m
}

func busBatchesAreSorted(t *testing.T, f BusFixture) {
	r := newBusRecorder()
	f.subscribe(t, "sorted", r)
	rows := busProjects(10, 50)
	f.publish(t, rows)
	r.awaitAll(t, f.Patience, rows)
	for _, batch := range r.calls() {
		if len(batch) == 0 {
			t.Fatal("the handler was called with nothing")
		}
		if !slices.IsSortedFunc(batch, func(a, b ports.StoredEvent) int {
			return cmp.Or(slices.Compare(a.ProjectID.ID[:], b.ProjectID.ID[:]), cmp.Compare(a.EventID, b.EventID))
		}) {
			t.Fatalf("a batch of %d is not in (project, event) order", len(batch))
		}
	}
}

func busRepeatedPublish(t *testing.T, f BusFixture) {
	r := newBusRecorder()
	f.subscribe(t, "repeat", r)
	rows := busProjects(3, 10)
	f.publish(t, rows)
	f.publish(t, rows[9:])
	f.publish(t, rows)
	r.awaitAll(t, f.Patience, rows)
	wantFirstsInOrder(t, r.events())
}

func busErrorBringsBatchBack(t *testing.T, f BusFixture) {
	f.failedBatchComesBack(t, func() error { return errors.New("not now") })
}

func busPanicBringsBatchBack(t *testing.T, f BusFixture) {
	f.failedBatchComesBack(t, func() error { panic("out of order") })
}

// failedBatchComesBack lets the first three calls of one group fail while
// another group goes on.
func (f BusFixture) failedBatchComesBack(t *testing.T, fail func() error) {
	t.Helper()
	failing, healthy := newBusRecorder(), newBusRecorder()
	var failures atomic.Int64
	failing.before = func([]ports.StoredEvent) error {
		if failures.Add(1) <= 3 {
			return fail()
		}
		return nil
	}
	f.subscribe(t, "failing", failing)
	f.subscribe(t, "healthy", healthy)
	rows := busProjects(4, 5)
	f.publish(t, rows)
	healthy.awaitAll(t, f.Patience, rows)
	failing.awaitAll(t, f.Patience, rows)
	if f.Exact && len(healthy.events()) != len(rows) {
		t.Errorf("the healthy group handled %d events of %d: it was run again", len(healthy.events()), len(rows))
	}
	wantFirstsInOrder(t, flattenBus(failing.calls()))
}

func busNewGroupStartsLater(t *testing.T, f BusFixture) {
	p := newBusProject()
	before := p.rows(5)
	witness := newBusRecorder()
	f.subscribe(t, "witness", witness)
	f.publish(t, before)
	witness.awaitAll(t, f.Patience, before)

	late := newBusRecorder()
	f.subscribe(t, "late", late)
	after := p.rows(5)
	f.publish(t, after)
	late.awaitAll(t, f.Patience, after)
	for _, e := range late.events() {
		if e.EventID <= 5 {
			t.Errorf("the new group got event %d, published before it subscribed", e.EventID)
		}
	}
}

func busGroupMembersShare(t *testing.T, f BusFixture) {
	all := newBusRecorder()
	f.subscribe(t, "team", all)
	second := f.subscribe(t, "team", all)
	rows := busProjects(20, 10)
	f.publish(t, rows)
	all.awaitAll(t, f.Patience, rows)
	if f.Exact && len(all.events()) != len(rows) {
		t.Errorf("two members handled %d events of %d", len(all.events()), len(rows))
	}
	closeOnce(t, second)
	more := busProjects(20, 10)
	f.publish(t, more)
	all.awaitAll(t, f.Patience, more)
}

func busNothing(t *testing.T, f BusFixture) {
	f.publish(t, nil)
	f.publish(t, busProjects(2, 2)) // nobody listens
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	r := newBusRecorder()
	f.subscribe(t, "idle", r)
	if err := f.Bus.Publish(ctx, busProjects(1, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("publish with a canceled context: %v", err)
	}
	if _, err := f.Bus.Subscribe(ctx, "canceled", r.handle); !errors.Is(err, context.Canceled) {
		t.Errorf("subscribe with a canceled context: %v", err)
	}
}

func (f BusFixture) publish(t *testing.T, rows []ports.OutboxRow) {
	t.Helper()
	if err := f.Bus.Publish(t.Context(), rows); err != nil {
		t.Fatalf("publish %d rows: %v", len(rows), err)
	}
}

func (f BusFixture) subscribe(t *testing.T, group string, r *busRecorder) ports.Subscription {
	t.Helper()
	s, err := f.Bus.Subscribe(t.Context(), group, r.handle)
	if err != nil {
		t.Fatalf("subscribe group %s: %v", group, err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close the subscription of group %s: %v", group, err)
		}
	})
	return s
}

func closeOnce(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
}
