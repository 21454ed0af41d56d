package porttest

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func orderTests() []storeTest {
	return []storeTest{
		{"OppositeBatches", orderOppositeBatches},
		{"GapFreeUnderRollbacks", orderGapFreeUnderRollbacks},
		{"SnapshotAndEvents", orderSnapshotAndEvents},
		{"TwoStores", orderTwoStores},
	}
}

// checkStream reports what is wrong with a whole stream: a gap, a time that runs
// back, a version that is not the one before plus one (I4, I5), an event of
// another project (I14).
func (b *storeBench) checkStream(events []ports.StoredEvent) {
	b.t.Helper()
	for _, fault := range streamFaults(events) {
		b.t.Error(fault)
	}
}

func streamFaults(events []ports.StoredEvent) []string {
	var faults []string
	versions := map[domain.TaskID]int64{}
	for i, e := range events {
		if e.EventID != int64(i)+1 {
			return append(faults, fmt.Sprintf("event %d stands at place %d", e.EventID, i+1))
		}
		if versions[e.TaskID]++; e.Version != versions[e.TaskID] {
			faults = append(faults, fmt.Sprintf("event %d: version %d of its task, want %d", e.EventID, e.Version, versions[e.TaskID]))
		}
		if i > 0 && (e.CreatedAt.Before(events[i-1].CreatedAt) || e.ProjectID != events[0].ProjectID) {
			faults = append(faults, fmt.Sprintf("event %d: time or project against the event before: %+v, %+v", e.EventID, e, events[i-1]))
		}
	}
	return faults
}

// churn is work without an end that gives an event for every command: tasks are
// canceled and retried, in batches of several tasks in random order.
type churn struct {
	b       *storeBench
	tasks   []made
	rounds  int
	writers int
	// store picks the store of a writer.
	store   func(writer int) ports.Store
	applied atomic.Int64
}

// run writes until each writer has done its rounds. Calls that nobody knows the
// outcome of are made again.
func (c *churn) run() {
	together(c.writers, func(w int) {
		rng := rand.New(rand.NewPCG(uint64(w), 1))
		for range c.rounds {
			var items []ports.Item
			for _, i := range rng.Perm(len(c.tasks)) {
				again, _ := c.b.retry(c.tasks[i])
				items = append(items, c.b.cancel(c.tasks[i]), again)
			}
			results, err := retryUnavailable(func() ([]ports.Result, error) { return c.store(w).Apply(c.b.ctx, items) })
			if err != nil {
				c.b.t.Errorf("Apply: %v", err)
				return
			}
			c.count(results)
		}
	})
}

func (c *churn) count(results []ports.Result) {
	for _, r := range results {
		switch {
		case r.Event != nil:
			c.applied.Add(1)
		case r.Err != nil && !errors.Is(r.Err, domain.ErrTaskTerminal) && !errors.Is(r.Err, domain.ErrNotRetryable):
			c.b.t.Errorf("Apply: item: %v", r.Err)
		}
	}
}

// newChurn makes tasks in several projects.
func (b *storeBench) newChurn(projects, tasksEach, writers, rounds int) (*churn, []domain.ProjectID) {
	b.t.Helper()
	c := &churn{b: b, rounds: rounds, writers: writers, store: func(int) ports.Store { return b.Store }}
	ids := []domain.ProjectID{b.project}
	for len(ids) < projects {
		ids = append(ids, b.newProject(b.tenant, fmt.Sprintf("project %d", len(ids))))
	}
	for _, project := range ids {
		for range tasksEach {
			c.tasks = append(c.tasks, b.createIn(project))
			c.applied.Add(1)
		}
	}
	return c, ids
}

// checkChurn compares the streams with what the writers were told.
func (b *storeBench) checkChurn(c *churn, projects []domain.ProjectID) {
	b.t.Helper()
	var total int64
	last := map[domain.TaskID]ports.StoredEvent{}
	for _, project := range projects {
		events := b.events(project)
		b.checkStream(events)
		total += int64(len(events))
		for _, e := range events {
			last[e.TaskID] = e
		}
		if head := b.head(project); head.EventID != int64(len(events)) {
			b.t.Errorf("head %v of a stream of %d events", head, len(events))
		}
	}
	if total != c.applied.Load() {
		b.t.Errorf("%d events stored, %d reported to the writers", total, c.applied.Load())
	}
	for _, m := range c.tasks {
		view, e := b.task(m), last[m.task]
		if view.Task.Version != e.Version || view.Task.LastEventID != e.EventID || view.Task.Status() != e.Status {
			b.t.Errorf("task at version %d, event %d, %s; its last event says %d, %d, %s", view.Task.Version, view.Task.LastEventID, view.Task.Status(), e.Version, e.EventID, e.Status)
		}
	}
}

// follow reads the streams behind the writers until they are done, and hands
// back what it saw.
func (b *storeBench) follow(projects []domain.ProjectID, done <-chan struct{}) map[domain.ProjectID][]ports.StoredEvent {
	seen := map[domain.ProjectID][]ports.StoredEvent{}
	cursors := map[domain.ProjectID]domain.Cursor{}
	for last := false; ; {
		select {
		case <-done:
			last = true // one more round sees everything
		default:
		}
		for _, project := range projects {
			for more := true; more; {
				page, err := b.Store.After(b.ctx, project, cursors[project], 50)
				if err != nil || page.Reset != "" {
					b.t.Errorf("After(%v): reset %q, error %v", cursors[project], page.Reset, err)
					return seen
				}
				if more = len(page.Events) > 0; more {
					seen[project] = append(seen[project], page.Events...)
					cursors[project] = page.Events[len(page.Events)-1].Cursor()
				}
			}
		}
		if last {
			return seen
		}
	}
}

// orderOppositeBatches: batches with common tasks in opposite order neither
// deadlock nor leave a gap, and a reader that follows misses nothing.
func orderOppositeBatches(t *testing.T, b *storeBench) {
	c, projects := b.newChurn(2, 4, 8, 6)
	b.checkFollowed(t, c, projects)
}

func (b *storeBench) checkFollowed(t *testing.T, c *churn, projects []domain.ProjectID) {
	done := make(chan struct{})
	var wg sync.WaitGroup
	var seen [2]map[domain.ProjectID][]ports.StoredEvent
	for i := range seen {
		wg.Go(func() { seen[i] = b.follow(projects, done) })
	}
	c.run()
	close(done)
	wg.Wait()
	b.checkChurn(c, projects)
	for _, project := range projects {
		head := b.head(project)
		for i := range seen {
			for _, fault := range streamFaults(seen[i][project]) {
				t.Errorf("reader %d of %s: %s", i, project, fault)
			}
			if n := len(seen[i][project]); int64(n) != head.EventID {
				t.Errorf("reader %d of %s saw %d of %d events", i, project, n, head.EventID)
			}
		}
	}
}

func orderGapFreeUnderRollbacks(t *testing.T, b *storeBench) {
	b.needRollback()
	c, projects := b.newChurn(2, 3, 6, 6)
	b.InjectRollback(0.2)
	b.checkFollowed(t, c, projects)
}

// orderTwoStores: two processes write the same tasks.
func orderTwoStores(t *testing.T, b *storeBench) {
	if b.Reopen == nil {
		t.Skip("nobody else can open this store")
	}
	c, projects := b.newChurn(2, 3, 4, 5)
	stores := []ports.Store{b.Store, b.Reopen(t)}
	c.store = func(w int) ports.Store { return stores[w%2] }
	b.checkFollowed(t, c, projects)
}

// folded is what a client knows of a task.
type folded struct {
	version, event int64
	status         domain.Status
	stage          domain.Stage
	attempt        domain.AttemptID
}

// orderSnapshotAndEvents: a snapshot and the events after its cursor give the
// next snapshot (I7).
func orderSnapshotAndEvents(t *testing.T, b *storeBench) {
	c, _ := b.newChurn(1, 5, 3, 12)
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.run()
	}()
	defer func() { <-done }() // also when a check ends the test
	state, cursor := b.snapshot()
	for last := false; !last; {
		select {
		case <-done:
			last = true
		default:
		}
		want, next := b.snapshot()
		b.foldUpTo(state, cursor, next)
		for task, w := range want {
			if state[task] != w {
				t.Fatalf("snapshot at %v plus the events up to %v: %+v, but the snapshot there says %+v", cursor, next, state[task], w)
			}
		}
		state, cursor = want, next
	}
}

// snapshot lists all tasks of the project with the cursor of the same moment.
func (b *storeBench) snapshot() (map[domain.TaskID]folded, domain.Cursor) {
	b.t.Helper()
	page, err := b.Store.Tasks(b.ctx, ports.ListParams{ProjectID: b.project, Limit: 100})
	if err != nil {
		b.t.Fatalf("Tasks: %v", err)
	}
	state := map[domain.TaskID]folded{}
	for _, v := range page.Tasks {
		state[v.Task.ID] = folded{v.Task.Version, v.Task.LastEventID, v.Task.Status(), v.Task.Stage, v.Attempt.ID}
	}
	return state, page.Cursor
}

// foldUpTo applies the events between two cursors to what a client knows.
func (b *storeBench) foldUpTo(state map[domain.TaskID]folded, from, to domain.Cursor) {
	b.t.Helper()
	page, err := b.Store.After(b.ctx, b.project, from, 1_000_000)
	if err != nil || page.Reset != "" {
		b.t.Fatalf("After(%v): reset %q, error %v", from, page.Reset, err)
	}
	for _, e := range page.Events {
		if e.EventID > to.EventID {
			return
		}
		state[e.TaskID] = folded{e.Version, e.EventID, e.Status, e.Stage, e.AttemptID}
	}
}
