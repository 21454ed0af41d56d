package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// PollConfig shapes the queries.
type PollConfig struct {
	// Concurrency is how many queries run at once; 32 when zero.
	Concurrency int
	// QueryTimeout bounds one query; 15 s when zero.
	QueryTimeout time.Duration
	// Patience is how long a query waits for our own limits; 2 s when zero.
	Patience time.Duration
	// Lease is how long an attempt is ours; longer than QueryTimeout and Patience
	// together, 30 s when zero.
	Lease time.Duration
	// Interval is the wait after an empty round; 500 ms when zero.
	Interval time.Duration
	// Quota limits the queries.
	Quota QuotaConfig
}

// WithDefaults returns a copy with every zero field set.
func (c PollConfig) WithDefaults() PollConfig {
	c.Concurrency = cmp.Or(c.Concurrency, 32)
	c.QueryTimeout = cmp.Or(c.QueryTimeout, 15*time.Second)
	c.Patience = cmp.Or(c.Patience, 2*time.Second)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Interval = cmp.Or(c.Interval, 500*time.Millisecond)
	return c
}

// Validate joins every fault.
func (c PollConfig) Validate() error {
	errs := []error{c.Quota.Validate()}
	if c.Concurrency < 0 || c.QueryTimeout < 0 || c.Patience < 0 || c.Lease < 0 || c.Interval < 0 {
		errs = append(errs, errors.New("poll: a limit is negative"))
	}
	if d := c.WithDefaults(); d.QueryTimeout+d.Patience >= d.Lease {
		errs = append(errs, errors.New("poll: lease must be longer than query_timeout and patience together"))
	}
	return errors.Join(errs...)
}

// PollDeps are what [Poll] works with. Quota may be nil when nothing is limited;
// the rest is required.
type PollDeps struct {
	Env
	Transitions ports.Transitions
	Work        ports.Work
	Vendors     Vendors
	Quota       ports.Quota
}

// Poll asks vendors about attempts whose time has come. It cannot create
// anything there.
type Poll struct {
	deps    PollDeps
	cfg     PollConfig
	querier querier
	applier *applier
	pool    *pool
}

// NewPoll checks what it is given.
func NewPoll(deps PollDeps, cfg PollConfig) (*Poll, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("poll", map[string]bool{
		"Transitions": deps.Transitions != nil, "Work": deps.Work != nil, "Vendors": deps.Vendors.providers != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	return &Poll{
		deps: deps, cfg: cfg,
		querier: querier{
			env: deps.Env, vendors: deps.Vendors, quota: deps.Quota, limits: cfg.Quota,
			timeout: cfg.QueryTimeout, patience: cfg.Patience,
		},
		applier: newApplier(deps.Env, deps.Transitions), pool: newPool(cfg.Concurrency),
	}, nil
}

// Step queries what is due, up to Concurrency attempts, and returns when all are
// answered and applied.
func (p *Poll) Step(ctx context.Context) (worked int, err error) {
	worked, err = p.round(ctx)
	p.pool.drain()
	return worked, errors.Join(err, p.pool.takeErr())
}

// Run polls until the context ends and the last queries are answered.
func (p *Poll) Run(ctx context.Context) error {
	return Loop{
		Name: "poll", Step: p.round, Interval: p.cfg.Interval, Bell: p.deps.Bells.Poll,
		Drain: p.pool.drain, Grace: p.cfg.Lease, Env: p.deps.Env,
	}.Run(ctx)
}

// round starts queries on all free slots. The slow loop goes first, with a
// quarter of them, so that a flood of polls cannot starve it.
func (p *Poll) round(ctx context.Context) (int, error) {
	free := p.pool.reserve(ctx)
	started := 0
	slow, err := p.reconcile(ctx, max(1, free/4), free)
	started += slow
	if err == nil {
		var polled int
		polled, err = p.start(ctx, ports.ClaimParams{Kind: ports.WorkPoll, Limit: free - started}, domain.SourcePoll)
		started += polled
	}
	p.pool.release(free - started)
	return started, errors.Join(err, p.pool.takeErr())
}

// reconcile starts the slow loop's queries. Vendors whose create can be replayed
// are left to the submitter, which alone can do that.
func (p *Poll) reconcile(ctx context.Context, limit, free int) (int, error) {
	limit = min(limit, free)
	mine, all := queriedOnly(p.deps.Vendors)
	if all {
		return p.start(ctx, ports.ClaimParams{Kind: ports.WorkReconcile, Limit: limit}, domain.SourceReconcile)
	}
	started := 0
	for _, name := range mine {
		n, err := p.start(ctx, ports.ClaimParams{Kind: ports.WorkReconcile, Provider: name, Limit: limit - started}, domain.SourceReconcile)
		started += n
		if err != nil {
			return started, err
		}
	}
	return started, nil
}

// queriedOnly lists the vendors whose create cannot be replayed; all says that
// there are no others.
func queriedOnly(vendors Vendors) (names []string, all bool) {
	all = true
	for _, name := range vendors.Names() {
		if vendors.Policy(name).ReplaySafe {
			all = false
			continue
		}
		names = append(names, name)
	}
	return names, all
}

// start claims and queries.
func (p *Poll) start(ctx context.Context, params ports.ClaimParams, source domain.Source) (int, error) {
	if params.Limit <= 0 {
		return 0, nil
	}
	params.Now, params.Lease, params.LeaseFor = p.deps.Now(), p.deps.NewID(), p.cfg.Lease
	jobs, err := p.deps.Work.Claim(ctx, params)
	if err != nil {
		return 0, fmt.Errorf("claim %s: %w", params.Kind, err)
	}
	for _, job := range jobs {
		p.pool.run(func() error { return p.one(ctx, job, params.Lease, source) })
	}
	return len(jobs), nil
}

// one queries one attempt and applies the answer.
func (p *Poll) one(ctx context.Context, job ports.Job, lease domain.ID, source domain.Source) error {
	item, err := p.querier.ask(ctx, job, lease, source)
	if errors.Is(err, errLimited) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("poll %s: %w", job.Attempt.ID, err)
	}
	if err := p.applier.applyAll(ctx, item); err != nil {
		return fmt.Errorf("poll %s: %w", job.Attempt.ID, err)
	}
	return nil
}
