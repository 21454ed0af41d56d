package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/ports"
)

// Claim implements ports.Work.
func (s *Store) Claim(ctx context.Context, params ports.ClaimParams) ([]ports.Job, error) {
	q := s.queries()
	ids, err := due(ctx, q, params)
	if err != nil || len(ids) == 0 {
		return nil, outward("claim", err)
	}
	ords := make([]int32, len(ids))
	for i := range ids {
		ords[i] = int32(i)
	}
	rows, err := q.AttemptJobs(ctx, ids, ords)
	if err != nil {
		return nil, outward("claim", err)
	}
	jobs := make([]ports.Job, len(rows))
	for i, r := range rows {
		if jobs[i], err = jobOf(r.GenerationTask, r.TaskAttempt, r.TaskInput); err != nil {
			return nil, outward("claim", err)
		}
	}
	return jobs, nil
}

// due lists the attempts of one timer, the longest due first.
func due(ctx context.Context, q *dbgen.Queries, params ports.ClaimParams) ([]pgtype.UUID, error) {
	now, limit := params.Now, int32(max(params.Limit, 0))
	lease, until := uid(params.Lease), at(now.Add(params.LeaseFor))
	out := make([]string, len(params.Except)) // never nil: nothing is outside of NULL
	for i, ref := range params.Except {
		out[i] = ref.Provider + ":" + ref.AccountID
	}
	switch params.Kind {
	case ports.WorkSubmit:
		return q.WorkSubmit(ctx, &dbgen.WorkSubmitParams{Now: &now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit})
	case ports.WorkSubmitExpired:
		return q.WorkSubmitExpired(ctx, &dbgen.WorkSubmitExpiredParams{Now: &now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit})
	case ports.WorkPoll:
		return q.WorkPoll(ctx, &dbgen.WorkPollParams{Now: &now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit, Lease: lease, LeaseUntil: until})
	case ports.WorkReconcile:
		return q.WorkReconcile(ctx, &dbgen.WorkReconcileParams{Now: &now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit, Lease: lease, LeaseUntil: until})
	case ports.WorkProgress:
		return q.WorkProgress(ctx, &dbgen.WorkProgressParams{Now: &now, Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit})
	case ports.WorkOverdue:
		return q.WorkOverdue(ctx, &dbgen.WorkOverdueParams{Before: at(params.Before), Provider: params.Provider, AccountID: params.AccountID, LeftOut: out, MaxRows: limit})
	default:
		return nil, fmt.Errorf("%w: kind of work %q", errData, params.Kind)
	}
}
