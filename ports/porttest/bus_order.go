package porttest

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// busOrderSurvivesRepeatedSuffixes publishes as a relay does whose answers get
// lost: batches in order, and now and then a random suffix of a project again
// before it goes on. What a consumer sees for the first time is in order per
// project, and so per task, and nothing is missing.
func busOrderSurvivesRepeatedSuffixes(t *testing.T, f BusFixture) {
	const projects, events, step = 20, 100, 10
	r := newBusRecorder()
	f.subscribe(t, "order", r)
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // a fixed seed repeats a failure
	all := make([][]ports.OutboxRow, projects)
	for i := range all {
		all[i] = newBusProject().rows(events)
	}
	var rows []ports.OutboxRow
	for from := 0; from < events; from += step {
		var batch, again []ports.OutboxRow
		for _, project := range all {
			batch = append(batch, project[from:from+step]...)
			if random.IntN(3) == 0 {
				again = append(again, project[random.IntN(from+step):from+step]...)
			}
		}
		f.publish(t, batch)
		if len(again) > 0 {
			f.publish(t, again)
		}
		rows = append(rows, batch...)
	}
	r.awaitAll(t, f.Patience, rows)
	wantFirstsInOrder(t, r.events())
	wantTasksInOrder(t, r.events())
}

// wantTasksInOrder checks first occurrences per task.
func wantTasksInOrder(t *testing.T, events []ports.StoredEvent) {
	t.Helper()
	versions := map[domain.TaskID]int64{}
	seen := map[busKey]bool{}
	for _, e := range events {
		if seen[busKeyOf(e)] {
			continue
		}
		seen[busKeyOf(e)] = true
		if last := versions[e.TaskID]; e.Version <= last {
			t.Fatalf("task %s: version %d came after %d", e.TaskID, e.Version, last)
		}
		versions[e.TaskID] = e.Version
	}
}

// busCloseWaitsForHandler closes a subscription whose handler is at work.
func busCloseWaitsForHandler(t *testing.T, f BusFixture) {
	r := newBusRecorder()
	entered, release := make(chan struct{}), make(chan struct{})
	first := true
	r.before = func([]ports.StoredEvent) error {
		if first {
			first = false
			close(entered)
			<-release
		}
		return nil
	}
	s := f.subscribe(t, "slow", r)
	published := make(chan error, 1)
	rows := busProjects(1, 3)
	go func() { published <- f.Bus.Publish(t.Context(), rows) }()
	f.within(t, "the handler to be called", entered)

	closed := make(chan struct{})
	go func() {
		defer close(closed)
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
		if len(r.events()) == 0 {
			t.Error("Close returned before the running handler")
		}
	}()
	close(release)
	f.within(t, "Close to return", closed)
	calls := len(r.calls())
	if err := s.Close(); err != nil {
		t.Errorf("second close: %v", err)
	}
	if err := <-published; err != nil {
		t.Errorf("publish: %v", err)
	}
	f.publish(t, busProjects(2, 3))
	if now := len(r.calls()); now != calls {
		t.Errorf("the handler was called %d times after Close", now-calls)
	}
}

// busCloseUnderLoad closes and opens the subscription of a group again and
// again while events are published: together its members miss nothing.
func busCloseUnderLoad(t *testing.T, f BusFixture) {
	const rounds = 4
	r := newBusRecorder()
	s := f.subscribe(t, "load", r)
	p := []*busProject{newBusProject(), newBusProject(), newBusProject()}
	stop := make(chan struct{})
	type outcome struct {
		rows []ports.OutboxRow
		err  error
	}
	done := make(chan outcome, 1)
	go func() {
		var o outcome
		for o.err == nil {
			for _, project := range p {
				batch := project.rows(10)
				o.rows = append(o.rows, batch...)
				o.err = errors.Join(o.err, f.Bus.Publish(t.Context(), batch))
			}
			select {
			case <-stop:
				done <- o
				return
			default:
			}
		}
		done <- o
	}()
	for range rounds {
		seen := len(r.events())
		r.await(t, f.Patience, "events under load", func() bool { return len(r.events()) >= seen+30 })
		closeOnce(t, s)
		s = f.subscribe(t, "load", r)
	}
	close(stop)
	o := <-done
	if o.err != nil {
		t.Fatalf("publish under load: %v", o.err)
	}
	r.awaitAll(t, f.Patience, o.rows)
}

// busAfterClose closes the bus twice and uses it.
func busAfterClose(t *testing.T, f BusFixture) {
	r := newBusRecorder()
	s := f.subscribe(t, "gone", r)
	closeOnce(t, f.Bus)
	closeOnce(t, f.Bus)
	closeOnce(t, s)
	rows := busProjects(2, 1)
	err := f.Bus.Publish(t.Context(), rows)
	var failed *ports.PublishError
	if !errors.As(err, &failed) {
		t.Fatalf("publish after close: %v", err)
	}
	if len(failed.FailedProjects) != 2 || failed.FailedProjects[rows[0].Event.ProjectID.String()] == nil {
		t.Errorf("failed projects: %v", failed.FailedProjects)
	}
	if _, err := f.Bus.Subscribe(t.Context(), "gone", r.handle); err == nil {
		t.Error("subscribe after close succeeded")
	}
}

// within waits for the channel to be closed.
func (f BusFixture) within(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(f.Patience):
		t.Fatalf("waited %v for %s", f.Patience, what)
	}
}
