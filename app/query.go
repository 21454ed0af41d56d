package app

import (
	"context"
	"errors"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// errLimited says that our own limits did not let a query through in time. The
// lease then runs out and the attempt comes again.
var errLimited = errors.New("limited")

// querier asks vendors about attempts and turns every answer, or the lack of
// one, into an input of the state machine.
type querier struct {
	env     Env
	vendors Vendors
	quota   ports.Quota
	limits  QuotaConfig
	// gate says which accounts may be called; nil for all.
	gate *Gate
	// timeout bounds one call, patience the wait for our own limits.
	timeout  time.Duration
	patience time.Duration
	// turnstile orders the calls that wait for permits.
	turnstile turnstile
}

// ask queries one leased attempt. The item is what to apply; an error of putOff
// when the vendor was not asked.
func (q *querier) ask(ctx context.Context, job ports.Job, lease domain.ID, source domain.Source) (ports.Item, error) {
	vendor, known := q.vendors.Vendor(job.Attempt.Provider)
	account, ok := q.vendors.Account(job.Attempt.Provider, job.Attempt.AccountID)
	if !known || !ok {
		// Our own configuration lacks it: like a refused credential, it says nothing
		// about the task.
		return q.failed(job, lease, q.env.Now(), &domain.QueryError{Class: domain.QueryAuth}, whyNotConfigured), nil
	}
	req := ports.QueryRequest{Account: account, Attempt: job.Attempt}
	switch {
	case job.Attempt.ProviderTaskID != "":
		return q.query(ctx, vendor, req, job, lease, source)
	case job.Attempt.Status == domain.AttemptSubmitUnknown:
		return q.lookup(ctx, vendor, req, job, lease)
	default:
		return q.failed(job, lease, q.env.Now(), &domain.QueryError{Class: domain.QueryNotFound}, whyNoID), nil
	}
}

func (q *querier) query(ctx context.Context, vendor Vendor, req ports.QueryRequest, job ports.Job, lease domain.ID, source domain.Source) (ports.Item, error) {
	pass, err := q.enter(ctx, job)
	if err != nil {
		return ports.Item{}, err
	}
	began := q.env.Now()
	res, err := within(ctx, q.timeout, func(ctx context.Context) (ports.QueryResult, error) { return vendor.Query(ctx, req) })
	pass.done(ctx, err)
	q.measure(job, began, err)
	if err != nil {
		return q.failed(job, lease, began, queryError(err), whyOf(err)), nil
	}
	return q.answer(res, job, lease, began, source), nil
}

// lookup finds an unknown submit by our own id, where the vendor can.
func (q *querier) lookup(ctx context.Context, vendor Vendor, req ports.QueryRequest, job ports.Job, lease domain.ID) (ports.Item, error) {
	began, reason := q.env.Now(), whyNoJob
	if vendor.Policy().CanLookup {
		pass, err := q.enter(ctx, job)
		if err != nil {
			return ports.Item{}, err
		}
		began = q.env.Now()
		found := false
		res, err := within(ctx, q.timeout, func(ctx context.Context) (res ports.QueryResult, err error) {
			res, found, _, err = vendor.Lookup(ctx, req)
			return res, err
		})
		pass.done(ctx, err)
		q.measure(job, began, err)
		if err == nil && found {
			return q.answer(res, job, lease, began, domain.SourceReconcile), nil
		}
		if err != nil {
			reason = whyOf(err)
		}
	}
	in := domain.Input{
		Kind: domain.InputLookupFailed, Policy: q.vendors.Policy(job.Attempt.Provider), Jitter: q.env.Jitter(),
		Lease: lease, QueryStartedAt: began,
	}
	reason.tell(&in)
	return ports.Item{Ref: ports.Ref{AttemptID: job.Attempt.ID}, Input: in}, nil
}

// putOff reports that a vendor was not asked, by our own limits or because its
// account is shut, and how long to wait: the attempt keeps its timer, and nothing
// was missed.
func putOff(err error, patience time.Duration) (wait time.Duration, off bool) {
	var shut *errShut
	switch {
	case errors.As(err, &shut):
		return shut.wait, true
	case errors.Is(err, errLimited):
		return patience, true
	default:
		return 0, false
	}
}

// enter asks for everything that a query needs: an account that is not shut, and
// permits.
func (q *querier) enter(ctx context.Context, job ports.Job) (*pass, error) {
	pass, err := q.gate.enter(ctx, accountOf(job.Attempt), verbQuery, q.patience+q.timeout)
	if err != nil {
		return nil, err
	}
	if err := q.permit(ctx, job); err != nil {
		pass.drop()
		return nil, err
	}
	return pass, nil
}

// permit waits for a permit at every level, but not for long: the lease is
// running.
func (q *querier) permit(ctx context.Context, job ports.Job) error {
	buckets := q.limits.buckets("query", job.Task, job.Attempt)
	if q.quota == nil || len(buckets) == 0 {
		return nil
	}
	err := q.turnstile.take(ctx, q.quota, buckets, q.env.Now, q.env.Now().Add(q.patience))
	if errors.Is(err, errLimited) {
		q.env.Metrics.Add(MetricQuotaWaits, 1, "query", job.Attempt.Provider)
	}
	return err
}

func (q *querier) answer(res ports.QueryResult, job ports.Job, lease domain.ID, began time.Time, source domain.Source) ports.Item {
	return observationItem(res.Observation, observed{
		ref:    ports.Ref{AttemptID: job.Attempt.ID},
		policy: q.env.policyOf(q.vendors, job.Attempt.Provider, job.Attempt.AccountID), jitter: q.env.Jitter(),
		source: source, trust: domain.TrustAuthentic, at: q.env.Now(), trace: job.Task.TraceID,
		lease: lease, started: began, nextAfter: res.NextAfter,
	})
}

func (q *querier) failed(job ports.Job, lease domain.ID, began time.Time, err *domain.QueryError, reason why) ports.Item {
	in := domain.Input{
		Kind: domain.InputPollFailed, Policy: q.vendors.Policy(job.Attempt.Provider), Jitter: q.env.Jitter(),
		QueryError: err, Lease: lease, QueryStartedAt: began,
	}
	reason.tell(&in)
	return ports.Item{Ref: ports.Ref{AttemptID: job.Attempt.ID}, Input: in}
}

func (q *querier) measure(job ports.Job, began time.Time, err error) {
	q.env.Metrics.Add(MetricQueries, 1, job.Attempt.Provider, outcome(err))
	q.env.Metrics.Observe(MetricQueryTime, q.env.Now().Sub(began).Seconds(), job.Attempt.Provider)
}

// within runs f under a time limit of its own.
func within[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx)
}
