package app

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// refusedRetry is how long a create waits after the vendor refused our
// credential, or while none is configured: the fault is ours to mend, and the
// task is not to blame.
const refusedRetry = time.Minute

// submit calls the vendor's create once, under a lease that is committed, and
// stores what became of it.
func (s *Submitter) submit(ctx context.Context, job ports.Job, until time.Time) error {
	items := s.outcome(ctx, job, until)
	if err := s.insist(ctx, items); err != nil {
		s.deps.Logger.Error("the answer to a submit could not be stored",
			"attempt", job.Attempt.ID.String(), "provider", job.Attempt.Provider,
			"provider_task_id", items[0].Input.ProviderTaskID, "outcome", string(items[0].Input.Kind))
		return fmt.Errorf("submit %s: %w", job.Attempt.ID, err)
	}
	return nil
}

// outcome calls the vendor and says what the state machine has to know. Without
// proof that the vendor has nothing, the submit is unknown.
func (s *Submitter) outcome(ctx context.Context, job ports.Job, until time.Time) []ports.Item {
	provider, known := s.deps.Providers.Provider(job.Attempt.Provider)
	account, ok := s.vendors.Account(job.Attempt.Provider, job.Attempt.AccountID)
	began := s.deps.Now()
	switch {
	case !known || !ok:
		return s.notSent(job, refusedRetry, whyNotConfigured)
	case ctx.Err() != nil, began.Add(s.cfg.CallTimeout).After(until):
		return s.notSent(job, 0, whyNotCalled)
	}
	pass, err := s.deps.Gate.enter(ctx, accountOf(job.Attempt), verbSubmit, s.cfg.CallTimeout)
	if shut := (*errShut)(nil); errors.As(err, &shut) {
		return s.notSent(job, shut.wait, whyShut)
	}
	res, err := within(ctx, s.cfg.CallTimeout, func(ctx context.Context) (ports.SubmitResult, error) {
		return create(ctx, provider, ports.SubmitRequest{
			Account: account, Attempt: job.Attempt, Input: job.Input, CallbackURL: s.callbackURL(provider, job.Attempt),
		})
	})
	pass.done(ctx, err)
	s.deps.Metrics.Observe(MetricSubmitTime, s.deps.Now().Sub(began).Seconds(), job.Attempt.Provider)
	s.deps.Metrics.Add(MetricSubmits, 1, job.Attempt.Provider, outcome(err))
	if err != nil {
		return s.notAccepted(job, providerError(err), whyOf(err))
	}
	return s.accepted(job, res)
}

// create is the one place that calls Provider.Submit. A panic proves nothing.
func create(ctx context.Context, p ports.Provider, req ports.SubmitRequest) (res ports.SubmitResult, err error) {
	defer recoverAs(&err)
	return p.Submit(ctx, req)
}

// callbackURL is where the vendor shall report about the attempt: the same for
// every call, so that a replay is the same request.
func (s *Submitter) callbackURL(p ports.Provider, a domain.Attempt) string {
	if s.cfg.CallbackBase == "" || p.Capabilities().Webhook != ports.WebhookPerTask {
		return ""
	}
	return s.cfg.CallbackBase + "/callbacks/" + url.PathEscape(a.Provider) + "/" + s.deps.Tokens.Make(a.ID)
}

// accepted is the vendor's id, with the state that came along. An answer without
// an id leads nowhere unless it is the result itself.
func (s *Submitter) accepted(job ports.Job, res ports.SubmitResult) []ports.Item {
	if !clean(res.ProviderTaskID) || (res.ProviderTaskID == "" && (res.Observation == nil || !res.Observation.Status.Terminal())) {
		return s.unknown(job, whyNoID)
	}
	in := s.leased(job, domain.InputSubmitAccepted)
	in.ProviderTaskID = res.ProviderTaskID
	items := []ports.Item{{Ref: ports.Ref{AttemptID: job.Attempt.ID}, Input: in}}
	if res.Observation == nil {
		return items
	}
	obs := *res.Observation
	if obs.ProviderTaskID == "" {
		obs.ProviderTaskID = res.ProviderTaskID
	}
	return append(items, observationItem(obs, observed{
		ref: ports.Ref{AttemptID: job.Attempt.ID}, policy: in.Policy, jitter: s.deps.Jitter(),
		source: domain.SourceSubmit, trust: domain.TrustAuthentic, at: s.deps.Now(), trace: job.Task.TraceID,
	}))
}

// notAccepted sorts a failed create. A refusal of the request is the vendor's
// verdict; a refusal of the credential is not about the task; NotSent is proof;
// everything else leaves it unknown whether the vendor has the job.
func (s *Submitter) notAccepted(job ports.Job, err *ports.ProviderError, reason why) []ports.Item {
	switch {
	case err.NotSent:
		return s.notSent(job, err.RetryAfter, reason)
	case err.Class == ports.ClassAuth:
		return s.notSent(job, max(err.RetryAfter, refusedRetry), reason)
	case err.Class == ports.ClassRejected, err.Class == ports.ClassNotFound:
		in := s.leased(job, domain.InputSubmitRejected)
		in.ErrorClass, in.ErrorCode, in.ErrorMessage = domain.ErrorClass(err.ErrorClass), storable(err.Code), reason.message
		if in.ErrorClass == "" {
			in.ErrorClass = domain.ClassInvalidInput
		}
		return []ports.Item{{Ref: ports.Ref{AttemptID: job.Attempt.ID}, Input: in}}
	default:
		return s.unknown(job, reason)
	}
}

func (s *Submitter) notSent(job ports.Job, retryAfter time.Duration, reason why) []ports.Item {
	in := s.leased(job, domain.InputSubmitNotSent)
	in.RetryAfter = retryAfter
	reason.tell(&in)
	return []ports.Item{{Ref: ports.Ref{AttemptID: job.Attempt.ID}, Input: in}}
}

func (s *Submitter) unknown(job ports.Job, reason why) []ports.Item {
	in := s.leased(job, domain.InputSubmitUnknown)
	reason.tell(&in)
	return []ports.Item{{Ref: ports.Ref{AttemptID: job.Attempt.ID}, Input: in}}
}

func (s *Submitter) leased(job ports.Job, kind domain.Kind) domain.Input {
	in := s.input(job, kind)
	in.Lease = job.Attempt.SubmitLease
	return in
}

// insist stores the outcome, again and again while the store is away: a lost id
// would be an unknown submit and a case for a person. It outlives the context,
// since the vendor has been called.
func (s *Submitter) insist(ctx context.Context, items []ports.Item) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.cfg.Insist)
	defer cancel()
	wait := 100 * time.Millisecond
	for {
		results, err := s.applier.apply(ctx, items...)
		if err == nil {
			return faults(results)
		}
		if ctx.Err() != nil {
			return err
		}
		pause(ctx, time.Duration(float64(wait)*s.deps.Jitter()), nil)
		wait = min(2*wait, 5*time.Second)
	}
}
