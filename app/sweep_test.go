package app_test

import (
	"context"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
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
		Env: b.env, Transitions: b.store, Inbox: b.store, Work: b.store, Desk: brokenDesk{b.store}, Vendors: app.NewVendors(b.vendor),
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

func (d *fullDesk) CleanExpired(_ context.Context, _ time.Time, limit int) (int, error) {
	n := min(limit, d.left)
	d.left -= n
	return n, nil
}

// TestSweepUntilClean: what is past its time goes as fast as it came.
func TestSweepUntilClean(t *testing.T) {
	t.Parallel()
	b := setup(t)
	desk := &fullDesk{b.store, 7}
	s, err := app.NewSweep(app.SweepDeps{
		Env: b.env, Transitions: b.store, Inbox: b.store, Work: b.store, Desk: desk, Vendors: app.NewVendors(b.vendor),
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
		Env: b.env, Transitions: b.store, Inbox: b.store, Work: b.store, Desk: b.store, Durations: b.store, Vendors: app.NewVendors(b.vendor),
	}, app.SweepConfig{})
	b.must(err)
	b.step(sweep)
	for _, quantile := range []string{"0.5", "0.95"} {
		if got := spy.set["aivedio_model_duration_seconds[acme kite-1 "+quantile+"]"]; got != 60 {
			t.Errorf("quantile %s: %v s, want 60", quantile, got)
		}
	}
}
