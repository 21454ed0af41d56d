package app_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func TestSweepDeferredProgress(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.deliver(view.Attempt.ID, `{"event":"1","status":"running","progress":10}`)
	b.step(b.process)
	b.clock.Advance(300 * time.Millisecond)
	b.deliver(view.Attempt.ID, `{"event":"2","status":"running","progress":50}`)
	b.step(b.process)
	if got := b.view(view.Task.ID); *got.Task.Progress != 10 {
		t.Fatalf("progress %d was not throttled", *got.Task.Progress)
	}
	b.clock.Advance(time.Second)
	b.step(b.sweep)
	if got := b.view(view.Task.ID); *got.Task.Progress != 50 {
		t.Errorf("progress is %d, want what was deferred", *got.Task.Progress)
	}
}

func TestSweepOverdue(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.clock.Advance(time.Hour)
	b.step(b.sweep)
	got := b.want(view.Task.ID, queued, domain.AttemptSubmitted)
	if !got.Attempt.Overdue || got.Attempt.NextPollAt == nil {
		t.Errorf("attempt %+v", got.Attempt)
	}
	cases, err := b.store.Cases(b.ctx(), domain.CaseOverdue, 10)
	b.must(err)
	if len(cases) != 1 {
		t.Errorf("%d cases", len(cases))
	}
	b.clock.Advance(time.Hour)
	if n := b.step(b.sweep); n != 0 {
		t.Errorf("swept %d again", n)
	}
}

// brokenDesk fails one chore.
type brokenDesk struct{ *memory.Store }

func (brokenDesk) RepairHeads(context.Context, int) ([]domain.ProjectID, error) { return nil, errAway }

func TestSweepOneChoreDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	b := setup(t)
	s, err := app.NewSweep(app.SweepDeps{
		Env: b.env, Transitions: b.store, Inbox: b.store, Work: b.store, Desk: brokenDesk{b.store}, Log: b.store, Vendors: app.NewVendors(b.vendor),
	}, app.SweepConfig{})
	b.must(err)
	view := b.submitted()
	b.clock.Advance(time.Hour)
	if n, err := s.Step(b.ctx()); n != 1 || err == nil {
		t.Errorf("worked %d, error %v", n, err)
	}
	if !b.view(view.Task.ID).Attempt.Overdue {
		t.Error("the overdue attempt was not found")
	}
	if n, err := s.Step(b.ctx()); n != 0 || err != nil {
		t.Errorf("before any period is over: worked %d, error %v", n, err)
	}
}

// fullDesk has more rows past their time than one batch takes.
type fullDesk struct {
	*memory.Store
	left int
}

func (d *fullDesk) CleanExpired(_ context.Context, _ time.Time, limit int) (map[string]int, error) {
	n := min(limit, d.left)
	d.left -= n
	return map[string]int{"deliveries": n, "cases": min(n, 1)}, nil
}

// TestSweepUntilClean: what is past its time goes as fast as it came.
func TestSweepUntilClean(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := &fullDesk{b.store, 7}
	s, err := app.NewSweep(app.SweepDeps{
		Env: b.env, Transitions: b.store, Inbox: b.store, Work: b.store, Desk: desk, Log: b.store, Vendors: app.NewVendors(b.vendor),
	}, app.SweepConfig{Batch: 3})
	b.must(err)
	for _, want := range []int{3, 3, 1, 0} {
		if n, err := s.Step(b.ctx()); n != want || err != nil {
			t.Errorf("removed %d, %v; want %d", n, err, want)
		}
	}
}

func TestSweepLearnsDurations(t *testing.T) {
	t.Parallel()
	b := setup(t)
	spy := newMeterSpy()
	b.env.Metrics = spy
	view := b.submitted()
	b.vendor.onQuery = succeeded
	b.clock.Advance(time.Minute)
	b.step(b.poll)
	b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
	sweep, err := app.NewSweep(app.SweepDeps{
		Env: b.env, Transitions: b.store, Inbox: b.store, Work: b.store, Desk: b.store, Log: b.store, Durations: b.store, Vendors: app.NewVendors(b.vendor),
	}, app.SweepConfig{})
	b.must(err)
	b.step(sweep)
	for _, quantile := range []string{"0.5", "0.95"} {
		if got := spy.set["aivedio_model_duration_seconds[acme kite-1 "+quantile+"]"]; got != 60 {
			t.Errorf("quantile %s: %v s, want 60", quantile, got)
		}
	}
}

// TestSweepMeasures: each chore has its figures, what waits has its age, and the
// books show the newest run of every chore.
func TestSweepMeasures(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := &gauges{}
	b.env.Metrics = g
	b.build(b.store, b.store)
	b.submitted()
	_, err := b.receive.Deliver(b.ctx(), deliveryOf(`{"event":"1","job":"job-9","status":"running"}`))
	b.must(err)
	b.step(b.process) // an orphan
	b.clock.Advance(time.Hour)
	b.step(b.sweep)
	b.clock.Advance(10 * time.Second)
	b.step(b.sweep)
	for _, tt := range []struct {
		queue     string
		rows, age float64
	}{
		{ports.WaitingPending, 1, 3610}, {ports.WaitingCases, 1, 10}, {ports.WaitingOrphan, 0, 0}, {ports.WaitingDead, 0, 0}, {ports.WaitingConflicts, 0, 0},
	} {
		if rows, age := g.get(app.MetricWaitingRows, tt.queue), g.get(app.MetricWaitingAge, tt.queue); rows != tt.rows || age != tt.age {
			t.Errorf("%s: %v rows, the oldest of %v s; want %v of %v s", tt.queue, rows, age, tt.rows, tt.age)
		}
	}
	if days := g.get(app.MetricPartitionDays); days != 7 {
		t.Errorf("%v days ahead", days)
	}
	if n := g.get(app.MetricSweepRuns, "overdue", "ok"); n != 1 {
		t.Errorf("%v runs of overdue", n)
	}
	runs, err := b.store.Sweeps(b.ctx())
	b.must(err)
	books := map[string]ports.SweepRun{}
	for _, r := range runs {
		books[r.Chore] = r
	}
	if r := books["overdue"]; r.Runs != 1 || r.Rows != 1 || r.LastRows != 1 || r.Errors != 0 || !r.LastAt.Equal(b.clock.Now().Add(-10*time.Second)) {
		t.Errorf("overdue %+v", r)
	}
	if r := books["inbox"]; r.Runs != 2 || r.Rows != 1 || r.LastRows != 0 {
		t.Errorf("inbox %+v", r)
	}
}

// TestSweepFailuresAreBooked: an error has its time and its number.
func TestSweepFailuresAreBooked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	g := &gauges{}
	b.env.Metrics = g
	s, err := app.NewSweep(app.SweepDeps{
		Env: b.env, Transitions: b.store, Inbox: b.store, Work: b.store, Desk: brokenDesk{b.store}, Log: b.store, Vendors: app.NewVendors(b.vendor),
	}, app.SweepConfig{})
	b.must(err)
	if _, err := s.Step(b.ctx()); err == nil {
		t.Fatal("a broken chore passes")
	}
	runs, err := b.store.Sweeps(b.ctx())
	b.must(err)
	if len(runs) < 5 {
		t.Errorf("%d chores are booked", len(runs))
	}
	for _, r := range runs {
		if failed := r.Chore == "heads"; (r.Errors == 1) != failed || (r.FailedAt != nil) != failed {
			t.Errorf("run %+v", r)
		}
	}
	if g.get(app.MetricSweepRuns, "heads", "failed") != 1 {
		t.Error("the failed run is not counted")
	}
}

// fewDays is a store whose partitions run out.
type fewDays struct {
	*memory.Store
	days int
}

func (f *fewDays) PartitionDaysAhead(context.Context) (int, error) { return f.days, nil }

func TestSweepWarnsOfPartitions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var log bytes.Buffer
	b.env.Logger = slog.New(slog.NewTextHandler(&log, nil))
	days := &fewDays{b.store, 3}
	s, err := app.NewSweep(app.SweepDeps{
		Env: b.env, Transitions: b.store, Inbox: b.store, Work: b.store, Desk: b.store, Log: days, Vendors: app.NewVendors(b.vendor),
	}, app.SweepConfig{})
	b.must(err)
	for _, tt := range []struct{ days, said int }{{3, 0}, {2, 1}, {1, 1}, {7, 1}, {0, 2}} {
		days.days = tt.days
		b.clock.Advance(10 * time.Second)
		b.step(s)
		if said := strings.Count(log.String(), "days_ahead"); said != tt.said {
			t.Errorf("%d days ahead: %d alarms, want %d", tt.days, said, tt.said)
		}
	}
}
