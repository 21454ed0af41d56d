package domain

// VerdictKind sorts what became of an input.
type VerdictKind string

// The verdicts.
const (
	// VerdictApplied: the task changed; there is an event.
	VerdictApplied VerdictKind = "applied"
	// VerdictUnchanged: nothing new for the task; the attempt's bookkeeping may
	// have moved.
	VerdictUnchanged VerdictKind = "unchanged"
	// VerdictNeedsQuery: the news cannot be taken at its word; the next poll is
	// brought forward.
	VerdictNeedsQuery VerdictKind = "needs_query"
	// VerdictIgnored: refused, with a reason.
	VerdictIgnored VerdictKind = "ignored"
	// VerdictConflict: contradicts what is settled; recorded for a person.
	VerdictConflict VerdictKind = "conflict"
)

// VerdictKinds lists every verdict.
func VerdictKinds() []VerdictKind {
	return []VerdictKind{VerdictApplied, VerdictUnchanged, VerdictNeedsQuery, VerdictIgnored, VerdictConflict}
}

// Reason says why an input was not simply applied. The list is closed.
type Reason string

// The reasons of ignored and needs_query, and the kinds of conflict.
const (
	ReasonStaleAttempt       Reason = "stale_attempt"
	ReasonStaleSequence      Reason = "stale_sequence"
	ReasonStaleLease         Reason = "stale_lease"
	ReasonRegressiveStatus   Reason = "regressive_status"
	ReasonRegressiveStage    Reason = "regressive_stage"
	ReasonRegressiveProgress Reason = "regressive_progress"
	ReasonThrottledProgress  Reason = "throttled_progress"
	ReasonTerminalAbsorbing  Reason = "terminal_absorbing"
	ReasonDuplicate          Reason = "duplicate"
	ReasonNotTrusted         Reason = "not_trusted"
	ReasonThinEvent          Reason = "thin_event"
	ReasonOutputMissing      Reason = "output_missing"
	ReasonUnknownStatus      Reason = "unknown_status"
	ReasonIdentityMismatch   Reason = "identity_mismatch"
	ReasonOrphan             Reason = "orphan"
	ReasonForeignEvent       Reason = "foreign_event"
	ReasonNotSubmittable     Reason = "not_submittable"

	ConflictTerminal Reason = "contradicting_terminal"
	ConflictLate     Reason = "late_success"
	ConflictPayload  Reason = "payload_differs"
)

// Reasons lists every reason and kind of conflict.
func Reasons() []Reason {
	return []Reason{
		ReasonStaleAttempt, ReasonStaleSequence, ReasonStaleLease, ReasonRegressiveStatus, ReasonRegressiveStage,
		ReasonRegressiveProgress, ReasonThrottledProgress, ReasonTerminalAbsorbing, ReasonDuplicate, ReasonNotTrusted,
		ReasonThinEvent, ReasonOutputMissing, ReasonUnknownStatus, ReasonIdentityMismatch, ReasonOrphan,
		ReasonForeignEvent, ReasonNotSubmittable,
		ConflictTerminal, ConflictLate, ConflictPayload,
	}
}

// Verdict is what became of an input, and why.
type Verdict struct {
	Kind VerdictKind
	// Reason is empty for applied and unchanged.
	Reason Reason
}

// Event is the public fact of one applied change.
type Event struct {
	TenantID  TenantID
	ProjectID ProjectID
	UserID    UserID
	TaskID    TaskID
	AttemptID AttemptID
	// Version is the task's version after the change.
	Version  int64
	Type     string
	Status   Status
	Phase    Phase
	Cancel   Cancel
	Stage    Stage
	Progress *int
	AssetID  AssetID
	Error    *PublicError
	Source   Source
	TraceID  TraceID
}

// EventTaskStatusChanged is the type of every event of a task (specification
// 12.5.5).
const EventTaskStatusChanged = "task.status.changed"

// LedgerType sorts entries of the credit ledger.
type LedgerType string

// The ledger types. The first three are unique per attempt (I9); adjust is
// unique per action.
const (
	LedgerReserve LedgerType = "reserve"
	LedgerSettle  LedgerType = "settle"
	LedgerRefund  LedgerType = "refund"
	LedgerAdjust  LedgerType = "adjust"
)

// LedgerTypes lists every ledger type.
func LedgerTypes() []LedgerType {
	return []LedgerType{LedgerReserve, LedgerSettle, LedgerRefund, LedgerAdjust}
}

// LedgerEntry is one movement of credits that the transition causes.
type LedgerEntry struct {
	TenantID  TenantID
	TaskID    TaskID
	AttemptID AttemptID
	Type      LedgerType
	// Credits is positive; the type says the direction. An adjust takes Credits
	// from the tenant after an earlier refund, or gives them back after an earlier
	// settlement where Back is set.
	Credits int64
	Back    bool
	// ActionID is set on adjust.
	ActionID ActionID
}

// OperationType sorts follow-up work.
type OperationType string

// The operations. Each exists once per attempt (I10).
const (
	OperationFetchOutput    OperationType = "fetch_output"
	OperationCancelProvider OperationType = "cancel_provider"
)

// OperationTypes lists every operation.
func OperationTypes() []OperationType {
	return []OperationType{OperationFetchOutput, OperationCancelProvider}
}

// Operation is follow-up work that the transition starts.
type Operation struct {
	TaskID    TaskID
	AttemptID AttemptID
	Type      OperationType
	// Restart makes a finished operation due again; otherwise one that exists is
	// left as it is.
	Restart bool
}

// CaseKind sorts what a person has to look at.
type CaseKind string

// The cases.
const (
	CaseSubmitUnknown CaseKind = "submit_unknown"
	CaseLost          CaseKind = "lost"
	CaseOverdue       CaseKind = "overdue"
	CaseConflict      CaseKind = "conflict"
	CaseCost          CaseKind = "superseded_cost"
)

// CaseKinds lists every kind of case.
func CaseKinds() []CaseKind {
	return []CaseKind{CaseSubmitUnknown, CaseLost, CaseOverdue, CaseConflict, CaseCost}
}

// Conflict is a contradiction that is kept for a person.
type Conflict struct {
	Kind Reason
	// Have is what is settled, Got what the news claims.
	Have AttemptStatus
	Got  AttemptStatus
	// Outputs are what the refused news carried, so that it can be adopted.
	Outputs []OutputRef
}

// Decision is the whole consequence of one input. The store writes it in one
// transaction; nothing of it is visible before the commit (I6).
type Decision struct {
	Verdict Verdict
	// Task and Attempt are the new values; equal to the old ones where nothing
	// changed.
	Task    Task
	Attempt Attempt
	// NewAttempt is set by a retry.
	NewAttempt *Attempt
	// AttemptChanged and TaskChanged say what has to be written. TaskChanged goes
	// with exactly one Event.
	AttemptChanged bool
	TaskChanged    bool
	Event          *Event
	Ledger         []LedgerEntry
	Operations     []Operation
	Conflict       *Conflict
	// OpenCases and CloseCases are about Attempt.
	OpenCases  []CaseKind
	CloseCases []CaseKind
	// StatusChanged says that the attempt's status moved, with or without a public
	// change.
	StatusChanged bool
	// Source is where the input came from: the event's, and of one without an event
	// the timeline's.
	Source Source
	// Noted marks an input that changed no status and yet explains what a person
	// sees: the first failure of a streak, the one that calls a person.
	Noted bool
}

// Recorded reports whether the input belongs on the task's timeline. What
// changed nothing and what was merely too frequent is only counted, or progress
// every second would bury the timeline.
func (d Decision) Recorded() bool {
	return d.StatusChanged || d.Noted || (d.Verdict.Kind != VerdictUnchanged && d.Verdict.Reason != ReasonThrottledProgress)
}
