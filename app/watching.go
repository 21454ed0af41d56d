package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// WatchingConfig shapes the reports.
type WatchingConfig struct {
	// Every is the time between two reports; 5 s when zero.
	Every time.Duration
	// Keep is how long a project counts as watched after it was seen to be; 5 min
	// when zero. It is reported anew at half of that, so that 100 000 watched projects
	// are some 700 small rows a second in batches, and usually none is due.
	Keep time.Duration
	// Batch is how many projects one statement reports; 1000 when zero.
	Batch int
	// Most bounds the projects that are remembered; more are not reported. 200 000
	// when zero.
	Most int
}

// WithDefaults returns a copy with every zero field set.
func (c WatchingConfig) WithDefaults() WatchingConfig {
	c.Every = cmp.Or(c.Every, 5*time.Second)
	c.Keep = cmp.Or(c.Keep, 5*time.Minute)
	c.Batch = cmp.Or(c.Batch, 1000)
	c.Most = cmp.Or(c.Most, 200_000)
	return c
}

// Validate joins every fault.
func (c WatchingConfig) Validate() error {
	var errs []error
	if c.Every < 0 || c.Keep < 0 || c.Batch < 0 || c.Most < 0 {
		errs = append(errs, errors.New("watching: a period or limit is negative"))
	}
	if d := c.WithDefaults(); d.Keep < 4*d.Every {
		errs = append(errs, errors.New("watching: keep must be at least four times every"))
	}
	return errors.Join(errs...)
}

// WatchingDeps are what [Watching] works with. Live lists the projects that have a
// stream here; nil for none. Watches is required.
type WatchingDeps struct {
	Env
	Watches ports.Watches
	Live    func() []domain.ProjectID
}

// Watching tells the store which projects somebody looks at, so that their tasks
// are polled first: in batches, and each project seldom, whatever the number of its
// connections. All of it is a hint. Note is safe for concurrent use; Step and Run
// must not be called at the same time.
type Watching struct {
	deps WatchingDeps
	cfg  WatchingConfig

	mu sync.Mutex
	// seen is when a project was last looked at; told until when the store knows,
	// which only Step uses.
	seen map[domain.ProjectID]time.Time
	told map[domain.ProjectID]time.Time
}

// NewWatching checks what it is given.
func NewWatching(deps WatchingDeps, cfg WatchingConfig) (*Watching, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("watching", map[string]bool{"Watches": deps.Watches != nil}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	return &Watching{
		deps: deps, cfg: cfg.WithDefaults(),
		seen: map[domain.ProjectID]time.Time{}, told: map[domain.ProjectID]time.Time{},
	}, nil
}

// Note says that somebody has just read the project's state. It costs an entry in a
// map. A nil Watching notes nothing.
func (w *Watching) Note(project domain.ProjectID) {
	if w == nil {
		return
	}
	now := w.deps.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	if _, known := w.seen[project]; known || len(w.seen) < w.cfg.Most {
		w.seen[project] = now
	}
}

// Run reports until the context ends.
func (w *Watching) Run(ctx context.Context) error {
	return Loop{Name: "watching", Step: func(ctx context.Context) (int, error) {
		_, err := w.Step(ctx)
		return 0, err // the next report has its time, however much this one was
	}, Interval: w.cfg.Every, Env: w.deps.Env}.Run(ctx)
}

// Step reports what the store does not know yet, or not for long any more, and
// returns how many projects that were.
func (w *Watching) Step(ctx context.Context) (int, error) {
	if w.deps.Live != nil {
		for _, project := range w.deps.Live() {
			w.Note(project)
		}
	}
	now := w.deps.Now()
	due, until := w.due(now), now.Add(w.cfg.Keep)
	told := 0
	for batch := range slices.Chunk(due, w.cfg.Batch) {
		if err := w.deps.Watches.Watch(ctx, ports.WatchParams{Projects: batch, Now: now, Until: until}); err != nil {
			return told, fmt.Errorf("report watched projects: %w", err)
		}
		for _, project := range batch {
			w.told[project] = until
		}
		told += len(batch)
	}
	return told, nil
}

// due lists the projects that were looked at since the last report and whose time
// in the store is half over; what nobody has looked at for long is forgotten.
func (w *Watching) due(now time.Time) []domain.ProjectID {
	w.mu.Lock()
	defer w.mu.Unlock()
	var due []domain.ProjectID
	for project, seen := range w.seen {
		if now.Sub(seen) >= 2*w.cfg.Every {
			delete(w.seen, project)
			continue
		}
		if w.told[project].Sub(now) < w.cfg.Keep/2 {
			due = append(due, project)
		}
	}
	for project, until := range w.told {
		if !until.After(now) {
			delete(w.told, project)
		}
	}
	return due
}
