package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Desk is what operators look at and close.
type Desk interface {
	// Cases lists open cases, the oldest first; of all kinds when kind is empty.
	Cases(ctx context.Context, kind domain.CaseKind, limit int) ([]Case, error)
	// Case returns one. ErrNotFound.
	Case(ctx context.Context, id int64) (Case, error)
	// Conflicts lists open conflicts, the oldest first.
	Conflicts(ctx context.Context, limit int) ([]ConflictRow, error)
	// Conflict returns one. ErrNotFound.
	Conflict(ctx context.Context, id int64) (ConflictRow, error)
	// CloseConflict records what a person decided. ErrNotFound: not open.
	CloseConflict(ctx context.Context, id int64, resolution string, audit Audit) error
	// RepairHeads compares stream counters with the newest events and raises a
	// counter that is behind. It returns the projects that were repaired.
	RepairHeads(ctx context.Context, limit int) ([]domain.ProjectID, error)
	// CleanExpired removes idempotency keys and other rows past their time, at
	// most limit of each kind, and makes the partitions of the coming days. It
	// returns how many rows each kind has lost: at limit there are more. A kind that
	// fails does not keep the others, and what the others lost is returned with the
	// error. Safe on several nodes at once.
	CleanExpired(ctx context.Context, now time.Time, limit int) (map[string]int, error)
}

// Case is something that a person has to decide.
type Case struct {
	ID        int64
	Kind      domain.CaseKind
	TaskID    domain.TaskID
	AttemptID domain.AttemptID
	Owner     string
	OpenedAt  time.Time
	ClosedAt  *time.Time
}

// ConflictRow is a stored contradiction.
type ConflictRow struct {
	ID         int64
	Kind       domain.Reason
	TaskID     domain.TaskID
	AttemptID  domain.AttemptID
	Have       domain.AttemptStatus
	Got        domain.AttemptStatus
	Outputs    []domain.OutputRef
	OpenedAt   time.Time
	ClosedAt   *time.Time
	Resolution string
}
