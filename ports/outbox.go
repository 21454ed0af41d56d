package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// OutboxShards is the number of shards of the outbox. A project's rows share a
// shard, so one relay sends them in order.
const OutboxShards = 64

// Outbox is the queue of committed events that wait for the bus.
type Outbox interface {
	// LeaseShards takes free or expired shards until the owner holds Want of them,
	// and renews those it holds. Shards of a dead owner come free when its lease
	// ends. With several owners each gets its fair share: one that holds more gives
	// the rest up with its next call, so a share is fair after two calls of each.
	LeaseShards(ctx context.Context, params ShardParams) ([]ShardLease, error)
	// ReleaseShards gives the owner's shards back at once.
	ReleaseShards(ctx context.Context, owner domain.ID) error
	// Pending returns unpublished rows in (project, event) order, the oldest ones of
	// the shards, without those of parked projects, those that wait for a retry and
	// those of the projects to be skipped.
	Pending(ctx context.Context, params PendingParams) ([]OutboxRow, error)
	// MarkPublished records what the bus acknowledged. Rows of a shard whose lease
	// is lost are left alone: they may be sent again.
	MarkPublished(ctx context.Context, shards []ShardLease, ids []int64) error
	// MarkFailed counts a refusal of a project's rows, all of which wait until
	// NextAt; at MaxTries in a row the project is parked: its rows wait for a
	// person, whatever comes. It reports whether this call parked it. Without the
	// shard's lease nothing is counted.
	MarkFailed(ctx context.Context, params PublishFailure) (parked bool, err error)
	// Clean removes rows that are published and were written before the time, at
	// most limit.
	Clean(ctx context.Context, before time.Time, limit int) (int, error)
}

// OutboxDesk is the outbox as operators see it.
type OutboxDesk interface {
	// Backlog says how much waits.
	Backlog(ctx context.Context) (Backlog, error)
	// Parked lists parked projects, the longest parked first.
	Parked(ctx context.Context, limit int) ([]ParkedProject, error)
	// ParkedProject returns one. ErrNotFound: not parked.
	ParkedProject(ctx context.Context, project domain.ProjectID) (ParkedProject, error)
	// Unpark has a parked project's rows sent again, in order, its refusals
	// forgotten. ErrNotFound: not parked.
	Unpark(ctx context.Context, project domain.ProjectID, audit Audit) error
}

// Backlog is what waits in the outbox.
type Backlog struct {
	// Rows wait for a relay or a retry; those of parked projects are not counted.
	Rows int64
	// OldestAt is when the oldest of them was written; nil without any.
	OldestAt *time.Time
	// Parked is the number of parked projects.
	Parked int
}

// ParkedProject is a project whose rows the bus refuses.
type ParkedProject struct {
	ProjectID domain.ProjectID
	// ErrorCode is that of the last refusal.
	ErrorCode string
	// Refusals is how often in a row the bus refused it.
	Refusals int
	Since    time.Time
	// Rows is how many wait.
	Rows int64
}

// ShardParams asks for shards.
type ShardParams struct {
	Owner domain.ID
	// Want bounds how many; 0 means a fair share of the live owners.
	Want int
	Now  time.Time
	For  time.Duration
}

// ShardLease is the right to send one shard's rows.
type ShardLease struct {
	Shard int
	// Token rises with every change of owner: the fencing token.
	Token int64
	Until time.Time
}

// PendingParams asks for rows.
type PendingParams struct {
	Shards []ShardLease
	Skip   []domain.ProjectID
	Limit  int
}

// OutboxRow is a committed event that waits for the bus.
type OutboxRow struct {
	ID    int64
	Shard int
	// Event is whole where Message is nil. Beside a Message only its ProjectID,
	// TaskID, Version, Type, EventID and CreatedAt are set: a bus that sends the
	// message as it is spares its decoding and encoding.
	Event StoredEvent
	// Message is the event in the form of the bus.
	Message []byte
	// Tries is how often in a row the bus refused the project; of a row that a group
	// is owed, how often the group failed.
	Tries int
}

// PublishFailure is a project whose rows the bus refused.
type PublishFailure struct {
	ProjectID domain.ProjectID
	// Lease is that of the project's shard.
	Lease  ShardLease
	NextAt time.Time
	// MaxTries parks the project at that many refusals.
	MaxTries  int
	ErrorCode string
}

// BusRetries keeps, for a bus without a broker, which group has yet to see which
// event, so that one failing group neither blocks nor re-runs another.
type BusRetries interface {
	// AddRetries owes the events to the group.
	AddRetries(ctx context.Context, group string, outboxIDs []int64, nextAt time.Time) error
	// DueRetries returns owed events in order. One that waits holds back the later
	// ones of its project. Tries counts the failures within the group.
	DueRetries(ctx context.Context, group string, now time.Time, limit int) ([]OutboxRow, error)
	// SettleRetries forgets what was delivered, and puts the rest off.
	SettleRetries(ctx context.Context, group string, delivered, failed []int64, nextAt time.Time) error
}
