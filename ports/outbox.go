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
	// ends. With several owners each gets its fair share.
	LeaseShards(ctx context.Context, params ShardParams) ([]ShardLease, error)
	// ReleaseShards gives the owner's shards back at once.
	ReleaseShards(ctx context.Context, owner domain.ID) error
	// Pending returns unpublished rows of the shards in (project, event) order,
	// without those of parked projects and those that wait for a retry.
	Pending(ctx context.Context, shards []ShardLease, limit int) ([]OutboxRow, error)
	// MarkPublished records what the bus acknowledged. Rows of a shard whose lease
	// is lost are left alone: they may be sent again.
	MarkPublished(ctx context.Context, shards []ShardLease, ids []int64, now time.Time) error
	// MarkFailed counts a failed try and sets when the project's rows are due
	// again; after maxTries the project is parked: its rows wait for a person.
	MarkFailed(ctx context.Context, params PublishFailure) error
	// Clean removes rows published before the time, at most limit.
	Clean(ctx context.Context, before time.Time, limit int) (int, error)
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

// OutboxRow is a committed event that waits for the bus.
type OutboxRow struct {
	ID    int64
	Shard int
	Event StoredEvent
	Tries int
}

// PublishFailure is a batch of one project that the bus refused.
type PublishFailure struct {
	ProjectID domain.ProjectID
	IDs       []int64
	NextAt    time.Time
	// MaxTries parks the project at that many failures; one with 0 is not the
	// project's fault and does not count.
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
