package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Transitions is the only way to change a task. One call is one transaction:
// facts, event, outbox row and ledger entries become visible together or not at
// all (I6).
type Transitions interface {
	// Create stores a new task with its first attempt, input, event 1, reservation
	// and idempotency key. A known idempotency key with the same body hash returns
	// the task of then with Replayed set; with another hash ErrIdempotencyMismatch.
	// ErrNotFound: no such project. ErrCredits: nothing was stored.
	Create(ctx context.Context, params CreateParams) (CreateResult, error)

	// Apply lets the domain decide each item on locked rows and writes all
	// decisions in one transaction. Results stand in the order of the items;
	// several items of one task are applied in that order. An item that the domain
	// refuses, or that the database refuses for its data, has Err and leaves the
	// others alone. The error of the call means that nothing is known to be
	// committed: ErrUnavailable may be tried again whole.
	Apply(ctx context.Context, items []Item) ([]Result, error)
}

// Ref says how to find the attempt that an input is about. AttemptID and TaskID
// are our own word; the rest is the vendor's. All that are set must agree:
// two that name different attempts give ignored(identity_mismatch), none that is
// known gives ignored(orphan).
type Ref struct {
	AttemptID domain.AttemptID
	// TaskID means the task's current attempt; ProjectID, when set, must own it.
	TaskID    domain.TaskID
	ProjectID domain.ProjectID

	// TokenHash is the SHA-256 of the token in the callback URL.
	TokenHash       []byte
	Provider        string
	AccountID       string
	ProviderTaskID  string
	ClientRequestID string
}

// Item is one input on its way to the state machine.
type Item struct {
	Ref   Ref
	Input domain.Input
	// Idempotency makes a command repeatable; nil for observations.
	Idempotency *Idempotency
	// Audit is written with the decision; required for a resolution.
	Audit *Audit
	// Asset is stored with an applied media_ready.
	Asset *Asset
	// Operation is finished with the decision, whatever the verdict, if its lease
	// still holds; if not, Err is ErrLeaseLost and nothing of the item is written.
	Operation *OperationFinish
	// TokenHash is stored with the attempt that a retry opens.
	TokenHash []byte
}

// Result is what became of an item.
type Result struct {
	Decision domain.Decision
	// Event is the stored event when the verdict is applied.
	Event *StoredEvent
	// Replayed is set when the idempotency key was known; Decision then holds the
	// task as it is now.
	Replayed bool
	// Err is a domain error of a command, ErrNotFound for a task that the Ref does
	// not reach, or a fault of the item's data.
	Err error
}

// Idempotency names one request of a client within its tenant and scope.
type Idempotency struct {
	TenantID domain.TenantID
	// Scope is the route, so that one key may serve two routes.
	Scope    string
	Key      string
	BodyHash []byte
	// ExpiresAt is when the key may be used anew.
	ExpiresAt time.Time
}

// Audit is who did what and why.
type Audit struct {
	ActionID domain.ActionID
	// Actor names the API key, user or role; never a secret.
	Actor  string
	Action string
	Reason string
}

// AuditDetail is an audit in the timeline: the actor, and the reason where one was
// given.
func AuditDetail(actor, reason string) string {
	if reason == "" {
		return actor
	}
	return actor + ": " + reason
}

// CreateParams is a task to be stored.
type CreateParams struct {
	Task    domain.Task
	Attempt domain.Attempt
	// TokenHash is the SHA-256 of the attempt's callback token.
	TokenHash   []byte
	Input       TaskInput
	Idempotency *Idempotency
}

// CreateResult is the stored task.
type CreateResult struct {
	View     TaskView
	Cursor   domain.Cursor
	Replayed bool
}

// TaskInput is what the user asked for, in the product's words.
type TaskInput struct {
	Prompt          string
	ImageURL        string
	DurationSeconds int
	AspectRatio     string
	Resolution      string
	Seed            *int64
	// Extra is a JSON object handed to the vendor as it is; nil for none.
	Extra []byte
	// Metadata is the client's own JSON object, returned and never read.
	Metadata []byte
}
