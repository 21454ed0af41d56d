package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// RelayConfig shapes the way from the outbox to the bus.
type RelayConfig struct {
	// Batch is how many rows are sent together; 500 when zero.
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
	// Interval is the wait after an empty round; 50 ms when zero.
	Interval time.Duration
	// MaxTries is how often a project's rows are sent, while others pass, before
	// the project is parked for a person; 20 when zero.
	MaxTries int
	// Retry is the wait after a project's first failure, which doubles up to
	// MaxRetry; 1 s and 1 min when zero.
	Retry    time.Duration
	MaxRetry time.Duration
	// Keep is how long published rows stay; 24 h when zero. CleanEvery is the
	// distance of cleanings, CleanBatch how many rows one removes; 1 min and 10 000
	// when zero.
	Keep       time.Duration
	CleanEvery time.Duration
	CleanBatch int
}

// WithDefaults returns a copy with every zero field set.
func (c RelayConfig) WithDefaults() RelayConfig {
	c.Batch = cmp.Or(c.Batch, 500)
	c.Lease = cmp.Or(c.Lease, 12*time.Second)
	c.SendTimeout = cmp.Or(c.SendTimeout, 4*time.Second)
	c.Margin = cmp.Or(c.Margin, time.Second)
	c.Interval = cmp.Or(c.Interval, 50*time.Millisecond)
	c.MaxTries = cmp.Or(c.MaxTries, 20)
	c.Retry = cmp.Or(c.Retry, time.Second)
	c.MaxRetry = cmp.Or(c.MaxRetry, time.Minute)
	c.Keep = cmp.Or(c.Keep, 24*time.Hour)
	c.CleanEvery = cmp.Or(c.CleanEvery, time.Minute)
	c.CleanBatch = cmp.Or(c.CleanBatch, 10_000)
	return c
}

// Validate joins every fault.
func (c RelayConfig) Validate() error {
	var errs []error
	if c.Batch < 0 || c.Lease < 0 || c.SendTimeout < 0 || c.Margin < 0 || c.Interval < 0 || c.MaxTries < 0 ||
		c.Retry < 0 || c.MaxRetry < 0 || c.Keep < 0 || c.CleanEvery < 0 || c.CleanBatch < 0 {
		errs = append(errs, errors.New("relay: a limit is negative"))
	}
	d := c.WithDefaults()
	if d.Lease < 2*(d.SendTimeout+d.Margin) {
		errs = append(errs, errors.New("relay: lease must be at least twice send_timeout and margin together"))
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
	Bus    ports.Bus
}

// Relay brings committed events to the bus, at least once and in the order of
// each project. Step and Run must not be called at the same time.
type Relay struct {
	deps  RelayDeps
	cfg   RelayConfig
	owner domain.ID

	shards    []ports.ShardLease
	nextClean time.Time
}

// NewRelay checks what it is given.
func NewRelay(deps RelayDeps, cfg RelayConfig) (*Relay, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("relay", map[string]bool{
		"Outbox": deps.Outbox != nil, "Bus": deps.Bus != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	return &Relay{deps: deps, cfg: cfg.WithDefaults(), owner: deps.NewID()}, nil
}

// Step sends one batch and returns how many rows the bus has stored. An error
// that concerns the whole bus leaves the rows as they are: an outage must not
// park projects.
func (r *Relay) Step(ctx context.Context) (worked int, err error) {
	errClean := r.clean(ctx)
	if err := r.lease(ctx); err != nil {
		return 0, errors.Join(err, errClean)
	}
	if len(r.shards) == 0 {
		return 0, errClean
	}
	rows, err := r.deps.Outbox.Pending(ctx, r.shards, r.cfg.Batch)
	if err != nil {
		return 0, errors.Join(fmt.Errorf("read outbox: %w", err), errClean)
	}
	if len(rows) == 0 || !r.safe() {
		return 0, errClean
	}
	worked, err = r.send(ctx, rows)
	return worked, errors.Join(err, errClean)
}

// Run sends until the context ends and gives the shards back.
func (r *Relay) Run(ctx context.Context) error {
	err := Loop{
		Name: "relay", Step: r.Step, Interval: r.cfg.Interval, Bell: r.deps.Bells.Relay,
		Grace: r.cfg.SendTimeout + r.cfg.Margin, Env: r.deps.Env,
	}.Run(ctx)
	release, cancel := context.WithTimeout(context.WithoutCancel(ctx), r.cfg.Margin)
	defer cancel()
	r.shards = nil
	if e := r.deps.Outbox.ReleaseShards(release, r.owner); e != nil {
		r.deps.Logger.Warn("shards run out by themselves: they could not be released", "error", e)
	}
	return err
}

// lease takes and renews shards once half of the lease is gone. When that fails,
// what is still held is used until it is too short.
func (r *Relay) lease(ctx context.Context) error {
	if len(r.shards) > 0 && r.left() > r.cfg.Lease/2 {
		return nil
	}
	shards, err := r.deps.Outbox.LeaseShards(ctx, ports.ShardParams{Owner: r.owner, Now: r.deps.Now(), For: r.cfg.Lease})
	switch {
	case err == nil:
		r.shards = shards
		return nil
	case r.safe():
		return nil // a renewal that failed is tried again at the next round
	default:
		r.shards = nil
		return fmt.Errorf("lease shards: %w", err)
	}
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

// send publishes the rows outside any transaction and records what became of
// them.
func (r *Relay) send(ctx context.Context, rows []ports.OutboxRow) (int, error) {
	sendCtx, cancel := context.WithTimeout(ctx, r.cfg.SendTimeout)
	defer cancel()
	err := r.deps.Bus.Publish(sendCtx, rows)
	sent, failed := split(rows, err)
	if err != nil {
		r.deps.Metrics.Add(MetricPublishErrors, 1)
		if len(sent) == 0 && failed == nil {
			return 0, fmt.Errorf("publish: %w", err)
		}
	}
	if err := r.published(ctx, sent); err != nil {
		return 0, err
	}
	for _, group := range failed {
		if err := r.putOff(ctx, group, len(sent) > 0); err != nil {
			return len(sent), err
		}
	}
	if len(sent) == 0 {
		return 0, fmt.Errorf("publish: %w", err)
	}
	return len(sent), nil
}

// split sorts the rows by what the bus said: those that it has stored, and those
// of each project that failed. A plain error says nothing about any of them.
func split(rows []ports.OutboxRow, err error) (sent []ports.OutboxRow, failed [][]ports.OutboxRow) {
	if err == nil {
		return rows, nil
	}
	var pe *ports.PublishError
	if !errors.As(err, &pe) || len(pe.FailedProjects) == 0 {
		return nil, nil
	}
	at := map[domain.ProjectID]int{}
	for _, row := range rows {
		project := row.Event.ProjectID
		if pe.FailedProjects[project.String()] == nil {
			sent = append(sent, row)
			continue
		}
		i, ok := at[project]
		if !ok {
			i = len(failed)
			at[project] = i
			failed = append(failed, nil)
		}
		failed[i] = append(failed[i], row)
	}
	return sent, failed
}

func (r *Relay) published(ctx context.Context, rows []ports.OutboxRow) error {
	if len(rows) == 0 {
		return nil
	}
	now := r.deps.Now()
	for _, row := range rows {
		r.deps.Metrics.Observe(MetricPublishLag, now.Sub(row.Event.CreatedAt).Seconds())
	}
	r.deps.Metrics.Add(MetricPublished, float64(len(rows)))
	if err := r.deps.Outbox.MarkPublished(ctx, r.shards, rowIDs(rows), now); err != nil {
		return fmt.Errorf("mark published: %w", err)
	}
	return nil
}

// putOff has one project's rows wait. The project is parked after MaxTries only
// while the bus takes others: then it is the project, not the bus.
func (r *Relay) putOff(ctx context.Context, rows []ports.OutboxRow, busWorks bool) error {
	maxTries := 0 // the bus is to blame, and will be for as long as it is away
	if busWorks {
		maxTries = r.cfg.MaxTries
	}
	wait := domain.Interval{Base: r.cfg.Retry, Cap: r.cfg.MaxRetry}.Backoff(rows[0].Tries)
	err := r.deps.Outbox.MarkFailed(ctx, ports.PublishFailure{
		ProjectID: rows[0].Event.ProjectID, IDs: rowIDs(rows), MaxTries: maxTries, ErrorCode: "publish",
		NextAt: r.deps.Now().Add(time.Duration(float64(wait) * r.deps.Jitter())),
	})
	if err != nil {
		return fmt.Errorf("mark failed: %w", err)
	}
	return nil
}

func rowIDs(rows []ports.OutboxRow) []int64 {
	ids := make([]int64, len(rows))
	for i, row := range rows {
		ids[i] = row.ID
	}
	return ids
}

// clean removes old rows now and then. A fault of it does not stop the sending.
func (r *Relay) clean(ctx context.Context) error {
	now := r.deps.Now()
	if now.Before(r.nextClean) {
		return nil
	}
	r.nextClean = now.Add(r.cfg.CleanEvery)
	n, err := r.deps.Outbox.Clean(ctx, now.Add(-r.cfg.Keep), r.cfg.CleanBatch)
	if err != nil {
		return fmt.Errorf("clean outbox: %w", err)
	}
	if n == r.cfg.CleanBatch {
		r.nextClean = now // there is more
	}
	return nil
}
