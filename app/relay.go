package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// RelayConfig shapes the way from the outbox to the bus.
type RelayConfig struct {
	// Batch is how many rows are read and sent together; 2000 when zero, which fills a
	// batch of each of eight queues.
	Batch int
	// Lease is how long shards are ours without a renewal, and so the longest that a
	// dead relay holds its projects up; 12 s when zero.
	Lease time.Duration
	// SendTimeout bounds one publish; 4 s when zero. Lease exceeds it and Margin
	// twofold, so that a renewed lease always has room for a send.
	SendTimeout time.Duration
	// Margin is what must be left of a lease after a send; 1 s when zero. It covers
	// the difference of clocks.
	Margin time.Duration
	// Renew is the distance of renewals; a sixth of Lease when zero. A relay that
	// joins or leaves has its fair share after two of them.
	Renew time.Duration
	// Interval is the wait after an empty round; 50 ms when zero. Gather is the wait
	// after one that was not full, in which rows come together: a round costs about
	// as much as thirty rows. 25 ms when zero.
	Interval time.Duration
	Gather   time.Duration
	// MaxTries is how often in a row the bus refuses a project's rows before the
	// project is parked for a person; 20 when zero. A bus that is away refuses
	// nothing.
	MaxTries int
	// Retry is the wait after a project's first refusal, which doubles up to
	// MaxRetry; 1 s and 1 min when zero.
	Retry    time.Duration
	MaxRetry time.Duration
	// Keep is how long rows stay after they were written; 24 h when zero. What is not
	// published by then stays longer. CleanEvery is the distance of cleanings,
	// CleanBatch how many rows one removes; 1 min and 10 000 when zero.
	Keep       time.Duration
	CleanEvery time.Duration
	CleanBatch int
	// GaugeEvery is the distance of looks at the backlog for the metrics; 10 s when
	// zero.
	GaugeEvery time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c RelayConfig) WithDefaults() RelayConfig {
	c.Batch = cmp.Or(c.Batch, 2000)
	c.Lease = cmp.Or(c.Lease, 12*time.Second)
	c.SendTimeout = cmp.Or(c.SendTimeout, 4*time.Second)
	c.Margin = cmp.Or(c.Margin, time.Second)
	c.Renew = cmp.Or(c.Renew, c.Lease/6)
	c.Interval = cmp.Or(c.Interval, 50*time.Millisecond)
	c.Gather = cmp.Or(c.Gather, 25*time.Millisecond)
	c.MaxTries = cmp.Or(c.MaxTries, 20)
	c.Retry = cmp.Or(c.Retry, time.Second)
	c.MaxRetry = cmp.Or(c.MaxRetry, time.Minute)
	c.Keep = cmp.Or(c.Keep, 24*time.Hour)
	c.CleanEvery = cmp.Or(c.CleanEvery, time.Minute)
	c.CleanBatch = cmp.Or(c.CleanBatch, 10_000)
	c.GaugeEvery = cmp.Or(c.GaugeEvery, 10*time.Second)
	return c
}

// Validate joins every fault.
func (c RelayConfig) Validate() error {
	var errs []error
	durations := []time.Duration{c.Lease, c.SendTimeout, c.Margin, c.Renew, c.Interval, c.Gather, c.Retry, c.MaxRetry, c.Keep, c.CleanEvery, c.GaugeEvery}
	if c.Batch < 0 || c.MaxTries < 0 || c.CleanBatch < 0 || slices.Min(durations) < 0 {
		errs = append(errs, errors.New("relay: a limit is negative"))
	}
	d := c.WithDefaults()
	if d.Lease < 2*(d.SendTimeout+d.Margin) {
		errs = append(errs, errors.New("relay: lease must be at least twice send_timeout and margin together"))
	}
	if d.Renew > d.Lease/3 {
		errs = append(errs, errors.New("relay: renew must be at most a third of lease, so that one renewal may fail"))
	}
	if d.MaxRetry < d.Retry {
		errs = append(errs, errors.New("relay: max_retry is shorter than retry"))
	}
	return errors.Join(errs...)
}

// RelayDeps are what [Relay] works with; all are required.
type RelayDeps struct {
	Env
	Outbox ports.Outbox
	Desk   ports.OutboxDesk
	Bus    ports.Bus
}

// Relay brings committed events to the bus, at least once and in the order of
// each project. Step and Run must not be called at the same time.
//
// Every relay sends a project's rows from the first one that is not marked, without
// a gap, and stops at the first failure. So whatever several of them send, in
// whatever overlap, the first occurrences are in order: a relay that wakes up after
// its lease has ended can only repeat. The lease keeps that rare.
type Relay struct {
	deps  RelayDeps
	cfg   RelayConfig
	owner domain.ID

	shards  []ports.ShardLease
	renewAt time.Time
	cleanAt time.Time
	gaugeAt time.Time
	// readAt is when the outbox is read again after a read that found nothing.
	readAt time.Time
	away   awayProjects
}

// NewRelay checks what it is given.
func NewRelay(deps RelayDeps, cfg RelayConfig) (*Relay, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("relay", map[string]bool{
		"Outbox": deps.Outbox != nil, "Desk": deps.Desk != nil, "Bus": deps.Bus != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	return &Relay{deps: deps, cfg: cfg.WithDefaults(), owner: deps.NewID(), away: newAwayProjects()}, nil
}

// Step sends one batch and returns how many rows the bus has stored. While the bus
// takes nothing the rows stay as they are and its error is returned: an outage must
// neither park projects nor write a row.
func (r *Relay) Step(ctx context.Context) (worked int, err error) {
	errChores := errors.Join(r.clean(ctx), r.gauge(ctx))
	if err := r.lease(ctx); err != nil {
		return 0, errors.Join(err, errChores)
	}
	if len(r.shards) == 0 {
		return 0, errChores
	}
	rows, err := r.pending(ctx)
	switch {
	case err != nil:
		return 0, errors.Join(err, errChores)
	case len(rows) == 0:
		return 0, errors.Join(r.away.err(), errChores)
	case !r.safe():
		return 0, errChores
	}
	worked, err = r.send(ctx, rows)
	return worked, errors.Join(err, errChores)
}

// Run sends until the context ends and gives the shards back.
func (r *Relay) Run(ctx context.Context) error {
	err := Loop{
		Name: "relay", Step: r.Step, Interval: r.cfg.Interval, Bell: r.deps.Bells.Relay,
		Full: r.cfg.Batch, Gather: r.cfg.Gather, MaxBackoff: mostAway,
		Grace: r.cfg.SendTimeout + r.cfg.Margin, Env: r.deps.Env,
	}.Run(ctx)
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Margin)
	defer cancel()
	r.shards = nil
	r.deps.Metrics.Set(MetricRelayShards, 0)
	if e := r.deps.Outbox.ReleaseShards(release, r.owner); e != nil {
		r.deps.Logger.Warn("shards run out by themselves: they could not be released", "error", e)
	}
	return err
}

// lease takes and renews shards. When that fails, what is still held is used until
// it is too short.
func (r *Relay) lease(ctx context.Context) error {
	now := r.deps.Now()
	if now.Before(r.renewAt) && (len(r.shards) == 0 || r.safe()) {
		return nil
	}
	shards, err := r.deps.Outbox.LeaseShards(ctx, ports.ShardParams{Owner: r.owner, Now: now, For: r.cfg.Lease})
	switch {
	case err == nil:
		r.shards = shards
		r.renewAt = now.Add(r.cfg.Renew)
		r.away.forget(now)
		r.deps.Metrics.Set(MetricRelayShards, float64(len(shards)))
		return nil
	case r.safe():
		return nil // a renewal that failed is tried again at the next round
	default:
		r.shards = nil
		r.deps.Metrics.Set(MetricRelayShards, 0)
		return fmt.Errorf("lease shards: %w", err)
	}
}

// pending reads the next batch. A read that finds nothing in much time, since what
// waits is put off, is not repeated at once: it takes a fifth of the time at most.
func (r *Relay) pending(ctx context.Context) ([]ports.OutboxRow, error) {
	began := r.deps.Now()
	if began.Before(r.readAt) {
		return nil, nil
	}
	rows, err := r.deps.Outbox.Pending(ctx, ports.PendingParams{Shards: r.shards, Skip: r.away.waiting(began), Limit: r.cfg.Batch})
	if err != nil {
		return nil, fmt.Errorf("read outbox: %w", err)
	}
	if now := r.deps.Now(); len(rows) == 0 {
		r.readAt = now.Add(4 * now.Sub(began))
	}
	return rows, nil
}

// left is what remains of the shortest lease.
func (r *Relay) left() time.Duration {
	if len(r.shards) == 0 {
		return 0
	}
	now, left := r.deps.Now(), time.Duration(math.MaxInt64)
	for _, s := range r.shards {
		left = min(left, s.Until.Sub(now))
	}
	return left
}

// safe reports whether a send would end while the shards are still ours: another
// relay must not send the same project meanwhile.
func (r *Relay) safe() bool { return r.left() > r.cfg.SendTimeout+r.cfg.Margin }

// clean removes old rows now and then. A fault of it does not stop the sending.
func (r *Relay) clean(ctx context.Context) error {
	now := r.deps.Now()
	if now.Before(r.cleanAt) {
		return nil
	}
	r.cleanAt = now.Add(r.cfg.CleanEvery)
	n, err := r.deps.Outbox.Clean(ctx, now.Add(-r.cfg.Keep), r.cfg.CleanBatch)
	if err != nil {
		return fmt.Errorf("clean outbox: %w", err)
	}
	if n == r.cfg.CleanBatch {
		r.cleanAt = now // there is more
	}
	return nil
}

// gauge shows the backlog now and then, and at once when a project was parked.
func (r *Relay) gauge(ctx context.Context) error {
	now := r.deps.Now()
	if now.Before(r.gaugeAt) {
		return nil
	}
	r.gaugeAt = now.Add(r.cfg.GaugeEvery)
	b, err := r.deps.Desk.Backlog(ctx)
	if err != nil {
		return fmt.Errorf("look at the backlog: %w", err)
	}
	age := 0.0
	if b.OldestAt != nil {
		age = max(0, now.Sub(*b.OldestAt).Seconds())
	}
	r.deps.Metrics.Set(MetricBacklog, float64(b.Rows))
	r.deps.Metrics.Set(MetricBacklogAge, age)
	r.deps.Metrics.Set(MetricParked, float64(b.Parked))
	return nil
}
