package ports

import (
	"context"
	"time"
)

// DeadLetters are the deliveries that need a look: given up (dead), waiting for
// another try (retry) or for their task (orphan).
type DeadLetters interface {
	// Troubled lists such rows, the newest first, without their payload.
	Troubled(ctx context.Context, filter TroubledFilter) ([]InboxRow, error)
	// TroubledGroups sums up the rows that RequeueMany with the same filter would
	// take.
	TroubledGroups(ctx context.Context, filter TroubledFilter) ([]TroubledGroup, error)
	// InboxRow returns any delivery. Its payload is nil once it was removed.
	// ErrNotFound.
	InboxRow(ctx context.Context, id int64) (InboxRow, error)
	// ReadPayload is InboxRow for a person who wants to see the payload: the reading
	// is audited, in the same transaction. ErrNotFound.
	ReadPayload(ctx context.Context, id int64, audit Audit) (InboxRow, error)
	// Requeue puts a dead, retrying or orphaned row back to work at once.
	// ErrNotFound: no such row in such a state.
	Requeue(ctx context.Context, id int64, audit Audit) error
	// RequeueMany gives up to Filter.Limit rows another life, the oldest first, in
	// one transaction with its audit: the first is due at Start, each later one Step
	// after the one before it, and the sweep brings them to work then. So the pace
	// holds whoever dies meanwhile.
	RequeueMany(ctx context.Context, params RequeueParams) (RequeueReport, error)
}

// TroubledFilter chooses among deliveries that need a look; the zero value of a
// field chooses nothing away.
type TroubledFilter struct {
	// Status is dead, retry or orphan.
	Status   InboxStatus
	Provider string
	// Code is the newest error's, such as undecodable.
	Code string
	// ReceivedBefore leaves out what came then or later.
	ReceivedBefore time.Time
	// BeforeID and AfterID page: rows with a lower or a higher id.
	BeforeID int64
	AfterID  int64
	Limit    int
}

// TroubledGroup is how many chosen rows have one vendor, status and code.
type TroubledGroup struct {
	Provider string
	Status   InboxStatus
	Code     string
	Rows     int
	// Oldest and Newest are times of receipt.
	Oldest time.Time
	Newest time.Time
}

// RequeueParams is one transaction of a requeue.
type RequeueParams struct {
	Filter TroubledFilter
	// Start is when the first row is due, Step the distance of the others.
	Start time.Time
	Step  time.Duration
	Audit Audit
}

// RequeueReport says what a requeue took.
type RequeueReport struct {
	Rows int
	// LastID is the highest id among them.
	LastID int64
}
