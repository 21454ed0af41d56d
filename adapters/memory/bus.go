package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// ErrBusClosed refuses calls of a bus that was closed.
var ErrBusClosed = errors.New("the bus is closed")

// BusConfig configures a [Bus]. The zero value works.
type BusConfig struct {
	// Retries keeps what a group has yet to see. Nil keeps it in the memory of
	// the process, which is enough where nothing has to survive it.
	Retries ports.BusRetries
	// RetryBase and RetryCap space the tries of a failed event: base, doubled
	// with every try, at most cap. Defaults 1 s and 1 min.
	RetryBase, RetryCap time.Duration
	// PollInterval is how often each group looks for owed events, and the
	// longest that one waits after it is due. Default 1 s.
	PollInterval time.Duration
	// HandlerTimeout bounds one call of a handler through its context. Default
	// 30 s.
	HandlerTimeout time.Duration
	// RetryBatch is how many owed events are read at once. Default 256.
	RetryBatch int
	// Now is the clock of due times; nil is the wall clock.
	Now func() time.Time
	// Logger gets one line per failed batch; nil discards.
	Logger *slog.Logger
}

// WithDefaults returns a copy with every zero field filled.
func (c BusConfig) WithDefaults() BusConfig {
	c.RetryBase = cmp.Or(c.RetryBase, time.Second)
	c.RetryCap = cmp.Or(c.RetryCap, time.Minute)
	c.PollInterval = cmp.Or(c.PollInterval, time.Second)
	c.HandlerTimeout = cmp.Or(c.HandlerTimeout, 30*time.Second)
	c.RetryBatch = cmp.Or(c.RetryBatch, 256)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Bus calls its subscribers in the process. Publish returns once every group
// has handled the rows or owes them: a group whose handler fails gets a retry
// row per event, so it neither blocks another group nor makes it see anything
// twice, and the rows' durability is that of BusRetries. All methods may be
// called by several goroutines; rows of one project must be published by one
// caller at a time, as the relay does.
//
// A group keeps existing after its last subscription is closed: what is
// published meanwhile is owed to it, as a broker would do.
type Bus struct {
	cfg  BusConfig
	owed *owedRows // set when Retries is the bus's own

	mu     sync.Mutex
	closed bool
	groups map[string]*busGroup
	done   chan struct{}
	wg     sync.WaitGroup
}

var _ ports.Bus = (*Bus)(nil)

// NewBus returns a bus without subscribers. Close it.
func NewBus(cfg BusConfig) *Bus {
	b := &Bus{cfg: cfg.WithDefaults(), groups: map[string]*busGroup{}, done: make(chan struct{})}
	if b.cfg.Retries == nil {
		b.owed = newOwedRows()
		b.cfg.Retries = b.owed
	}
	return b
}

// Publish implements [ports.Bus]. It fails when the context ends first, and
// when a failed event cannot be written down as owed; then no row may be taken
// for published, since each group may lack any.
func (b *Bus) Publish(ctx context.Context, rows []ports.OutboxRow) error {
	groups, err := b.snapshot()
	if err != nil {
		return &ports.PublishError{FailedProjects: failedProjects(rows, err), Err: err}
	}
	if err := ctx.Err(); err != nil {
		return &ports.PublishError{FailedProjects: failedProjects(rows, err), Err: err}
	}
	rows, refused := decodedRows(sortedRows(rows))
	err = b.deliverAll(ctx, groups, rows)
	switch {
	case err != nil:
		maps.Copy(refused, failedProjects(rows, err))
		return &ports.PublishError{FailedProjects: refused, Err: err}
	case len(refused) > 0:
		return &ports.PublishError{FailedProjects: refused, Err: ports.ErrRefused}
	}
	return nil
}

// deliverAll has every group take the rows, or owe them.
func (b *Bus) deliverAll(ctx context.Context, groups []*busGroup, rows []ports.OutboxRow) error {
	if len(rows) == 0 || len(groups) == 0 {
		return nil
	}
	if b.owed != nil {
		b.owed.remember(rows)
		defer b.owed.forget(rows)
	}
	results := make(chan error, len(groups))
	for _, g := range groups {
		go func() { results <- g.submit(ctx, rows) }()
	}
	var errs []error
	for range groups {
		if err := <-results; err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Subscribe implements [ports.Bus]. The context bounds the call alone; the
// handler sees its values, but only Close ends the subscription. Of several
// subscriptions of one group the oldest is called, the others stand by. A
// handler must not close its own subscription or the bus.
func (b *Bus) Subscribe(ctx context.Context, group string, handler func(context.Context, []ports.StoredEvent) error) (ports.Subscription, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if group == "" {
		return nil, errors.New("a subscription needs the name of a group")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrBusClosed
	}
	g := b.groups[group]
	if g == nil {
		g = newBusGroup(b, group)
		b.groups[group] = g
		b.wg.Go(g.run)
	}
	m := &busMember{group: g, ctx: context.WithoutCancel(ctx), handler: handler}
	g.join(m)
	return m, nil
}

// Close implements [ports.Bus]: it waits for running handlers and for every
// goroutine of the bus. Closing twice is fine.
func (b *Bus) Close() error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.done)
	}
	b.mu.Unlock()
	b.wg.Wait()
	return nil
}

func (b *Bus) snapshot() ([]*busGroup, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrBusClosed
	}
	groups := make([]*busGroup, 0, len(b.groups))
	for _, g := range b.groups {
		groups = append(groups, g)
	}
	return groups, nil
}

// backoff is the distance to the next try after the given number of tries.
func (c BusConfig) backoff(tries int) time.Duration {
	d := c.RetryBase
	for range min(tries, 32) {
		if d >= c.RetryCap/2 {
			return c.RetryCap
		}
		d *= 2
	}
	return min(d, c.RetryCap)
}

func failedProjects(rows []ports.OutboxRow, err error) map[string]error {
	failed := make(map[string]error)
	for _, r := range rows {
		failed[r.Event.ProjectID.String()] = err
	}
	return failed
}

// sortedRows copies the rows into (project, event) order.
func sortedRows(rows []ports.OutboxRow) []ports.OutboxRow {
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, func(a, b ports.OutboxRow) int {
		return cmp.Or(slices.Compare(a.Event.ProjectID.ID[:], b.Event.ProjectID.ID[:]), cmp.Compare(a.Event.EventID, b.Event.EventID))
	})
	return rows
}

// decodedRows gives sorted rows whole events. A message that is no event is refused
// with what follows it of its project.
func decodedRows(rows []ports.OutboxRow) (decoded []ports.OutboxRow, refused map[string]error) {
	refused = map[string]error{}
	decoded = rows[:0]
	for _, r := range rows {
		project := r.Event.ProjectID.String()
		if refused[project] != nil {
			continue
		}
		if r.Message != nil {
			event, err := wire.ParseMessage(r.Message)
			if err != nil {
				refused[project] = fmt.Errorf("%w: %w", ports.ErrRefused, err)
				continue
			}
			r.Event, r.Message = event, nil
		}
		decoded = append(decoded, r)
	}
	return decoded, refused
}

func rowEvents(rows []ports.OutboxRow) []ports.StoredEvent {
	events := make([]ports.StoredEvent, len(rows))
	for i, r := range rows {
		events[i] = r.Event
	}
	return events
}

func rowIDs(rows []ports.OutboxRow) []int64 {
	ids := make([]int64, len(rows))
	for i, r := range rows {
		ids[i] = r.ID
	}
	return ids
}

// recovered turns a panic of a handler into an error, so that one bad event
// cannot end the process.
func recovered(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("handler panicked: %v", p)
		}
	}()
	return call()
}
