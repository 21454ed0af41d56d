package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Inbox keeps verified deliveries until they are digested (specification
// 12.5.2).
type Inbox interface {
	// Receive stores deliveries in one transaction and returns after the commit:
	// only then may a vendor get a 2xx (I1). Results stand in the order of the
	// rows. A row that the database refuses has Err; the others are stored.
	// ErrUnavailable: nothing is known to be stored.
	Receive(ctx context.Context, rows []InboxRow) ([]ReceiveResult, error)

	// Process takes up to Limit due rows of the worker's shards, decodes them, lets
	// the domain decide and marks them, all in one transaction, so that a crash
	// gives them back. Rows of one task are taken in order by one worker at a
	// time. decode is called with the plain payload, must not block and gets no
	// context. It returns how many rows were taken; 0 means that none was due.
	Process(ctx context.Context, params ProcessParams, decode func(InboxRow) Decoded) (ProcessReport, error)

	// Revive puts rows back to work that wait for a retry or were orphaned and are
	// due, and moves those that failed too often to the dead letters. It returns
	// the counts. Safe on several nodes at once.
	Revive(ctx context.Context, params ReviveParams) (ReviveReport, error)
}

// InboxStatus is where a delivery stands.
type InboxStatus string

// The statuses of a delivery.
const (
	InboxPending InboxStatus = "pending"
	InboxRetry   InboxStatus = "retry"
	InboxOrphan  InboxStatus = "orphan"
	InboxDone    InboxStatus = "done"
	InboxIgnored InboxStatus = "ignored"
	InboxDead    InboxStatus = "dead"
)

// InboxRow is one verified delivery.
type InboxRow struct {
	ID        int64
	Provider  string
	AccountID string
	// DedupKey is unique per provider: account | trust | token if bearer | the
	// best identity that the delivery has.
	DedupKey        string
	ProviderEventID string
	ProviderTaskID  string
	ClientRequestID string
	// TokenHash is the SHA-256 of the token in the URL, nil for account URLs.
	TokenHash          []byte
	Trust              domain.Trust
	ProviderOccurredAt *time.Time
	ReceivedAt         time.Time
	// KeyVersion names the secret that verified it.
	KeyVersion string
	// PayloadHash is the SHA-256 of the raw body.
	PayloadHash []byte
	// Payload is the raw body, plain; the store encrypts it.
	Payload []byte
	TraceID domain.TraceID

	Status     InboxStatus
	ErrorCount int
	ClaimCount int
	// LastError is a code, never text from outside.
	LastError   string
	NextRetryAt time.Time
}

// ReceiveResult says what became of a delivery.
type ReceiveResult struct {
	// Duplicate: the same delivery is stored already.
	Duplicate bool
	// Differs: the same identity came with another payload; a conflict is stored.
	Differs bool
	// Err is a fault of this row alone.
	Err error
}

// ProcessParams is one round of a processor.
type ProcessParams struct {
	// Worker of Workers takes the shards where shard mod Workers = Worker.
	Worker  int
	Workers int
	Limit   int
	Now     time.Time
}

// Decoded is a delivery as the adapter understands it.
type Decoded struct {
	// Item goes to the state machine when Err is nil and Foreign is false.
	Item Item
	// Foreign marks an event that is not about a task; the row is ignored.
	Foreign bool
	// Err means that the body does not parse: the row is retried, then dead. Code
	// names it.
	Err  error
	Code string
}

// ProcessReport counts one round.
type ProcessReport struct {
	Taken   int
	Applied int
	Orphans int
	Failed  int
	// Results has one entry per row that reached the state machine.
	Results []Result
}

// ReviveParams bounds one sweep.
type ReviveParams struct {
	Now time.Time
	// MaxErrors is how often a row may fail before it is dead.
	MaxErrors int
	// OrphanFor is how long an orphan is matched again.
	OrphanFor time.Duration
	// StuckAfter is how long a pending row may wait without a queue entry.
	StuckAfter time.Duration
	Limit      int
}

// ReviveReport counts one sweep.
type ReviveReport struct {
	Revived int
	Dead    int
}
