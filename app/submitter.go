package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// SubmitterConfig shapes the calls of a vendor's create.
type SubmitterConfig struct {
	// CallbackBase is the public base URL of the callback routes, without a slash
	// at the end; empty when vendors cannot reach us and only polls are left.
	CallbackBase string
	// Concurrency is how many creates run at once; 16 when zero.
	Concurrency int
	// CallTimeout bounds one create; 60 s when zero.
	CallTimeout time.Duration
	// Lease is how long an attempt may stay in submitting before its submit counts
	// as unknown. It exceeds CallTimeout by the time that storing the answer may
	// take; 90 s when zero.
	Lease time.Duration
	// Insist is how long an answer that could not be stored is tried again; 2 min
	// when zero.
	Insist time.Duration
	// Interval is the wait after an empty round; 500 ms when zero.
	Interval time.Duration
	// Quota limits the creates.
	Quota QuotaConfig
	// Poll shapes the lookups of vendors whose create can be replayed.
	Poll PollConfig
}

// WithDefaults returns a copy with every zero field set.
func (c SubmitterConfig) WithDefaults() SubmitterConfig {
	c.Concurrency = cmp.Or(c.Concurrency, 16)
	c.CallTimeout = cmp.Or(c.CallTimeout, time.Minute)
	c.Lease = cmp.Or(c.Lease, 90*time.Second)
	c.Insist = cmp.Or(c.Insist, 2*time.Minute)
	c.Interval = cmp.Or(c.Interval, 500*time.Millisecond)
	c.Poll = c.Poll.WithDefaults()
	return c
}

// Validate joins every fault.
func (c SubmitterConfig) Validate() error {
	errs := []error{c.Quota.Validate(), c.Poll.Validate()}
	if c.Concurrency < 0 || c.CallTimeout < 0 || c.Lease < 0 || c.Insist < 0 || c.Interval < 0 {
		errs = append(errs, errors.New("submitter: a limit is negative"))
	}
	if d := c.WithDefaults(); d.CallTimeout+storing > d.Lease {
		errs = append(errs, fmt.Errorf("submitter: lease must exceed call_timeout by at least %v", storing))
	}
	if c.CallbackBase != "" {
		u, err := url.Parse(c.CallbackBase)
		if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			errs = append(errs, errors.New("submitter: callback_base must be an absolute http or https URL"))
		}
	}
	return errors.Join(errs...)
}

// SubmitterDeps are what [Submitter] works with. Quota may be nil when nothing
// is limited; the rest is required.
type SubmitterDeps struct {
	Env
	Transitions ports.Transitions
	Work        ports.Work
	// Providers can create: nobody else gets them.
	Providers ports.Providers
	Tokens    *CallbackTokens
	Quota     ports.Quota
}

// Submitter calls the vendors' create, and is the only one who can (I8). For
// each attempt the commit of "submitting" comes before the call; whatever happens
// between the two, or to the answer, ends as an unknown submit and never as a
// second create.
type Submitter struct {
	deps    SubmitterDeps
	cfg     SubmitterConfig
	vendors Vendors
	querier querier
	applier *applier
	pool    *pool

	// uncalled holds leases whose commit was in doubt and under which no call was
	// made: when such an attempt turns up, nothing was sent.
	mu       sync.Mutex
	uncalled map[domain.ID]time.Time
}

// NewSubmitter checks what it is given.
func NewSubmitter(deps SubmitterDeps, cfg SubmitterConfig) (*Submitter, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("submitter", map[string]bool{
		"Transitions": deps.Transitions != nil, "Work": deps.Work != nil, "Providers": deps.Providers != nil, "Tokens": deps.Tokens != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	vendors := NewVendors(deps.Providers)
	return &Submitter{
		deps: deps, cfg: cfg, vendors: vendors,
		querier: querier{
			env: deps.Env, vendors: vendors, quota: deps.Quota, limits: cfg.Poll.Quota,
			timeout: cfg.Poll.QueryTimeout, patience: cfg.Poll.Patience,
		},
		applier: newApplier(deps.Env, deps.Transitions), pool: newPool(cfg.Concurrency), uncalled: map[domain.ID]time.Time{},
	}, nil
}

// Step gives up leases that ran out, submits what is due, up to Concurrency
// attempts, and returns when all answers are stored.
func (s *Submitter) Step(ctx context.Context) (worked int, err error) {
	worked, err = s.round(ctx)
	s.pool.drain()
	return worked, errors.Join(err, s.pool.takeErr())
}

// Run submits until the context ends and the last answers are stored.
func (s *Submitter) Run(ctx context.Context) error {
	return Loop{
		Name: "submit", Step: s.round, Interval: s.cfg.Interval, Bell: s.deps.Bells.Submit,
		Drain: s.pool.drain, Grace: s.cfg.Lease, Env: s.deps.Env,
	}.Run(ctx)
}

func (s *Submitter) round(ctx context.Context) (int, error) {
	expired, errExpired := s.expire(ctx)
	free := s.pool.reserve(ctx)
	started, errSubmit := s.submitDue(ctx, free)
	replayed, errReplay := s.replayDue(ctx, free-started)
	s.pool.release(free - started - replayed)
	return expired + started + replayed, errors.Join(errExpired, errSubmit, errReplay, s.pool.takeErr())
}

// expire gives attempts up whose lease ran out: their caller died between the
// commit and the answer, and nobody knows what the vendor has.
func (s *Submitter) expire(ctx context.Context) (int, error) {
	now := s.deps.Now()
	jobs, err := s.deps.Work.Claim(ctx, ports.ClaimParams{Kind: ports.WorkSubmitExpired, Now: now, Limit: applyBatch})
	if err != nil {
		return 0, fmt.Errorf("claim expired submits: %w", err)
	}
	items := make([]ports.Item, len(jobs))
	for i, job := range jobs {
		in, reason := s.input(job, domain.InputSubmitUnknown), whyLeaseExpired
		if s.neverCalled(job.Attempt.SubmitLease) {
			in.Kind, in.Lease, reason = domain.InputSubmitNotSent, job.Attempt.SubmitLease, whyNotCalled
		}
		reason.tell(&in)
		items[i] = ports.Item{Ref: ports.Ref{AttemptID: job.Attempt.ID}, Input: in}
	}
	results, err := s.applier.apply(ctx, items...)
	if err == nil {
		err = faults(results)
	}
	if err != nil {
		err = fmt.Errorf("expired submits: %w", err)
	}
	return moved(results), err
}

// moved counts the attempts whose status changed. Where the store's clock is
// behind ours, a lease that has run out here has not there: that is no work done,
// or the loop would spin.
func moved(results []ports.Result) int {
	n := 0
	for _, r := range results {
		if r.Err == nil && r.Decision.StatusChanged {
			n++
		}
	}
	return n
}

// submitDue starts creates of attempts that nobody has sent. When our own limits
// fill the first claim with attempts that may not go, each vendor is asked for
// by itself, so that a throttled one does not hold up the others.
func (s *Submitter) submitDue(ctx context.Context, free int) (int, error) {
	const window = 4 // claims reach past attempts that have to wait
	seen := map[domain.AttemptID]bool{}
	limit := window * free
	started, claimed, err := s.submitSome(ctx, ports.ClaimParams{Limit: limit}, free, seen)
	if err != nil || started == free || claimed < limit {
		return started, err
	}
	for _, name := range s.vendors.Names() {
		n, _, err := s.submitSome(ctx, ports.ClaimParams{Provider: name, Limit: limit}, free-started, seen)
		if started += n; err != nil {
			return started, err
		}
	}
	return started, nil
}

func (s *Submitter) submitSome(ctx context.Context, params ports.ClaimParams, free int, seen map[domain.AttemptID]bool) (started, claimed int, err error) {
	if free <= 0 {
		return 0, 0, nil
	}
	params.Kind, params.Now = ports.WorkSubmit, s.deps.Now()
	jobs, err := s.deps.Work.Claim(ctx, params)
	if err != nil {
		return 0, 0, fmt.Errorf("claim submits: %w", err)
	}
	allowed, err := s.allowed(ctx, jobs, free, seen)
	if err != nil {
		return 0, len(jobs), err
	}
	refused, err := s.begin(ctx, allowed, domain.InputSubmitStarted)
	return len(allowed) - len(refused), len(jobs), err
}

// allowed picks the attempts that our limits let through. A full bucket is asked
// once per round.
func (s *Submitter) allowed(ctx context.Context, jobs []ports.Job, free int, seen map[domain.AttemptID]bool) ([]ports.Job, error) {
	var picked []ports.Job
	full := map[string]bool{}
	for _, job := range jobs {
		if len(picked) == free {
			break
		}
		group := job.Task.TenantID.String() + job.Attempt.Provider + ":" + job.Attempt.AccountID + ":" + job.Attempt.Model
		if seen[job.Attempt.ID] || full[group] {
			continue
		}
		seen[job.Attempt.ID] = true
		wait, err := s.permit(ctx, job)
		if err != nil {
			return nil, err
		}
		if wait > 0 {
			full[group] = true
			continue
		}
		picked = append(picked, job)
	}
	return picked, nil
}

func (s *Submitter) permit(ctx context.Context, job ports.Job) (time.Duration, error) {
	buckets := s.cfg.Quota.buckets("submit", job.Task, job.Attempt)
	if s.deps.Quota == nil || len(buckets) == 0 {
		return 0, nil
	}
	wait, err := s.deps.Quota.Take(ctx, buckets)
	if wait > 0 {
		s.deps.Metrics.Add(MetricQuotaWaits, 1, "submit", job.Attempt.Provider)
	}
	return wait, err
}

// replayDue repeats unknown submits where the vendor documents that the same
// request is not run twice. The slow loop of those vendors is all ours, so what
// cannot be replayed is queried here.
func (s *Submitter) replayDue(ctx context.Context, free int) (int, error) {
	started := 0
	for _, name := range s.vendors.Names() {
		if started >= free || !s.vendors.Policy(name).ReplaySafe {
			continue
		}
		lease := s.deps.NewID()
		jobs, err := s.deps.Work.Claim(ctx, ports.ClaimParams{
			Kind: ports.WorkReconcile, Provider: name, Now: s.deps.Now(), Limit: free - started, Lease: lease, LeaseFor: s.cfg.Poll.Lease,
		})
		if err != nil {
			return started, fmt.Errorf("claim replays: %w", err)
		}
		n, err := s.replaySome(ctx, jobs, lease)
		if started += n; err != nil {
			return started, err
		}
	}
	return started, nil
}

func (s *Submitter) replaySome(ctx context.Context, jobs []ports.Job, lease domain.ID) (int, error) {
	var unknown, rest []ports.Job
	for _, job := range jobs {
		if job.Attempt.Status == domain.AttemptSubmitUnknown && job.Attempt.ProviderTaskID == "" {
			unknown = append(unknown, job)
		} else {
			rest = append(rest, job)
		}
	}
	refused, err := s.begin(ctx, unknown, domain.InputSubmitReplayed)
	if err != nil {
		return len(unknown) - len(refused), err // the lease of the others runs out
	}
	for _, job := range append(rest, refused...) {
		s.pool.run(func() error { return s.reconcile(ctx, job, lease) })
	}
	return len(jobs), nil
}

func (s *Submitter) reconcile(ctx context.Context, job ports.Job, lease domain.ID) error {
	item, err := s.querier.ask(ctx, job, lease, domain.SourceReconcile)
	if errors.Is(err, errLimited) {
		return nil
	}
	if err == nil {
		err = s.applier.applyAll(ctx, item)
	}
	if err != nil {
		return fmt.Errorf("reconcile %s: %w", job.Attempt.ID, err)
	}
	return nil
}

// begin commits the leases of the jobs and starts a call for each that was
// granted, on slots that the caller holds. It returns those that were not.
func (s *Submitter) begin(ctx context.Context, jobs []ports.Job, kind domain.Kind) (refused []ports.Job, err error) {
	if len(jobs) == 0 {
		return nil, nil
	}
	until := s.deps.Now().Add(s.cfg.Lease)
	items := make([]ports.Item, len(jobs))
	for i, job := range jobs {
		in := s.input(job, kind)
		in.Lease, in.LeaseUntil = s.deps.NewID(), until
		items[i] = ports.Item{Ref: ports.Ref{AttemptID: job.Attempt.ID}, Input: in}
	}
	results, err := s.applier.apply(ctx, items...)
	if err != nil {
		s.rememberUncalled(items)
		return jobs, fmt.Errorf("lease submits: %w", err)
	}
	for i, r := range results {
		a, lease := r.Decision.Attempt, items[i].Input.Lease
		if r.Err != nil || a.Status != domain.AttemptSubmitting || a.SubmitLease != lease {
			refused = append(refused, jobs[i])
			continue
		}
		job := ports.Job{Task: r.Decision.Task, Attempt: a, Input: jobs[i].Input}
		s.pool.run(func() error { return s.submit(ctx, job, until) })
	}
	return refused, faults(results)
}

// input is what every input of a submit says.
func (s *Submitter) input(job ports.Job, kind domain.Kind) domain.Input {
	return domain.Input{Kind: kind, Policy: s.deps.policyOf(s.vendors, job.Attempt.Provider, job.Attempt.AccountID), Jitter: s.deps.Jitter()}
}

func (s *Submitter) rememberUncalled(items []ports.Item) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.deps.Now()
	for lease, until := range s.uncalled {
		if now.After(until) {
			delete(s.uncalled, lease)
		}
	}
	for _, item := range items {
		s.uncalled[item.Input.Lease] = item.Input.LeaseUntil.Add(time.Hour)
	}
}

func (s *Submitter) neverCalled(lease domain.ID) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, ok := s.uncalled[lease]
	return ok
}
