package ports

import (
	"context"
	"time"
)

// SweepLog keeps what the periodic chores did, on whatever node, and measures what
// waits for them and for people.
type SweepLog interface {
	// RecordSweeps adds runs to the books.
	RecordSweeps(ctx context.Context, runs []SweepRun) error
	// Sweeps lists every chore that ever ran, by name.
	Sweeps(ctx context.Context) ([]SweepRun, error)
	// Waiting measures each queue, by name, with one cheap query.
	Waiting(ctx context.Context, now time.Time) ([]Waiting, error)
	// PartitionDaysAhead is how many of the coming days have what the store needs to
	// write events; below three no sweep is running.
	PartitionDaysAhead(ctx context.Context) (int, error)
}

// SweepRun is what a chore did.
type SweepRun struct {
	Chore string
	// LastAt is when the newest run began, LastRows and LastTook what it took.
	LastAt   time.Time
	LastRows int
	LastTook time.Duration
	// FailedAt is when a run failed the last time; nil for never.
	FailedAt *time.Time
	// Runs, Rows and Errors are sums.
	Runs   int
	Rows   int
	Errors int
}

// The names of backlogs.
const (
	WaitingPending         = "deliveries_pending"
	WaitingRetry           = "deliveries_retry"
	WaitingOrphan          = "deliveries_orphan"
	WaitingDead            = "deliveries_dead"
	WaitingReconciliations = "reconciliations"
	WaitingCases           = "cases"
	WaitingConflicts       = "conflicts"
)

// WaitingMost is where the rows of a backlog stop being counted.
const WaitingMost = 10_000

// Waiting is one queue of work or of decisions.
type Waiting struct {
	Name string
	// Rows is at most WaitingMost.
	Rows int
	// Oldest is since when the longest waiting row waits; nil when none does.
	Oldest *time.Time
}
