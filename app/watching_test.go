package app_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// watches records reports.
type watches struct {
	mu    sync.Mutex
	err   error
	calls int
	rows  int
	until map[domain.ProjectID]time.Time
}

func (w *watches) Watch(_ context.Context, params ports.WatchParams) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	w.calls++
	w.rows += len(params.Projects)
	for _, p := range params.Projects {
		w.until[p] = params.Until
	}
	return nil
}

func watchingOf(t *testing.T, live func() []domain.ProjectID, cfg app.WatchingConfig) (*app.Watching, *watches, *clock) {
	t.Helper()
	c, store := &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, &watches{until: map[domain.ProjectID]time.Time{}}
	w, err := app.NewWatching(app.WatchingDeps{Env: app.Env{Now: c.Now, NewID: newID}, Watches: store, Live: live}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return w, store, c
}

func newProject() domain.ProjectID { return domain.ProjectID{ID: newID()} }

// A hundred thousand projects with streams cost few statements and a bounded rate
// of rows, and none of them is ever unknown to the store in between.
func TestWatchingCostOfManyProjects(t *testing.T) {
	t.Parallel()
	const projects = 100_000
	all := make([]domain.ProjectID, projects)
	for i := range all {
		all[i] = newProject()
	}
	w, store, c := watchingOf(t, func() []domain.ProjectID { return all }, app.WatchingConfig{})
	start := c.Now()
	for c.Now().Sub(start) < 6*time.Minute {
		if _, err := w.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
		c.Advance(9 * time.Second)
		for _, p := range all[:3] {
			if !store.until[p].After(c.Now()) {
				t.Fatalf("project %s is unknown %v after the start", p, c.Now().Sub(start))
			}
		}
	}
	perSecond := float64(store.rows) / c.Now().Sub(start).Seconds()
	if perSecond > 1000 || store.calls > store.rows/1000 { // three reports of each in six minutes
		t.Errorf("%.0f rows a second in %d statements", perSecond, store.calls)
	}
}

func TestWatchingForgetsWhoWent(t *testing.T) {
	t.Parallel()
	w, store, c := watchingOf(t, nil, app.WatchingConfig{})
	p := newProject()
	w.Note(p)
	for range 3 { // a second look at once is no second report
		w.Note(p)
		if _, err := w.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	for range 200 {
		c.Advance(5 * time.Second)
		if _, err := w.Step(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if store.rows != 1 {
		t.Errorf("reported %d times, want once", store.rows)
	}
	w.Note(p)
	if n, err := w.Step(t.Context()); n != 1 || err != nil {
		t.Errorf("after a while a new look was reported %d times, %v", n, err)
	}
}

func TestWatchingStoreAwayAndFull(t *testing.T) {
	t.Parallel()
	w, store, _ := watchingOf(t, nil, app.WatchingConfig{Most: 2})
	for range 5 {
		w.Note(newProject())
	}
	store.err = errAway
	if _, err := w.Step(t.Context()); !errors.Is(err, errAway) {
		t.Errorf("error %v", err)
	}
	store.err = nil
	if n, err := w.Step(t.Context()); n != 2 || err != nil {
		t.Errorf("reported %d, %v; want what there was room for", n, err)
	}
	(*app.Watching)(nil).Note(newProject())
}

func TestWatchingRuns(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &watches{until: map[domain.ProjectID]time.Time{}}
		w, err := app.NewWatching(app.WatchingDeps{Env: app.Env{NewID: newID}, Watches: store}, app.WatchingConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- w.Run(ctx) }()
		p := newProject()
		w.Note(p)
		<-time.After(7 * time.Second) // one interval with its jitter
		store.mu.Lock()
		known := !store.until[p].IsZero()
		store.mu.Unlock()
		if !known {
			t.Error("not reported within an interval")
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

func TestWatchingConfig(t *testing.T) {
	t.Parallel()
	if (app.WatchingConfig{Keep: time.Second}).Validate() == nil || (app.WatchingConfig{Most: -1}).Validate() == nil {
		t.Error("a bad configuration is accepted")
	}
	if _, err := app.NewWatching(app.WatchingDeps{}, app.WatchingConfig{}); err == nil {
		t.Error("no store is accepted")
	}
}
