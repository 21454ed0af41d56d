package app_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// fakeNotifier keeps what was notified and fails when told to.
type fakeNotifier struct {
	ports.Notifier
	fail func(context.Context) error
	got  []int64
}

func (f *fakeNotifier) Notify(ctx context.Context, events []ports.StoredEvent) error {
	if f.fail != nil {
		if err := f.fail(ctx); err != nil {
			return err
		}
	}
	for _, e := range events {
		f.got = append(f.got, e.EventID)
	}
	return nil
}

func eventsOf(project domain.ProjectID, ids ...int64) []ports.StoredEvent {
	events := make([]ports.StoredEvent, len(ids))
	for i, id := range ids {
		events[i] = ports.StoredEvent{Event: domain.Event{ProjectID: project}, EventID: id}
	}
	return events
}

func newDispatch(t *testing.T, env app.Env, bus ports.Bus, n ports.Notifier, cfg app.DispatchConfig) *app.Dispatch {
	t.Helper()
	d, err := app.NewDispatch(app.DispatchDeps{Env: env, Bus: bus, Notifier: n}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDispatchDropsRepeats(t *testing.T) {
	t.Parallel()
	b := setup(t)
	n := &fakeNotifier{}
	d := newDispatch(t, b.env, &fakeBus{}, n, app.DispatchConfig{Remember: 2})
	one, two, three := domain.ProjectID{ID: newID()}, domain.ProjectID{ID: newID()}, domain.ProjectID{ID: newID()}
	handle := func(events []ports.StoredEvent) {
		t.Helper()
		b.must(d.Handle(b.ctx(), events))
	}
	handle(eventsOf(one, 1, 2, 3))
	handle(eventsOf(one, 2, 3, 4)) // a suffix repeats
	handle(eventsOf(two, 3))       // another project counts for itself
	if want := []int64{1, 2, 3, 4, 3}; !slices.Equal(n.got, want) {
		t.Errorf("notified %v, want %v", n.got, want)
	}
	handle(eventsOf(three, 9)) // pushes the first one out
	handle(eventsOf(one, 4))
	b.clock.Advance(time.Hour)
	handle(eventsOf(one, 2)) // long after: a restored database, not a repetition
	if want := []int64{1, 2, 3, 4, 3, 9, 4, 2}; !slices.Equal(n.got, want) {
		t.Errorf("notified %v, want %v", n.got, want)
	}
}

func TestDispatchAcknowledgesWhateverHappens(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(context.Context) error{
		"error": func(context.Context) error { return errAway },
		"panic": func(context.Context) error { panic("notifier") },
		"hang":  func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				n := &fakeNotifier{fail: fail}
				d := newDispatch(t, steady(), &fakeBus{}, n, app.DispatchConfig{NotifyTimeout: time.Second})
				began := time.Now()
				project := domain.ProjectID{ID: newID()}
				if err := d.Handle(t.Context(), eventsOf(project, 1)); err != nil || time.Since(began) > time.Second {
					t.Errorf("error %v after %v: this would become a backlog", err, time.Since(began))
				}
				n.fail = nil
				if err := d.Handle(t.Context(), eventsOf(project, 1)); err != nil || len(n.got) != 1 {
					t.Errorf("what was lost cannot be repeated: %v, %v", n.got, err)
				}
			})
		})
	}
}

func TestDispatchRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		bus := memory.NewBus(memory.BusConfig{})
		n := &fakeNotifier{}
		d := newDispatch(t, steady(), bus, n, app.DispatchConfig{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- d.Run(ctx) }()
		synctest.Wait()
		if err := bus.Publish(t.Context(), []ports.OutboxRow{{ID: 1, Event: eventsOf(domain.ProjectID{ID: newID()}, 7)[0]}}); err != nil {
			t.Fatal(err)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if !slices.Equal(n.got, []int64{7}) {
			t.Errorf("notified %v", n.got)
		}
		if err := bus.Close(); err != nil {
			t.Error(err)
		}
	})
}

// lateBus cannot be subscribed to at first.
type lateBus struct {
	ports.Bus
	failures int
}

func (l *lateBus) Subscribe(ctx context.Context, group string, handler func(context.Context, []ports.StoredEvent) error) (ports.Subscription, error) {
	if l.failures--; l.failures >= 0 {
		return nil, errAway
	}
	return l.Bus.Subscribe(ctx, group, handler)
}

func TestDispatchWaitsForTheBus(t *testing.T) {
	t.Parallel()
	for name, failures := range map[string]int{"comes late": 3, "never comes": 1 << 30} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				bus := memory.NewBus(memory.BusConfig{})
				n := &fakeNotifier{}
				d := newDispatch(t, steady(), &lateBus{Bus: bus, failures: failures}, n, app.DispatchConfig{})
				ctx, stop := context.WithCancel(t.Context())
				done := make(chan error, 1)
				go func() { done <- d.Run(ctx) }()
				<-time.After(time.Minute)
				if err := bus.Publish(t.Context(), []ports.OutboxRow{{ID: 1, Event: eventsOf(domain.ProjectID{ID: newID()}, 7)[0]}}); err != nil {
					t.Fatal(err)
				}
				stop()
				if err := <-done; err != nil {
					t.Error(err)
				}
				if late := failures == 3; late != (len(n.got) == 1) {
					t.Errorf("notified %v", n.got)
				}
				if err := bus.Close(); err != nil {
					t.Error(err)
				}
			})
		})
	}
}
