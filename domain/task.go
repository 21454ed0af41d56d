package domain

import "time"

// LateSuccess is what becomes of a result that arrives after the user asked to
// cancel.
type LateSuccess string

// The policies for a late success.
const (
	LateSuccessKeep    LateSuccess = "keep"
	LateSuccessDiscard LateSuccess = "discard"
)

// Task is the aggregate: the facts of one generation task. Values are copied,
// never shared; [Apply] returns a new one.
type Task struct {
	ID        TaskID
	TenantID  TenantID
	ProjectID ProjectID
	UserID    UserID

	// Phase, Cancel and UnknownSince are the facts; see [Public].
	Phase        Phase
	Cancel       Cancel
	UnknownSince *time.Time

	Stage Stage
	// Progress is a percentage from 0 to 100, nil when nothing is known.
	Progress *int
	// Version rises by exactly one with every applied change (I4); 1 at creation.
	Version int64
	// LastEventID is the number of the newest event in the project's stream; the
	// store sets it, since only a locked stream can give it.
	LastEventID int64

	CurrentAttemptID AttemptID
	// AttemptCount is the number of the newest attempt.
	AttemptCount int
	// OnLateSuccess is the project's policy, copied at submit.
	OnLateSuccess LateSuccess
	AssetID       AssetID
	// Error is set only in phase failed.
	Error   *PublicError
	TraceID TraceID

	CreatedAt  time.Time
	UpdatedAt  time.Time
	TerminalAt *time.Time
}

// Status is the public status of the task.
func (t Task) Status() Status { return Public(t.Phase, t.Cancel, t.UnknownSince) }

// Current reports whether the attempt is the one that may change the task.
func (t Task) Current(a Attempt) bool { return t.CurrentAttemptID == a.ID }
