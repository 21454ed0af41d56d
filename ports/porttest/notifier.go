package porttest

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// NotifierFixture is a fresh notifier that nobody listens to.
type NotifierFixture struct {
	Notifier ports.Notifier
	// Patience bounds every wait. Default 10 s.
	Patience time.Duration
	// Lose makes the notifier lose what is notified from now on; Find ends it.
	// Listeners do not learn of it. Nil when the service cannot.
	Lose, Find func()
	// Disconnect takes the service away and Reconnect brings it back. Nil when
	// that cannot be done.
	Disconnect, Reconnect func()
}

// Notifier runs the conformance suite of [ports.Notifier].
func Notifier(t *testing.T, open func(t *testing.T) NotifierFixture) {
	tests := []struct {
		name string
		run  func(*testing.T, NotifierFixture)
	}{
		{"WatchedIsDelivered", notifierWatchedIsDelivered},
		{"OthersAreNot", notifierOthersAreNot},
		{"EveryListenerHears", notifierEveryListenerHears},
		{"WatchIsOne", notifierWatchIsOne},
		{"LossIsSilent", notifierLossIsSilent},
		{"ReconnectIsAGap", notifierReconnectIsAGap},
		{"CanceledContext", notifierCanceledContext},
		{"Crowd", notifierCrowd},
		{"CloseEnds", notifierCloseEnds},
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

// notifierEar is a handler that remembers what it heard.
type notifierEar struct {
	mu      sync.Mutex
	heard   []ports.StoredEvent
	gaps    int
	inside  int
	overlap bool
	changed chan struct{}
}

func newNotifierEar() *notifierEar { return &notifierEar{changed: make(chan struct{})} }

func (e *notifierEar) Events(events []ports.StoredEvent) {
	e.enter(func() { e.heard = append(e.heard, events...) })
}

func (e *notifierEar) Gap() { e.enter(func() { e.gaps++ }) }

// enter notices when two calls overlap.
func (e *notifierEar) enter(note func()) {
	e.mu.Lock()
	if e.inside++; e.inside > 1 {
		e.overlap = true
	}
	e.mu.Unlock()
	e.mu.Lock()
	defer e.mu.Unlock()
	note()
	e.inside--
	close(e.changed)
	e.changed = make(chan struct{})
}

func (e *notifierEar) state() (heard []ports.StoredEvent, gaps int) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.heard), e.gaps
}

func (f NotifierFixture) await(t *testing.T, ear *notifierEar, what string, done func(heard []ports.StoredEvent, gaps int) bool) {
	t.Helper()
	timeout := time.NewTimer(f.Patience)
	defer timeout.Stop()
	for {
		ear.mu.Lock()
		changed := ear.changed
		ear.mu.Unlock()
		heard, gaps := ear.state()
		if done(heard, gaps) {
			return
		}
		select {
		case <-changed:
		case <-timeout.C:
			t.Fatalf("after %v still waiting for %s; heard %d events and %d gaps", f.Patience, what, len(heard), gaps)
		}
	}
}

func (f NotifierFixture) listen(t *testing.T) (ports.Listener, *notifierEar) {
	t.Helper()
	ear := newNotifierEar()
	l, err := f.Notifier.Listen(t.Context(), ear)
	if err != nil {
		t.Fatalf("listen: %v", err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close the listener: %v", err)
		}
		if ear.overlap {
			t.Error("two calls of the handler overlapped")
		}
	})
	return l, ear
}

func (f NotifierFixture) watch(t *testing.T, l ports.Listener, projects ...domain.ProjectID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), f.Patience)
	defer cancel()
	for _, p := range projects {
		if err := l.Watch(ctx, p); err != nil {
			t.Fatalf("watch: %v", err)
		}
	}
}

func (f NotifierFixture) notify(t *testing.T, events []ports.StoredEvent) {
	t.Helper()
	if err := f.Notifier.Notify(t.Context(), events); err != nil {
		t.Fatalf("notify %d events: %v", len(events), err)
	}
}

func notifierWatchedIsDelivered(t *testing.T, f NotifierFixture) {
	l, ear := f.listen(t)
	var want []ports.StoredEvent
	var projects []*busProject
	for range 50 {
		p := newBusProject()
		projects = append(projects, p)
		f.watch(t, l, p.id)
		events := busEvents(p.rows(2))
		f.notify(t, events) // right after Watch returned
		want = append(want, events...)
	}
	var batch []ports.StoredEvent
	for _, p := range projects {
		batch = append(batch, busEvents(p.rows(3))...)
	}
	f.notify(t, batch)
	want = append(want, batch...)
	f.await(t, ear, "every event", func(heard []ports.StoredEvent, _ int) bool { return len(heard) >= len(want) })
	heard, _ := ear.state()
	wantFirstsInOrder(t, heard)
	if diff := gocmp.Diff(busByKey(want), busByKey(heard)); diff != "" {
		t.Errorf("events changed on the way (-notified +heard):\n%s", diff)
	}
	if !l.Healthy() {
		t.Error("the listener is not healthy")
	}
}

func notifierOthersAreNot(t *testing.T, f NotifierFixture) {
	l, ear := f.listen(t)
	mine := newBusProject()
	f.watch(t, l, mine.id)
	f.notify(t, busEvents(busProjects(200, 1))) // some share a channel with mine
	f.notify(t, busEvents(mine.rows(1)))
	f.await(t, ear, "the event of the watched project", func(heard []ports.StoredEvent, _ int) bool { return len(heard) > 0 })
	if heard, _ := ear.state(); len(heard) != 1 || heard[0].ProjectID != mine.id {
		t.Errorf("heard %d events, want the watched project's only", len(heard))
	}
}

func notifierEveryListenerHears(t *testing.T, f NotifierFixture) {
	p := newBusProject()
	var ears []*notifierEar
	for range 3 {
		l, ear := f.listen(t)
		f.watch(t, l, p.id)
		ears = append(ears, ear)
	}
	f.notify(t, busEvents(p.rows(5)))
	for _, ear := range ears {
		f.await(t, ear, "5 events", func(heard []ports.StoredEvent, _ int) bool { return len(heard) == 5 })
	}
}

// notifierWatchIsOne watches twice and ends it once, beside a project that
// stays watched.
func notifierWatchIsOne(t *testing.T, f NotifierFixture) {
	l, ear := f.listen(t)
	gone, stays := newBusProject(), newBusProject()
	f.watch(t, l, gone.id, gone.id, stays.id)
	l.Unwatch(gone.id)
	l.Unwatch(gone.id)
	l.Unwatch(newBusProject().id)
	f.notify(t, busEvents(gone.rows(3)))
	f.notify(t, busEvents(stays.rows(1)))
	f.await(t, ear, "the watched project", func(heard []ports.StoredEvent, _ int) bool {
		return slices.ContainsFunc(heard, func(e ports.StoredEvent) bool { return e.ProjectID == stays.id })
	})
	if heard, _ := ear.state(); len(heard) != 1 {
		t.Errorf("heard %d events, want 1: the other watch had ended", len(heard))
	}
	f.watch(t, l, gone.id)
	f.notify(t, busEvents(gone.rows(1)))
	f.await(t, ear, "the project that is watched again", func(heard []ports.StoredEvent, _ int) bool { return len(heard) == 2 })
}

func notifierLossIsSilent(t *testing.T, f NotifierFixture) {
	if f.Lose == nil {
		t.Skip("this notifier cannot be told to lose")
	}
	l, ear := f.listen(t)
	p := newBusProject()
	f.watch(t, l, p.id)
	_, gaps := ear.state()
	f.Lose()
	f.notify(t, busEvents(p.rows(3)))
	f.Find()
	f.notify(t, busEvents(p.rows(1)))
	f.await(t, ear, "the event after the loss", func(heard []ports.StoredEvent, _ int) bool { return len(heard) > 0 })
	heard, after := ear.state()
	if len(heard) != 1 || heard[0].EventID != 4 {
		t.Errorf("heard %d events, want the fourth only", len(heard))
	}
	if after != gaps {
		t.Error("a loss that nobody can know of was announced as a gap")
	}
}

func notifierReconnectIsAGap(t *testing.T, f NotifierFixture) {
	if f.Disconnect == nil {
		t.Skip("this notifier cannot be disconnected")
	}
	l, ear := f.listen(t)
	p := newBusProject()
	f.watch(t, l, p.id)
	_, before := ear.state()
	f.Disconnect()
	f.awaitHealth(t, l, false)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	_ = f.Notifier.Notify(ctx, busEvents(p.rows(2))) // may fail, must return
	cancel()
	f.Reconnect()
	f.await(t, ear, "the gap", func(_ []ports.StoredEvent, gaps int) bool { return gaps > before })
	f.awaitHealth(t, l, true)
	f.notify(t, busEvents(p.rows(1)))
	f.await(t, ear, "the event after the gap", func(heard []ports.StoredEvent, _ int) bool {
		return slices.ContainsFunc(heard, func(e ports.StoredEvent) bool { return e.EventID == 3 })
	})
}

// awaitHealth asks until the answer is right: health has no signal of its own.
func (f NotifierFixture) awaitHealth(t *testing.T, l ports.Listener, want bool) {
	t.Helper()
	deadline := time.NewTimer(f.Patience)
	defer deadline.Stop()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for l.Healthy() != want {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("Healthy is not %v after %v", want, f.Patience)
		}
	}
}

func notifierCanceledContext(t *testing.T, f NotifierFixture) {
	l, _ := f.listen(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := l.Watch(ctx, newBusProject().id); err == nil {
		t.Error("Watch with a canceled context succeeded")
	}
	if err := f.Notifier.Notify(ctx, busEvents(busProjects(1, 1))); err == nil {
		t.Error("Notify with a canceled context succeeded")
	}
	if _, err := f.Notifier.Listen(ctx, newNotifierEar()); err == nil {
		t.Error("Listen with a canceled context succeeded")
	}
	f.notify(t, nil)
}

// notifierCrowd watches, notifies and ends watches from many goroutines.
func notifierCrowd(t *testing.T, f NotifierFixture) {
	l, ear := f.listen(t)
	var wg sync.WaitGroup
	const crowd = 16
	for range crowd {
		wg.Go(func() {
			for range 10 {
				p := newBusProject()
				ctx, cancel := context.WithTimeout(t.Context(), f.Patience)
				if err := l.Watch(ctx, p.id); err != nil {
					t.Errorf("watch: %v", err)
				}
				if err := f.Notifier.Notify(ctx, busEvents(p.rows(2))); err != nil {
					t.Errorf("notify: %v", err)
				}
				cancel()
				f.await(t, ear, "the crowd's events", func(heard []ports.StoredEvent, _ int) bool {
					n := 0
					for _, e := range heard {
						if e.ProjectID == p.id {
							n++
						}
					}
					return n >= 2
				})
				l.Unwatch(p.id)
			}
		})
	}
	wg.Wait()
}

func notifierCloseEnds(t *testing.T, f NotifierFixture) {
	l, ear := f.listen(t)
	p := newBusProject()
	f.watch(t, l, p.id)
	closeOnce(t, l)
	closeOnce(t, l)
	if l.Healthy() {
		t.Error("a closed listener is healthy")
	}
	f.notify(t, busEvents(p.rows(1)))
	if err := l.Watch(t.Context(), p.id); err == nil {
		t.Error("Watch of a closed listener succeeded")
	}
	l.Unwatch(p.id)

	second, other := f.listen(t)
	f.watch(t, second, p.id)
	closeOnce(t, f.Notifier)
	closeOnce(t, f.Notifier)
	if err := f.Notifier.Notify(t.Context(), busEvents(p.rows(1))); err == nil {
		t.Error("Notify of a closed notifier succeeded")
	}
	if _, err := f.Notifier.Listen(t.Context(), ear); err == nil {
		t.Error("Listen of a closed notifier succeeded")
	}
	for _, e := range []*notifierEar{ear, other} {
		if heard, _ := e.state(); len(heard) > 0 {
			t.Errorf("heard %d events after Close", len(heard))
		}
	}
}
