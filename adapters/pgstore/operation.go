package pgstore

import (
	"context"
	"fmt"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// The statuses of an operation; its lease is a column of its own.
const (
	operationPending = "pending"
	operationDone    = "done"
	operationFailed  = "failed"
)

// ClaimOperations implements ports.Work.
func (s *Store) ClaimOperations(ctx context.Context, params ports.OperationClaim) ([]ports.OperationJob, error) {
	rows, err := s.queries().OperationClaim(ctx, &dbgen.OperationClaimParams{
		OperationType: string(params.Type), Now: at(params.Now), MaxRows: int32(max(params.Limit, 0)),
		Lease: uid(params.Lease), LeaseUntil: at(params.Now.Add(params.LeaseFor)),
	})
	if err != nil {
		return nil, outward("claim operations", err)
	}
	jobs := make([]ports.OperationJob, len(rows))
	for i, r := range rows {
		attempt, err := attemptOf(r.TaskAttempt)
		if err != nil {
			return nil, outward("claim operations", err)
		}
		jobs[i] = ports.OperationJob{
			ID: domain.OperationID{ID: idOf(r.ID)}, Type: params.Type, Tries: int(r.Tries),
			Task: taskOf(r.GenerationTask), Attempt: attempt,
		}
	}
	return jobs, nil
}

// ReleaseOperation implements ports.Work.
func (s *Store) ReleaseOperation(ctx context.Context, params ports.OperationRelease) error {
	n, err := s.queries().OperationRelease(ctx, &dbgen.OperationReleaseParams{
		ID: uid(params.ID.ID), Lease: uid(params.Lease), NextAt: at(params.NextAt), ErrorCode: textPtr(params.ErrorCode), Now: at(s.now()),
		Untried: params.Untried,
	})
	if err == nil && n == 0 {
		return fmt.Errorf("operation: %w", ports.ErrLeaseLost)
	}
	return outward("release operation", err)
}
