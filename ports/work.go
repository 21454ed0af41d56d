package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Work finds attempts and operations whose timer is due. The times in the store
// are the truth; any index elsewhere only speeds them up.
type Work interface {
	// Claim returns due attempts, the longest due first. Kinds poll and reconcile
	// take the poll lease for the caller, kind submit the submit lease, so that no
	// other process queries or submits the same attempt; the others take nothing,
	// since the transition that follows is the lock.
	//
	// Kind poll knows two queues. First come attempts that somebody waits for: a
	// delivery asked for the query, or, when the last query was claimed, the project
	// was watched ([Watches]) or the job was near its end ([domain.Typical] as
	// learned by [Durations]). ClaimParams.ForOthers keeps a share of each claim for
	// the rest.
	Claim(ctx context.Context, params ClaimParams) ([]Job, error)
	// PutOff gives claimed attempts back unworked, to be claimed again from a time
	// of their own: the lease ends then, and their place in the queue stays. Those
	// whose lease is not the caller's any more are left alone.
	PutOff(ctx context.Context, params PutOffParams) error

	// ClaimOperations takes due operations under a lease.
	ClaimOperations(ctx context.Context, params OperationClaim) ([]OperationJob, error)
	// ReleaseOperation gives an operation back for a later try. ErrLeaseLost.
	ReleaseOperation(ctx context.Context, params OperationRelease) error
}

// WorkKind says which timer is asked for.
type WorkKind string

// The kinds of due work.
const (
	// WorkSubmit: attempts in created whose next_submit_at has come and no lease
	// holds.
	WorkSubmit WorkKind = "submit"
	// WorkSubmitExpired: attempts in submitting whose lease has ended.
	WorkSubmitExpired WorkKind = "submit_expired"
	// WorkPoll: next_poll_at has come and no poll lease holds.
	WorkPoll WorkKind = "poll"
	// WorkReconcile: next_reconcile_at has come and no poll lease holds.
	WorkReconcile WorkKind = "reconcile"
	// WorkProgress: deferred_until has come.
	WorkProgress WorkKind = "progress"
	// WorkOverdue: submitted before Before, or created before it and never taken by
	// the vendor, and not yet overdue. An unknown submit has its own case.
	WorkOverdue WorkKind = "overdue"
)

// ClaimParams asks for due attempts.
type ClaimParams struct {
	Kind WorkKind
	Now  time.Time
	// Before goes with WorkOverdue.
	Before time.Time
	// Provider limits the answer to one vendor when set, with AccountID to one of its
	// accounts.
	Provider  string
	AccountID string
	// Except leaves these accounts out.
	Except []AccountRef
	Limit  int
	// ForOthers goes with WorkPoll: so many of Limit are not for the first queue.
	// What the others do not need stays unused, and what the first queue does not
	// need goes to the others.
	ForOthers int
	// Lease and LeaseFor go with the kinds that take a lease.
	Lease    domain.ID
	LeaseFor time.Duration
}

// PutOffParams gives claimed attempts back.
type PutOffParams struct {
	// Kind and Lease are those of the claim.
	Kind  WorkKind
	Lease domain.ID
	Jobs  []PutOffJob
}

// PutOffJob is one attempt that comes again later.
type PutOffJob struct {
	ID    domain.AttemptID
	Until time.Time
}

// Job is an attempt whose time has come.
type Job struct {
	Task    domain.Task
	Attempt domain.Attempt
	// Input is filled for kinds submit and reconcile, whose work may be a create.
	Input TaskInput
}

// OperationClaim asks for due operations.
type OperationClaim struct {
	Type     domain.OperationType
	Now      time.Time
	Limit    int
	Lease    domain.ID
	LeaseFor time.Duration
}

// OperationJob is an operation under the caller's lease.
type OperationJob struct {
	ID      domain.OperationID
	Type    domain.OperationType
	Tries   int
	Task    domain.Task
	Attempt domain.Attempt
}

// OperationRelease gives an operation back.
type OperationRelease struct {
	ID    domain.OperationID
	Lease domain.ID
	// NextAt is when it is due again.
	NextAt time.Time
	// ErrorCode is our own word for what went wrong.
	ErrorCode string
	// Untried: nothing was asked of anybody, so this claim does not count as a try.
	Untried bool
}

// OperationFinish ends an operation within a transition.
type OperationFinish struct {
	ID    domain.OperationID
	Lease domain.ID
	// Failed says that it was given up; the transition says what that means.
	Failed    bool
	ErrorCode string
}
