package app

import (
	"cmp"
	"container/list"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// DispatchGroup is the bus group of the notification dispatcher.
const DispatchGroup = "aivedio-dispatch"

// DispatchConfig shapes the way from the bus to the notifier.
type DispatchConfig struct {
	// NotifyTimeout bounds the one try at the notifier; 2 s when zero.
	NotifyTimeout time.Duration
	// Remember is for how many projects the last event is remembered, to drop what
	// the bus repeats; 65 536 when zero.
	Remember int
	// RepeatWindow is how long a repetition is taken for one; 1 min when zero. Later
	// a lower number may mean a restored database.
	RepeatWindow time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c DispatchConfig) WithDefaults() DispatchConfig {
	c.NotifyTimeout = cmp.Or(c.NotifyTimeout, 2*time.Second)
	c.Remember = cmp.Or(c.Remember, 1<<16)
	c.RepeatWindow = cmp.Or(c.RepeatWindow, time.Minute)
	return c
}

// Validate joins every fault.
func (c DispatchConfig) Validate() error {
	if c.NotifyTimeout < 0 || c.Remember < 0 || c.RepeatWindow < 0 {
		return errors.New("dispatch: a limit is negative")
	}
	return nil
}

// DispatchDeps are what [Dispatch] works with; all are required.
type DispatchDeps struct {
	Env
	Bus      ports.Bus
	Notifier ports.Notifier
}

// Dispatch hands events from the bus to the notifier. A hint may be lost, so it
// tries once and acknowledges whatever happened: an outage of the notifier must
// not become a backlog of the bus.
type Dispatch struct {
	deps DispatchDeps
	cfg  DispatchConfig
	seen *recent

	mu     sync.Mutex
	failed int
}

// NewDispatch checks what it is given.
func NewDispatch(deps DispatchDeps, cfg DispatchConfig) (*Dispatch, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("dispatch", map[string]bool{
		"Bus": deps.Bus != nil, "Notifier": deps.Notifier != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	return &Dispatch{deps: deps, cfg: cfg, seen: newRecent(cfg.Remember, cfg.RepeatWindow)}, nil
}

// Run consumes until the context ends and the running batch is handed over. While
// the bus cannot be subscribed to, it is tried again: a broker that starts later
// needs no restart here. The error is that of the end of the subscription.
func (d *Dispatch) Run(ctx context.Context) error {
	sub := d.subscribe(ctx)
	if sub == nil {
		return nil
	}
	<-ctx.Done()
	if err := sub.Close(); err != nil {
		return fmt.Errorf("close %s: %w", DispatchGroup, err)
	}
	return nil
}

// subscribe returns the subscription, nil when the context ended before.
func (d *Dispatch) subscribe(ctx context.Context) ports.Subscription {
	for failures := 0; ctx.Err() == nil; failures++ {
		sub, err := d.deps.Bus.Subscribe(context.WithoutCancel(ctx), DispatchGroup, d.Handle)
		if err == nil {
			return sub
		}
		if failures == 0 {
			d.deps.Logger.Error("the bus cannot be subscribed to; trying on", "group", DispatchGroup, "error", err)
		}
		wait := domain.Interval{Base: time.Second, Cap: 30 * time.Second}.Backoff(failures)
		pause(ctx, time.Duration(float64(wait)*d.deps.Jitter()), nil)
	}
	return nil
}

// Handle notifies of the events that are new and always returns nil: the batch is
// acknowledged.
func (d *Dispatch) Handle(ctx context.Context, events []ports.StoredEvent) error {
	fresh := d.seen.fresh(events, d.deps.Now())
	d.deps.Metrics.Add(MetricNotified, float64(len(events)-len(fresh)), "repeated")
	if len(fresh) == 0 {
		return nil
	}
	began := d.deps.Now()
	for _, e := range fresh {
		d.deps.Metrics.Observe(MetricConsumeLag, began.Sub(e.CreatedAt).Seconds())
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.NotifyTimeout)
	defer cancel()
	err := d.notify(ctx, fresh)
	d.deps.Metrics.Observe(MetricNotifyTime, d.deps.Now().Sub(began).Seconds())
	d.report(err, len(fresh))
	if err == nil {
		d.seen.remember(fresh, d.deps.Now())
	}
	return nil
}

func (d *Dispatch) notify(ctx context.Context, events []ports.StoredEvent) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in the notifier: %v", p)
		}
	}()
	return d.deps.Notifier.Notify(ctx, events)
}

// report logs the first of a row of failures and the end of the row.
func (d *Dispatch) report(err error, events int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err == nil {
		d.deps.Metrics.Add(MetricNotified, float64(events), "notified")
		if d.failed > 0 {
			d.deps.Logger.Info("notifier recovered", "hints_lost", d.failed)
		}
		d.failed = 0
		return
	}
	d.deps.Metrics.Add(MetricNotified, float64(events), "lost")
	if d.failed == 0 {
		d.deps.Logger.Error("hints are lost; gateways read the database meanwhile", "error", err)
	}
	d.failed += events
}

// recent remembers the last event of the projects that were active last. It is
// safe for concurrent use.
type recent struct {
	size   int
	window time.Duration

	mu    sync.Mutex
	order *list.List // of recentProject, the newest first
	of    map[domain.ProjectID]*list.Element
}

type recentProject struct {
	project domain.ProjectID
	event   int64
	at      time.Time
}

func newRecent(size int, window time.Duration) *recent {
	return &recent{size: size, window: window, order: list.New(), of: map[domain.ProjectID]*list.Element{}}
}

// fresh returns the events that are above the last one of their project.
func (r *recent) fresh(events []ports.StoredEvent, now time.Time) []ports.StoredEvent {
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := make([]ports.StoredEvent, 0, len(events))
	for _, e := range events {
		if known, ok := r.of[e.ProjectID]; ok {
			if last := known.Value.(recentProject); e.EventID <= last.event && now.Sub(last.at) < r.window {
				continue
			}
		}
		kept = append(kept, e)
	}
	return kept
}

// remember notes the newest event of each project.
func (r *recent) remember(events []ports.StoredEvent, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range events {
		entry := recentProject{project: e.ProjectID, event: e.EventID, at: now}
		if known, ok := r.of[e.ProjectID]; ok {
			if last := known.Value.(recentProject); now.Sub(last.at) < r.window {
				entry.event = max(entry.event, last.event) // a batch beside this one may be ahead
			}
			known.Value = entry
			r.order.MoveToFront(known)
			continue
		}
		r.of[e.ProjectID] = r.order.PushFront(entry)
		if r.order.Len() > r.size {
			oldest := r.order.Remove(r.order.Back()).(recentProject)
			delete(r.of, oldest.project)
		}
	}
}
