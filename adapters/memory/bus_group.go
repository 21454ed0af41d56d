package memory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// storeTimeout bounds the bookkeeping of owed events, which goes on even when
// the publisher has given up.
const storeTimeout = 10 * time.Second

// busGroup is a consumer group: one goroutine that calls the handlers, so that
// the events of a project reach it in order.
type busGroup struct {
	bus  *Bus
	name string
	work chan busDelivery
	wake chan struct{}
	// tries counts failed retries per outbox row; only run touches it.
	tries map[int64]int

	mu      sync.Mutex
	members []*busMember
}

// busDelivery is a publication on its way through a group; done is buffered.
type busDelivery struct {
	rows []ports.OutboxRow
	done chan error
}

func newBusGroup(b *Bus, name string) *busGroup {
	return &busGroup{bus: b, name: name, work: make(chan busDelivery), wake: make(chan struct{}, 1), tries: map[int64]int{}}
}

// submit hands the rows to the group and waits until it has handled or owes
// them.
func (g *busGroup) submit(ctx context.Context, rows []ports.OutboxRow) error {
	d := busDelivery{rows: rows, done: make(chan error, 1)}
	select {
	case g.work <- d:
	case <-ctx.Done():
		return fmt.Errorf("group %s is busy: %w", g.name, ctx.Err())
	case <-g.bus.done:
		return ErrBusClosed
	}
	select {
	case err := <-d.done:
		return err
	case <-ctx.Done():
		return fmt.Errorf("group %s is still at it: %w", g.name, ctx.Err())
	}
}

// run serves the group until the bus closes.
func (g *busGroup) run() {
	timer := time.NewTimer(0) // what a former process owed is due at once
	defer timer.Stop()
	for {
		select {
		case <-g.bus.done:
			return
		case d := <-g.work:
			d.done <- g.deliver(d.rows)
		case <-g.wake:
			timer.Reset(g.retry())
		case <-timer.C:
			timer.Reset(g.retry())
		}
	}
}

// deliver calls the handler, or writes down that the group is owed the rows.
func (g *busGroup) deliver(rows []ports.OutboxRow) error {
	nextAt := g.bus.cfg.Now()
	err := g.call(rows)
	if err == nil {
		return nil
	}
	if err != errNoMember {
		g.bus.cfg.Logger.Warn("a bus handler failed, its events will be tried again", "group", g.name, "events", len(rows), "error", err)
		nextAt = nextAt.Add(g.bus.cfg.backoff(0))
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	if err := g.bus.cfg.Retries.AddRetries(ctx, g.name, rowIDs(rows), nextAt); err != nil {
		return fmt.Errorf("owe %d events to group %s: %w", len(rows), g.name, err)
	}
	return nil
}

// errNoMember says that no subscription of the group is open.
var errNoMember = fmt.Errorf("no open subscription")

// call runs the handler of the oldest open subscription.
func (g *busGroup) call(rows []ports.OutboxRow) error {
	for {
		m := g.first()
		if m == nil {
			return errNoMember
		}
		if called, err := m.call(rowEvents(rows), g.bus.cfg.HandlerTimeout); called {
			return err
		}
	}
}

func (g *busGroup) first() *busMember {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.members) == 0 {
		return nil
	}
	return g.members[0]
}

func (g *busGroup) join(m *busMember) {
	g.mu.Lock()
	g.members = append(g.members, m)
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

func (g *busGroup) leave(m *busMember) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.members = slices.DeleteFunc(g.members, func(have *busMember) bool { return have == m })
}

// busMember is one subscription of a group.
type busMember struct {
	group   *busGroup
	ctx     context.Context // values of the subscriber, never canceled
	handler func(context.Context, []ports.StoredEvent) error

	// running is held during a call, so that Close waits for it.
	running sync.Mutex
	closed  bool
}

var _ ports.Subscription = (*busMember)(nil)

// Close implements [ports.Subscription].
func (m *busMember) Close() error {
	m.group.leave(m)
	m.running.Lock()
	defer m.running.Unlock()
	m.closed = true
	return nil
}

// call reports false when the subscription was closed in the meantime.
func (m *busMember) call(events []ports.StoredEvent, timeout time.Duration) (bool, error) {
	m.running.Lock()
	defer m.running.Unlock()
	if m.closed {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(m.ctx, timeout)
	defer cancel()
	return true, recovered(func() error { return m.handler(ctx, events) })
}
