package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func sweepTests() []storeTest {
	return []storeTest{
		{"Books", sweepBooks},
		{"Waiting", sweepWaiting},
		{"PartitionDaysAhead", sweepPartitionDaysAhead},
	}
}

// sweepBooks: sums add up over all nodes, and the newest run is what was last,
// whoever reports first.
func sweepBooks(t *testing.T, b *storeBench) {
	record := func(runs ...ports.SweepRun) {
		t.Helper()
		if err := b.Store.RecordSweeps(b.ctx, runs); err != nil {
			t.Fatalf("RecordSweeps: %v", err)
		}
	}
	now := b.Clock.Now()
	earlier := now.Add(-time.Minute)
	record()
	record(
		ports.SweepRun{Chore: "inbox", LastAt: now, LastRows: 5, LastTook: 20 * time.Millisecond, Runs: 2, Rows: 7},
		ports.SweepRun{Chore: "heads", LastAt: now, Runs: 1},
	)
	record(ports.SweepRun{Chore: "inbox", LastAt: earlier, LastRows: 1, LastTook: time.Second, FailedAt: &earlier, Runs: 1, Rows: 1, Errors: 1})
	runs, err := b.Store.Sweeps(b.ctx)
	if err != nil || len(runs) != 2 || runs[0].Chore != "heads" {
		t.Fatalf("sweeps %+v, %v", runs, err)
	}
	r := runs[1]
	if !r.LastAt.Equal(now) || r.LastRows != 5 || r.LastTook != 20*time.Millisecond || r.Runs != 3 || r.Rows != 8 || r.Errors != 1 || r.FailedAt == nil || !r.FailedAt.Equal(earlier) {
		t.Errorf("the books of inbox: %+v", r)
	}
	record(ports.SweepRun{Chore: "inbox", LastAt: now.Add(time.Minute), Runs: 1})
	if runs, err = b.Store.Sweeps(b.ctx); err != nil || runs[1].FailedAt == nil || runs[1].LastRows != 0 {
		t.Errorf("after a good run: %+v, %v", runs, err)
	}
}

func (b *storeBench) waiting() map[string]ports.Waiting {
	b.t.Helper()
	all, err := b.Store.Waiting(b.ctx, b.Clock.Now())
	if err != nil {
		b.t.Fatalf("Waiting: %v", err)
	}
	byName := map[string]ports.Waiting{}
	for i, w := range all {
		if i > 0 && all[i-1].Name >= w.Name {
			b.t.Errorf("%s after %s", w.Name, all[i-1].Name)
		}
		byName[w.Name] = w
	}
	return byName
}

func sweepWaiting(t *testing.T, b *storeBench) {
	for name, w := range b.waiting() {
		if w.Rows != 0 || w.Oldest != nil {
			t.Errorf("in an empty store %s: %+v", name, w)
		}
	}
	m := b.submitted()
	first := b.Clock.Now()
	b.receive(b.delivery(m, "evt-1"))
	b.Clock.Advance(time.Minute)
	b.receive(b.delivery(m, "evt-2"))
	check := func(name string, rows int, oldest time.Time) {
		t.Helper()
		if w := b.waiting()[name]; w.Rows != rows || (w.Oldest == nil) != (rows == 0) || w.Oldest != nil && !w.Oldest.Equal(oldest) {
			t.Errorf("%s: %+v; want %d since %v", name, w, rows, oldest)
		}
	}
	check(ports.WaitingPending, 2, first)
	var id int64
	b.process(broken(&id))
	check(ports.WaitingPending, 0, first)
	check(ports.WaitingRetry, 2, first)
	b.receive(b.delivery(made{vendorID: "job-unknown", token: "unknown"}, "evt-3"))
	b.process(b.always(domain.ObservedRunning))
	check(ports.WaitingOrphan, 1, b.Clock.Now())
	b.must(b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded))
	check(ports.WaitingConflicts, 1, b.Clock.Now())
	check(ports.WaitingCases, 1, b.Clock.Now())
	due := b.Clock.Now()
	b.Clock.Advance(time.Hour)
	if w := b.waiting()[ports.WaitingReconciliations]; w.Rows != 1 || w.Oldest == nil || !w.Oldest.After(due) || w.Oldest.After(b.Clock.Now()) {
		t.Errorf("the extra query about a conflict: %+v", w)
	}
	check(ports.WaitingDead, 0, first)
}

func sweepPartitionDaysAhead(t *testing.T, b *storeBench) {
	if days, err := b.Store.PartitionDaysAhead(b.ctx); err != nil || days != 7 {
		t.Errorf("%d days ahead, %v; want 7", days, err)
	}
}
