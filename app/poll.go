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
	// Interval is the wait after a round that left nothing due; 100 ms when zero.
	Interval time.Duration
	// ForOthers is the share of the queries that is kept for attempts that nobody
	// waits for, so that none starves; a quarter when zero, at most 1.
	ForOthers float64
	// Quota limits the queries.
	Quota QuotaConfig
}

// WithDefaults returns a copy with every zero field set.
func (c PollConfig) WithDefaults() PollConfig {
	c.Concurrency = cmp.Or(c.Concurrency, 32)
	c.QueryTimeout = cmp.Or(c.QueryTimeout, 15*time.Second)
	c.Patience = cmp.Or(c.Patience, 2*time.Second)
	c.Lease = cmp.Or(c.Lease, 30*time.Second)
	c.Interval = cmp.Or(c.Interval, 100*time.Millisecond)
	c.ForOthers = cmp.Or(c.ForOthers, 0.25)
	return c
}

// Validate joins every fault.
func (c PollConfig) Validate() error {
	errs := []error{c.Quota.Validate()}
	if c.Concurrency < 0 || c.QueryTimeout < 0 || c.Patience < 0 || c.Lease < 0 || c.Interval < 0 {
		errs = append(errs, errors.New("poll: a limit is negative"))
	}
	if c.ForOthers < 0 || c.ForOthers > 1 {
		errs = append(errs, errors.New("poll: for_others must be between 0 and 1"))
	}
	if d := c.WithDefaults(); d.QueryTimeout+d.Patience >= d.Lease {
		errs = append(errs, errors.New("poll: lease must be longer than query_timeout and patience together"))
	}
	return errors.Join(errs...)
}

// PollDeps are what [Poll] works with. Quota may be nil when nothing is limited,
// Durations when nothing is learned, Gate when nothing shuts an account; the rest is
// required.
type PollDeps struct {
	Env
	Transitions ports.Transitions
	Work        ports.Work
	Vendors     Vendors
	Quota       ports.Quota
	Durations   ports.Durations
	// Due spares looks at the store while nothing is due; nil for none.
	Due  ports.DueIndex
	Gate *Gate
}

// Poll asks vendors about attempts whose time has come. It cannot create
// anything there. Step and Run must not be called at the same time.
type Poll struct {
	deps    PollDeps
	cfg     PollConfig
	querier querier
	applier *applier
	pool    *pool
	meter   *pollMeter
	typical *typicals
	lookout *lookout
	// due is the part of a slot that the others have saved up; always below 1.
	due float64
	// slowAt is when the slow loop is looked at again, last when the newest round
	// began.
	slowAt, last time.Time
}

// What keeps the cost of a claim, and of a transaction, low beside that of the
// queries: a busy pool claims for several slots at once, rounds keep a distance,
// and answers wait a little for one another.
const (
	pollGather   = 20 * time.Millisecond
	pollDistance = 20 * time.Millisecond
	pollLinger   = 10 * time.Millisecond
	// slowEvery is the distance of two looks at the slow loop, whose timers are
	// minutes apart.
	slowEvery = time.Second
)

// NewPoll checks what it is given.
func NewPoll(deps PollDeps, cfg PollConfig) (*Poll, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("poll", map[string]bool{
		"Transitions": deps.Transitions != nil, "Work": deps.Work != nil, "Vendors": deps.Vendors.providers != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	p := &Poll{
		deps: deps, cfg: cfg,
		querier: querier{
			env: deps.Env, vendors: deps.Vendors, quota: deps.Quota, limits: cfg.Quota, gate: deps.Gate,
			timeout: cfg.QueryTimeout, patience: cfg.Patience,
		},
		applier: newApplier(deps.Env, deps.Transitions), pool: newPool(cfg.Concurrency),
		meter: newPollMeter(deps.Metrics), typical: newTypicals(deps.Env, deps.Durations),
		lookout: newLookout(deps.Env, deps.Due),
	}
	p.applier.batch.linger = pollLinger
	p.pool.batch, p.pool.linger = cfg.Concurrency/4, pollGather
	return p, nil
}

// Step queries what is due, up to Concurrency attempts, and returns when all are
// answered and applied.
func (p *Poll) Step(ctx context.Context) (worked int, err error) {
	worked, _, err = p.round(ctx)
	p.pool.drain()
	return worked, errors.Join(err, p.pool.takeErr())
}

// Run polls until the context ends and the last queries are answered.
func (p *Poll) Run(ctx context.Context) error {
	return Loop{
		Name: "poll", Step: p.paced, Interval: p.cfg.Interval, Bell: p.deps.Bells.Poll,
		Drain: p.drain, Grace: p.cfg.Lease, Env: p.deps.Env,
	}.Run(ctx)
}

func (p *Poll) drain() {
	p.pool.drain()
	p.lookout.drain()
}

// paced is a round of Run. A claim that took all there was leaves the next to the
// interval or the bell: what trickles in is then claimed together.
func (p *Poll) paced(ctx context.Context) (int, error) {
	pause(ctx, min(p.last.Add(pollDistance).Sub(p.deps.Now()), pollDistance), nil)
	p.last = p.deps.Now()
	if !p.lookout.look(ctx) {
		return 0, p.pool.takeErr()
	}
	started, more, err := p.round(ctx)
	p.lookout.looked(more, err)
	if err == nil && !more {
		started = 0
	}
	return started, err
}

// round starts queries on all free slots; more says that there may be more due.
// The slow loop goes first, with a quarter of them, so that a flood of polls cannot
// starve it.
func (p *Poll) round(ctx context.Context) (started int, more bool, err error) {
	slots := p.pool.reserve(ctx)
	defer slots.end()
	all := slots.free
	p.typical.refresh(ctx)
	err = p.reconcile(ctx, slots, max(1, all/4))
	if err == nil && slots.free > 0 {
		more, err = p.polls(ctx, slots)
	}
	return all - slots.free, more, errors.Join(err, p.pool.takeErr())
}

// polls starts the queries that are due. Of each four slots in a row at least one
// is for attempts that nobody waits for, however many others are due: the k-th of
// them is queried within 4k slots.
func (p *Poll) polls(ctx context.Context, slots *places) (more bool, err error) {
	p.due += float64(slots.free) * p.cfg.ForOthers
	others := int(p.due)
	p.due -= float64(others)
	wanted := slots.free - others
	n, err := p.start(ctx, slots, ports.ClaimParams{Kind: ports.WorkPoll, Limit: slots.free, ForOthers: others})
	return n >= wanted, err
}

// reconcile starts the slow loop's queries on at most limit slots. Vendors whose
// create can be replayed are left to the submitter, which alone can do that.
func (p *Poll) reconcile(ctx context.Context, slots *places, limit int) error {
	now := p.deps.Now()
	if now.Before(p.slowAt) || slots.free == 0 {
		return nil
	}
	params := ports.ClaimParams{Kind: ports.WorkReconcile, Limit: min(limit, slots.free)}
	mine, all := queriedOnly(p.deps.Vendors)
	if all {
		mine = []string{""}
	}
	for _, name := range mine {
		if params.Limit == 0 {
			return nil
		}
		params.Provider = name
		n, err := p.start(ctx, slots, params)
		if params.Limit -= n; err != nil {
			return err
		}
	}
	if params.Limit > 0 {
		p.slowAt = now.Add(slowEvery)
	}
	return nil
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

// start claims and queries; it returns how many. Of accounts that may be called a
// few times only, as many attempts are taken; of those that are shut none.
func (p *Poll) start(ctx context.Context, slots *places, params ports.ClaimParams) (int, error) {
	except, few := p.deps.Gate.narrow(verbQuery)
	started := 0
	for _, a := range few {
		if params.Provider != "" && params.Provider != a.Provider {
			continue
		}
		one := params
		one.Provider, one.AccountID, one.Limit, one.ForOthers = a.Provider, a.AccountID, min(a.Limit, params.Limit-started), 0
		n, err := p.claim(ctx, slots, one)
		if started += n; err != nil {
			return started, err
		}
	}
	params.Except, params.Limit = except, params.Limit-started
	params.ForOthers = min(params.ForOthers, params.Limit)
	n, err := p.claim(ctx, slots, params)
	return started + n, err
}

// claim claims and queries.
func (p *Poll) claim(ctx context.Context, slots *places, params ports.ClaimParams) (int, error) {
	if params.Limit <= 0 {
		return 0, nil
	}
	params.Now, params.Lease, params.LeaseFor = p.deps.Now(), p.deps.NewID(), p.cfg.Lease
	jobs, err := p.deps.Work.Claim(ctx, params)
	if err != nil {
		return 0, fmt.Errorf("claim %s: %w", params.Kind, err)
	}
	for _, job := range jobs {
		p.meter.claimed(job, params)
		slots.run(func() error {
			defer p.meter.done(job)
			return p.one(ctx, job, params)
		})
	}
	return len(jobs), nil
}

// one queries one attempt and applies the answer.
func (p *Poll) one(ctx context.Context, job ports.Job, claim ports.ClaimParams) error {
	source := domain.SourcePoll
	if claim.Kind == ports.WorkReconcile {
		source = domain.SourceReconcile
	}
	item, err := p.querier.ask(ctx, job, claim.Lease, source)
	if wait, off := putOff(err, p.cfg.Patience); off {
		return p.putOff(ctx, job, claim, wait)
	}
	if err != nil {
		return fmt.Errorf("poll %s: %w", job.Attempt.ID, err)
	}
	item.Input.Policy.Typical = p.typical.of(job.Attempt)
	results, err := p.applier.apply(ctx, item)
	if err == nil {
		err = faults(results)
	}
	if err != nil {
		return fmt.Errorf("poll %s: %w", job.Attempt.ID, err)
	}
	if next := results[0].Decision.Attempt.NextPollAt; next != nil {
		p.lookout.note(*next)
	}
	return nil
}

// putOff gives an attempt back that our limits did not let through, for as long as
// it has waited: others may then have their turn. One of a shut account comes again
// when that may be open.
func (p *Poll) putOff(ctx context.Context, job ports.Job, claim ports.ClaimParams, wait time.Duration) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	wait = time.Duration(float64(wait) * p.deps.Jitter())
	err := p.deps.Work.PutOff(ctx, ports.PutOffParams{
		Kind: claim.Kind, Lease: claim.Lease, Jobs: []ports.PutOffJob{{ID: job.Attempt.ID, Until: p.deps.Now().Add(wait)}},
	})
	if err != nil {
		return fmt.Errorf("put off %s: %w", job.Attempt.ID, err)
	}
	return nil
}
