package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// operation is follow-up work and who has it.
type operation struct {
	domain.Operation
	id         domain.OperationID
	nextAt     time.Time
	lease      domain.ID
	leaseUntil time.Time
	tries      int
	finished   bool
}

// operationKey is UNIQUE(task, attempt, type) (I10).
type operationKey struct {
	attempt domain.AttemptID
	kind    domain.OperationType
}

// startOperation makes an operation due at once, unless it exists. A restart has
// a finished one begin anew.
func (x *tx) startOperation(op domain.Operation) {
	key := operationKey{op.AttemptID, op.Type}
	id, exists := x.operationOf[key]
	if exists && (!op.Restart || !x.operations[id].finished) {
		return
	}
	if !exists {
		id = domain.OperationID{ID: wire.NewID()}
	}
	row := operation{Operation: op, id: id, nextAt: x.at}
	put(x, x.operationOf, key, row.id)
	put(x, x.operations, row.id, row)
	x.noteOperation(row, "started", "")
}

func (x *tx) noteOperation(op operation, what, code string) {
	x.remember(op.TaskID, ports.TimelineEntry{
		At: x.at, Kind: "operation", AttemptNo: x.attempts[op.AttemptID].No,
		Status: string(op.Type), Detail: cmp.Or(code, what),
	})
}

// ClaimOperations implements ports.Work.
func (s *Store) ClaimOperations(ctx context.Context, params ports.OperationClaim) ([]ports.OperationJob, error) {
	var jobs []ports.OperationJob
	err := s.write(ctx, func(x *tx) error {
		for _, op := range s.dueOperations(params) {
			op.lease, op.leaseUntil = params.Lease, params.Now.Add(params.LeaseFor)
			op.tries++
			put(x, s.operations, op.id, op)
			jobs = append(jobs, ports.OperationJob{
				ID: op.id, Type: op.Type, Tries: op.tries,
				Task: s.tasks[op.TaskID].Task, Attempt: s.attempt(op.AttemptID).Attempt,
			})
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return jobs, nil
}

// dueOperations lists the operations that may be taken, the longest due first.
func (s *Store) dueOperations(params ports.OperationClaim) []operation {
	var due []operation
	for _, op := range s.operations {
		free := op.lease.IsZero() || !op.leaseUntil.After(params.Now)
		if op.Type == params.Type && !op.finished && free && !op.nextAt.After(params.Now) {
			due = append(due, op)
		}
	}
	slices.SortFunc(due, func(a, b operation) int {
		return cmp.Or(a.nextAt.Compare(b.nextAt), slices.Compare(a.id.ID[:], b.id.ID[:]))
	})
	return due[:min(max(params.Limit, 0), len(due))]
}

// ReleaseOperation implements ports.Work.
func (s *Store) ReleaseOperation(ctx context.Context, params ports.OperationRelease) error {
	return s.write(ctx, func(x *tx) error {
		op, err := x.leased(params.ID, params.Lease)
		if err != nil {
			return err
		}
		op.lease, op.nextAt = domain.ID{}, params.NextAt
		x.noteOperation(op, wire.OperationText(op.tries, params.ErrorCode, op.nextAt), "")
		if params.Untried {
			op.tries--
		}
		put(x, s.operations, op.id, op)
		return checkText(params.ErrorCode)
	})
}

// finishOperation ends the operation that an item names, under its lease.
func (x *tx) finishOperation(f *ports.OperationFinish) error {
	if f == nil {
		return nil
	}
	op, err := x.leased(f.ID, f.Lease)
	if err != nil {
		return err
	}
	op.lease, op.finished = domain.ID{}, true
	put(x, x.operations, op.id, op)
	what := "finished"
	if f.Failed {
		what = "failed"
	}
	x.noteOperation(op, what, f.ErrorCode)
	return checkText(f.ErrorCode)
}

// leased returns an operation if the lease is still the caller's.
func (x *tx) leased(id domain.OperationID, lease domain.ID) (operation, error) {
	op, ok := x.operations[id]
	if !ok || op.finished || op.lease.IsZero() || op.lease != lease {
		return operation{}, fmt.Errorf("operation: %w", ports.ErrLeaseLost)
	}
	return op, nil
}
