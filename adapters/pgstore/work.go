package pgstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Claim implements ports.Work. Kinds with a lease take one round trip.
func (s *Store) Claim(ctx context.Context, params ports.ClaimParams) ([]ports.Job, error) {
	var jobs []ports.Job
	var err error
	switch q := s.queries(); params.Kind {
	case ports.WorkSubmit:
		jobs, err = claimSubmits(ctx, q, params)
	case ports.WorkPoll:
		jobs, err = claimPolls(ctx, q, params)
	case ports.WorkReconcile:
		jobs, err = claimReconciles(ctx, q, params)
	default:
		jobs, err = findDue(ctx, q, params)
	}
	return jobs, outward("claim", err)
}

func claimSubmits(ctx context.Context, q *dbgen.Queries, params ports.ClaimParams) ([]ports.Job, error) {
	rows, err := q.WorkSubmit(ctx, &dbgen.WorkSubmitParams{
		Now: &params.Now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: accountKeys(params.Except), MaxRows: claimLimit(params),
		Lease: uid(params.Lease), LeaseUntil: at(params.Now.Add(params.LeaseFor)),
	})
	if err != nil {
		return nil, err
	}
	return jobsOf(rows, params, func(r *dbgen.WorkSubmitRow) (ports.Job, error) {
		return jobOf(r.GenerationTask, r.TaskAttempt, r.TaskInput)
	})
}

func claimPolls(ctx context.Context, q *dbgen.Queries, params ports.ClaimParams) ([]ports.Job, error) {
	limit := claimLimit(params)
	rows, err := q.WorkPoll(ctx, &dbgen.WorkPollParams{
		Now: at(params.Now), Provider: params.Provider, AccountID: params.AccountID, LeftOut: accountKeys(params.Except),
		FirstRows: max(limit-int32(max(params.ForOthers, 0)), 0), MaxRows: limit,
		Lease: uid(params.Lease), LeaseUntil: at(params.Now.Add(params.LeaseFor)),
	})
	if err != nil {
		return nil, err
	}
	return jobsOf(rows, params, func(r *dbgen.WorkPollRow) (ports.Job, error) {
		return jobOf(r.GenerationTask, r.TaskAttempt, dbgen.TaskInput{})
	})
}

func claimReconciles(ctx context.Context, q *dbgen.Queries, params ports.ClaimParams) ([]ports.Job, error) {
	rows, err := q.WorkReconcile(ctx, &dbgen.WorkReconcileParams{
		Now: &params.Now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: accountKeys(params.Except), MaxRows: claimLimit(params),
		Lease: uid(params.Lease), LeaseUntil: at(params.Now.Add(params.LeaseFor)),
	})
	if err != nil {
		return nil, err
	}
	return jobsOf(rows, params, func(r *dbgen.WorkReconcileRow) (ports.Job, error) {
		return jobOf(r.GenerationTask, r.TaskAttempt, r.TaskInput)
	})
}

// jobsOf converts claimed rows, which come in no order, and puts the longest due
// first.
func jobsOf[R any](rows []R, params ports.ClaimParams, convert func(*R) (ports.Job, error)) ([]ports.Job, error) {
	jobs := make([]ports.Job, len(rows))
	for i := range rows {
		var err error
		if jobs[i], err = convert(&rows[i]); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(jobs, func(a, b ports.Job) int { return dueAt(a, params.Kind).Compare(dueAt(b, params.Kind)) })
	return jobs, nil
}

// dueAt is the timer that a claimed job was found by.
func dueAt(job ports.Job, kind ports.WorkKind) time.Time {
	due := job.Attempt.NextPollAt
	switch kind {
	case ports.WorkSubmit:
		due = job.Attempt.NextSubmitAt
	case ports.WorkReconcile:
		due = job.Attempt.NextReconcileAt
	}
	if due == nil {
		return time.Time{}
	}
	return *due
}

// findDue lists the attempts of a timer without taking them.
func findDue(ctx context.Context, q *dbgen.Queries, params ports.ClaimParams) ([]ports.Job, error) {
	ids, err := due(ctx, q, params)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	ords := make([]int32, len(ids))
	for i := range ids {
		ords[i] = int32(i)
	}
	rows, err := q.AttemptJobs(ctx, ids, ords)
	if err != nil {
		return nil, err
	}
	jobs := make([]ports.Job, len(rows))
	for i, r := range rows {
		if jobs[i], err = jobOf(r.GenerationTask, r.TaskAttempt, r.TaskInput); err != nil {
			return nil, err
		}
	}
	return jobs, nil
}

// due lists the attempts of one timer, the longest due first.
func due(ctx context.Context, q *dbgen.Queries, params ports.ClaimParams) ([]pgtype.UUID, error) {
	now, limit, out := params.Now, claimLimit(params), accountKeys(params.Except)
	switch params.Kind {
	case ports.WorkSubmitExpired:
		return q.WorkSubmitExpired(ctx, &dbgen.WorkSubmitExpiredParams{Now: &now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit})
	case ports.WorkProgress:
		return q.WorkProgress(ctx, &dbgen.WorkProgressParams{Now: &now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit})
	case ports.WorkOverdue:
		return q.WorkOverdue(ctx, &dbgen.WorkOverdueParams{Before: at(params.Before), Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit})
	default:
		return nil, fmt.Errorf("%w: kind of work %q", errData, params.Kind)
	}
}

func claimLimit(params ports.ClaimParams) int32 { return int32(max(params.Limit, 0)) }

// accountKeys spells accounts as the claims compare them; never nil, since nothing
// is outside of NULL.
func accountKeys(accounts []ports.AccountRef) []string {
	keys := make([]string, len(accounts))
	for i, a := range accounts {
		keys[i] = a.Provider + ":" + a.AccountID
	}
	return keys
}

// PutOff implements ports.Work.
func (s *Store) PutOff(ctx context.Context, params ports.PutOffParams) error {
	if len(params.Jobs) == 0 {
		return nil
	}
	ids, untils := make([]pgtype.UUID, len(params.Jobs)), make([]pgtype.Timestamptz, len(params.Jobs))
	for i, j := range params.Jobs {
		ids[i], untils[i] = uid(j.ID.ID), at(j.Until)
	}
	var err error
	switch q := s.queries(); params.Kind {
	case ports.WorkSubmit:
		_, err = q.WorkPutOffSubmits(ctx, &dbgen.WorkPutOffSubmitsParams{Ids: ids, DueAts: untils, Lease: uid(params.Lease)})
	case ports.WorkPoll, ports.WorkReconcile:
		_, err = q.WorkPutOffPolls(ctx, &dbgen.WorkPutOffPollsParams{Ids: ids, DueAts: untils, Lease: uid(params.Lease)})
	default:
		err = fmt.Errorf("%w: kind of work %q has no lease", errData, params.Kind)
	}
	return outward("put off", err)
}

// Watch implements ports.Watches.
func (s *Store) Watch(ctx context.Context, params ports.WatchParams) error {
	ids := make([]pgtype.UUID, len(params.Projects))
	for i, id := range params.Projects {
		ids[i] = uid(id.ID)
	}
	q := s.queries()
	fresh, err := q.WatchProjects(ctx, &dbgen.WatchProjectsParams{ProjectIds: ids, Now: at(params.Now), Until: at(params.Until)})
	if err == nil && len(fresh) > 0 {
		_, err = q.WatchPromote(ctx, fresh)
	}
	return outward("watch", err)
}

// watchedKept is how many watches that ended are removed with one chore.
const watchedKept = 10_000

// LearnDurations implements ports.Durations. Watches that ended go along: both are
// only about the order of polls.
func (s *Store) LearnDurations(ctx context.Context, now time.Time, sample int) (int, error) {
	q := s.queries()
	if _, err := q.WatchClean(ctx, at(now), watchedKept); err != nil {
		return 0, outward("clean watches", err)
	}
	n, err := q.DurationLearn(ctx, at(now), int32(max(sample, 0)))
	return int(n), outward("learn durations", err)
}

// Durations implements ports.Durations.
func (s *Store) Durations(ctx context.Context) ([]ports.ModelDuration, error) {
	rows, err := s.queries().DurationList(ctx)
	if err != nil {
		return nil, outward("durations", err)
	}
	list := make([]ports.ModelDuration, len(rows))
	for i, r := range rows {
		list[i] = ports.ModelDuration{
			Provider: r.Provider, Model: r.Model, Samples: int(r.Samples), UpdatedAt: timeOf(r.UpdatedAt),
			Typical: domain.Typical{P50: time.Duration(r.P50Ms) * time.Millisecond, P95: time.Duration(r.P95Ms) * time.Millisecond},
		}
	}
	return list, nil
}
