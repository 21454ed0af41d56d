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

// OperationConfig shapes a role that works off operations.
type OperationConfig struct {
	// Concurrency is how many run at once; 8 when zero.
	Concurrency int
	// Timeout bounds one try at the outside.
	Timeout time.Duration
	// Lease is how long an operation is ours; longer than Timeout.
	Lease time.Duration
	// MaxTries is how often one is tried before it is given up.
	MaxTries int
	// Retry is the wait after the first failed try, which doubles up to MaxRetry.
	Retry    time.Duration
	MaxRetry time.Duration
	// Interval is the wait after an empty round; 1 s when zero.
	Interval time.Duration
}

// withDefaults fills zero fields from the role's own defaults.
func (c OperationConfig) withDefaults(d OperationConfig) OperationConfig {
	c.Concurrency = cmp.Or(c.Concurrency, d.Concurrency, 8)
	c.Timeout = cmp.Or(c.Timeout, d.Timeout)
	c.Lease = cmp.Or(c.Lease, d.Lease)
	c.MaxTries = cmp.Or(c.MaxTries, d.MaxTries)
	c.Retry = cmp.Or(c.Retry, d.Retry)
	c.MaxRetry = cmp.Or(c.MaxRetry, d.MaxRetry)
	c.Interval = cmp.Or(c.Interval, d.Interval, time.Second)
	return c
}

// validate joins every fault; defaults are filled in already.
func (c OperationConfig) validate(use string) error {
	var errs []error
	if c.Concurrency < 0 || c.Timeout < 0 || c.Lease < 0 || c.MaxTries < 0 || c.Retry < 0 || c.MaxRetry < 0 || c.Interval < 0 {
		errs = append(errs, errors.New(use+": a limit is negative"))
	}
	if c.Timeout+storing > c.Lease {
		errs = append(errs, fmt.Errorf("%s: lease must exceed timeout by at least %v", use, storing))
	}
	if c.MaxRetry < c.Retry {
		errs = append(errs, errors.New(use+": max_retry is shorter than retry"))
	}
	return errors.Join(errs...)
}

// nextTry is when an operation that failed for the given time is due again.
func (c OperationConfig) nextTry(env Env, tries int, wish time.Duration) time.Time {
	wait := domain.Interval{Base: c.Retry, Cap: c.MaxRetry}.Backoff(max(tries-1, 0))
	return env.Now().Add(max(time.Duration(float64(wait)*env.Jitter()), wish))
}

// CancelSenderConfig is an OperationConfig: 8 at once, 15 s for a call under a
// lease of 30 s, 12 tries from 1 s to 1 min apart.
type CancelSenderConfig struct{ OperationConfig }

// WithDefaults returns a copy with every zero field set.
func (c CancelSenderConfig) WithDefaults() CancelSenderConfig {
	c.OperationConfig = c.withDefaults(OperationConfig{
		Timeout: 15 * time.Second, Lease: 30 * time.Second, MaxTries: 12, Retry: time.Second, MaxRetry: time.Minute,
	})
	return c
}

// Validate joins every fault.
func (c CancelSenderConfig) Validate() error { return c.WithDefaults().validate("cancel") }

// CancelSenderDeps are what [CancelSender] works with. Gate may be nil when nothing
// shuts an account; the rest is required.
type CancelSenderDeps struct {
	Env
	Transitions ports.Transitions
	Work        ports.Work
	Vendors     Vendors
	Gate        *Gate
}

// CancelSender asks vendors to stop jobs that users want canceled. The vendor's
// yes is not the end: that comes as news, like every other.
type CancelSender struct {
	deps    CancelSenderDeps
	cfg     CancelSenderConfig
	applier *applier
	pool    *pool
}

// NewCancelSender checks what it is given.
func NewCancelSender(deps CancelSenderDeps, cfg CancelSenderConfig) (*CancelSender, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("cancel", map[string]bool{
		"Transitions": deps.Transitions != nil, "Work": deps.Work != nil, "Vendors": deps.Vendors.providers != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	return &CancelSender{deps: deps, cfg: cfg, applier: newApplier(deps.Env, deps.Transitions), pool: newPool(cfg.Concurrency)}, nil
}

// Step sends what is due, up to Concurrency cancellations, and returns when all
// are answered.
func (s *CancelSender) Step(ctx context.Context) (worked int, err error) {
	worked, err = s.round(ctx)
	s.pool.drain()
	return worked, errors.Join(err, s.pool.takeErr())
}

// Run sends until the context ends and the last calls are answered.
func (s *CancelSender) Run(ctx context.Context) error {
	return Loop{
		Name: "cancel", Step: s.round, Interval: s.cfg.Interval, Bell: s.deps.Bells.Cancel,
		Drain: s.pool.drain, Grace: s.cfg.Lease, Env: s.deps.Env,
	}.Run(ctx)
}

func (s *CancelSender) round(ctx context.Context) (int, error) {
	return workOperations(ctx, operationRound{
		kind: domain.OperationCancelProvider, env: s.deps.Env, work: s.deps.Work, lease: s.cfg.Lease, pool: s.pool,
	}, s.one)
}

// operationRound is one claim of operations.
type operationRound struct {
	kind  domain.OperationType
	env   Env
	work  ports.Work
	lease time.Duration
	pool  *pool
}

// workOperations claims operations for all free slots and leaves them running.
func workOperations(ctx context.Context, r operationRound, one func(context.Context, ports.OperationJob, domain.ID) error) (int, error) {
	slots := r.pool.reserve(ctx)
	defer slots.end()
	if slots.free == 0 {
		return 0, r.pool.takeErr()
	}
	lease := r.env.NewID()
	jobs, err := r.work.ClaimOperations(ctx, ports.OperationClaim{
		Type: r.kind, Now: r.env.Now(), Limit: slots.free, Lease: lease, LeaseFor: r.lease,
	})
	if err != nil {
		err = fmt.Errorf("claim %s: %w", r.kind, err)
	}
	for _, job := range jobs {
		slots.run(func() error {
			err := one(ctx, job, lease)
			if errors.Is(err, ports.ErrLeaseLost) {
				return nil // somebody else has it: their result counts
			}
			return err
		})
	}
	return len(jobs), errors.Join(err, r.pool.takeErr())
}

// one asks the vendor about one cancellation.
func (s *CancelSender) one(ctx context.Context, job ports.OperationJob, lease domain.ID) error {
	vendor, known := s.deps.Vendors.Vendor(job.Attempt.Provider)
	account, ok := s.deps.Vendors.Account(job.Attempt.Provider, job.Attempt.AccountID)
	switch {
	case !known || !ok:
		return s.later(ctx, job, lease, 0, "not_configured")
	case job.Attempt.Status.Terminal():
		return s.finish(ctx, job, lease, domain.InputCancelRefused, "ended")
	case job.Attempt.ProviderTaskID == "":
		return s.later(ctx, job, lease, 0, "no_provider_id")
	}
	pass, err := s.deps.Gate.enter(ctx, accountOf(job.Attempt), verbCancel, s.cfg.Timeout)
	if shut := (*errShut)(nil); errors.As(err, &shut) {
		return s.release(ctx, ports.OperationRelease{
			ID: job.ID, Lease: lease, NextAt: s.deps.Now().Add(shut.wait), ErrorCode: whyShut.code, Untried: true,
		})
	}
	callCtx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	refused, can, err := vendor.Cancel(callCtx, ports.QueryRequest{Account: account, Attempt: job.Attempt})
	if can {
		pass.done(ctx, err)
	} else {
		pass.drop()
	}
	s.deps.Metrics.Add(MetricCancels, 1, job.Attempt.Provider, outcome(err))
	switch {
	case err != nil:
		pe := providerError(err)
		return s.later(ctx, job, lease, pe.RetryAfter, whyOf(err).code)
	case !can || refused:
		return s.finish(ctx, job, lease, domain.InputCancelRefused, "")
	default:
		return s.finish(ctx, job, lease, domain.InputCancelAccepted, "")
	}
}

// later gives the operation back, or gives it up after the last try: then the
// task goes on as if the vendor had refused.
func (s *CancelSender) later(ctx context.Context, job ports.OperationJob, lease domain.ID, wish time.Duration, code string) error {
	if job.Tries >= s.cfg.MaxTries {
		return s.finish(ctx, job, lease, domain.InputCancelRefused, code)
	}
	return s.release(ctx, ports.OperationRelease{
		ID: job.ID, Lease: lease, NextAt: s.cfg.nextTry(s.deps.Env, job.Tries, wish), ErrorCode: code,
	})
}

func (s *CancelSender) release(ctx context.Context, params ports.OperationRelease) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := s.deps.Work.ReleaseOperation(ctx, params); err != nil {
		return fmt.Errorf("release cancellation: %w", err)
	}
	return nil
}

func (s *CancelSender) finish(ctx context.Context, job ports.OperationJob, lease domain.ID, kind domain.Kind, code string) error {
	ctx, cancel := detached(ctx)
	defer cancel()
	err := s.applier.applyAll(ctx, ports.Item{
		Ref:       ports.Ref{AttemptID: job.Attempt.ID},
		Input:     domain.Input{Kind: kind, Policy: s.deps.Vendors.Policy(job.Attempt.Provider), Jitter: s.deps.Jitter()},
		Operation: &ports.OperationFinish{ID: job.ID, Lease: lease, Failed: code != "", ErrorCode: code},
	})
	if err != nil {
		return fmt.Errorf("cancel of %s: %w", job.Attempt.ID, err)
	}
	return nil
}
