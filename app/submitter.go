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
// is limited, Gate when nothing shuts an account; the rest is required.
type SubmitterDeps struct {
	Env
	Transitions ports.Transitions
	Work        ports.Work
	// Providers can create: nobody else gets them.
	Providers ports.Providers
	Tokens    *CallbackTokens
	Quota     ports.Quota
	Gate      *Gate
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
			env: deps.Env, vendors: vendors, quota: deps.Quota, limits: cfg.Poll.Quota, gate: deps.Gate,
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
	slots := s.pool.reserve(ctx)
	defer slots.end()
	all := slots.free
	errSubmit := s.submitDue(ctx, slots)
	errReplay := s.replayDue(ctx, slots)
	return expired + all - slots.free, errors.Join(errExpired, errSubmit, errReplay, s.pool.takeErr())
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

// claimFor is how long a claimed attempt waits for its permits and for the commit
// that begins its submit; then another submitter may have it. That commit alone
// decides who calls.
const claimFor = 15 * time.Second

// submitDue starts creates of attempts that nobody has sent. When our own limits
// hold some of them up, each vendor is asked for by itself, so that a throttled one
// does not hold up the others. Of accounts that may be called a few times only, as
// many attempts are taken; of those that are shut none.
func (s *Submitter) submitDue(ctx context.Context, slots *places) error {
	except, few := s.deps.Gate.narrow(verbSubmit)
	for _, a := range few {
		if _, err := s.submitSome(ctx, ports.ClaimParams{Provider: a.Provider, AccountID: a.AccountID, Limit: a.Limit}, slots); err != nil {
			return err
		}
	}
	held, err := s.submitSome(ctx, ports.ClaimParams{Except: except, Limit: slots.free}, slots)
	if err != nil || held == 0 {
		return err
	}
	for _, name := range s.vendors.Names() {
		if _, err := s.submitSome(ctx, ports.ClaimParams{Provider: name, Except: except, Limit: slots.free}, slots); err != nil {
			return err
		}
	}
	return nil
}

// submitSome claims attempts for free slots, lets them through our limits and
// starts their creates. Only who holds the claim takes permits, so that several
// submitters waste none of what they share. It returns how many had to wait.
func (s *Submitter) submitSome(ctx context.Context, params ports.ClaimParams, slots *places) (held int, err error) {
	params.Limit = min(params.Limit, slots.free)
	if params.Limit == 0 {
		return 0, nil
	}
	lease := s.deps.NewID()
	params.Kind, params.Now, params.Lease, params.LeaseFor = ports.WorkSubmit, s.deps.Now(), lease, claimFor
	jobs, err := s.deps.Work.Claim(ctx, params)
	if err != nil {
		return 0, fmt.Errorf("claim submits: %w", err)
	}
	allowed, waiting, errPermit := s.allowed(ctx, jobs)
	errBack := s.giveBack(ctx, lease, waiting)
	if errPermit != nil {
		return len(waiting), errors.Join(errPermit, errBack)
	}
	_, err = s.begin(ctx, slots, allowed, domain.InputSubmitStarted)
	return len(waiting), errors.Join(err, errBack)
}

// allowed parts the attempts that our limits let through from those that come
// again later. A full bucket is asked once.
func (s *Submitter) allowed(ctx context.Context, jobs []ports.Job) (allowed []ports.Job, waiting []ports.PutOffJob, err error) {
	full := map[string]time.Time{}
	for _, job := range jobs {
		group := job.Task.TenantID.String() + job.Attempt.Provider + ":" + job.Attempt.AccountID + ":" + job.Attempt.Model
		until, waits := full[group]
		if !waits && err == nil {
			var wait time.Duration
			if wait, err = s.permit(ctx, job); wait > 0 {
				until, waits = s.deps.Now().Add(wait), true
				full[group] = until
			}
		}
		if waits || err != nil {
			waiting = append(waiting, ports.PutOffJob{ID: job.Attempt.ID, Until: until})
			continue
		}
		allowed = append(allowed, job)
	}
	return allowed, waiting, err
}

// giveBack lets go of claimed attempts; if that fails, their claim runs out.
func (s *Submitter) giveBack(ctx context.Context, lease domain.ID, waiting []ports.PutOffJob) error {
	if len(waiting) == 0 {
		return nil
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := s.deps.Work.PutOff(ctx, ports.PutOffParams{Kind: ports.WorkSubmit, Lease: lease, Jobs: waiting}); err != nil {
		return fmt.Errorf("put off submits: %w", err)
	}
	return nil
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
func (s *Submitter) replayDue(ctx context.Context, slots *places) error {
	for _, name := range s.vendors.Names() {
		if slots.free == 0 || !s.vendors.Policy(name).ReplaySafe {
			continue
		}
		lease := s.deps.NewID()
		jobs, err := s.deps.Work.Claim(ctx, ports.ClaimParams{
			Kind: ports.WorkReconcile, Provider: name, Now: s.deps.Now(), Limit: slots.free, Lease: lease, LeaseFor: s.cfg.Poll.Lease,
			Except: s.deps.Gate.shut(verbSubmit),
		})
		if err != nil {
			return fmt.Errorf("claim replays: %w", err)
		}
		if err := s.replaySome(ctx, slots, jobs, lease); err != nil {
			return err
		}
	}
	return nil
}

func (s *Submitter) replaySome(ctx context.Context, slots *places, jobs []ports.Job, lease domain.ID) error {
	var unknown, rest []ports.Job
	for _, job := range jobs {
		if job.Attempt.Status == domain.AttemptSubmitUnknown && job.Attempt.ProviderTaskID == "" {
			unknown = append(unknown, job)
		} else {
			rest = append(rest, job)
		}
	}
	refused, err := s.begin(ctx, slots, unknown, domain.InputSubmitReplayed)
	if err != nil {
		return err // the lease of the others runs out
	}
	for _, job := range append(rest, refused...) {
		slots.run(func() error { return s.reconcile(ctx, job, lease) })
	}
	return nil
}

func (s *Submitter) reconcile(ctx context.Context, job ports.Job, lease domain.ID) error {
	item, err := s.querier.ask(ctx, job, lease, domain.SourceReconcile)
	if _, off := putOff(err, 0); off {
		return nil // its lease runs out
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
// granted. It returns those that were not.
func (s *Submitter) begin(ctx context.Context, slots *places, jobs []ports.Job, kind domain.Kind) (refused []ports.Job, err error) {
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
		slots.run(func() error { return s.submit(ctx, job, until) })
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
