package domain

import (
	"slices"
	"time"
)

// Closing says how the money of an attempt was closed. An attempt is closed
// once: settled or refunded (I9).
type Closing string

// The ways in which an attempt's reservation is closed.
const (
	ClosingOpen     Closing = "open"
	ClosingSettled  Closing = "settled"
	ClosingRefunded Closing = "refunded"
)

// OutputRef points at one result at the vendor. It is compared by Ref, since
// vendors sign URLs anew.
type OutputRef struct {
	// Kind is "video", "image" or another word of the platform's own.
	Kind string
	// Ref is the vendor's stable name of the output; the URL without its query
	// where the vendor has no other.
	Ref string
	// URL is where to fetch it; never shown to the public.
	URL string
	// ExpiresAt is when the URL stops working; nil when the vendor does not say.
	ExpiresAt *time.Time
}

// Attempt is one try at a task with one vendor account. What it holds is what
// is known of the vendor's side; an attempt that is not current never changes
// its task (I11).
type Attempt struct {
	ID     AttemptID
	TaskID TaskID
	// No counts the attempts of a task from 1.
	No        int
	Provider  string
	Model     string
	AccountID string
	// BaseURL is where the job lives; pinned, since jobs are regional.
	BaseURL string
	// ClientRequestID is made before the vendor is called and sent along where
	// the vendor has a field for it.
	ClientRequestID string
	// ProviderTaskID is the vendor's id, empty until it is known.
	ProviderTaskID string

	Status AttemptStatus
	// LastSequence is the highest vendor sequence that was applied.
	LastSequence *int64
	// LastProviderAt is the vendor's time of the newest applied news; for people.
	LastProviderAt *time.Time
	// Progress is the maximum seen within the current stage at the vendor.
	Progress *int
	// ProgressAt is when progress was last stored as an event.
	ProgressAt *time.Time
	// DeferredProgress waits for DeferredUntil because the last event was too
	// fresh; the newest wins.
	DeferredProgress *int
	DeferredUntil    *time.Time

	Outputs    []OutputRef
	ErrorClass ErrorClass
	// ErrorCode is the vendor's code; internal, never public.
	ErrorCode string

	SubmitLease      ID
	SubmitLeaseUntil *time.Time
	NextSubmitAt     *time.Time
	// SubmitCount counts calls of the vendor's create that began.
	SubmitCount int
	SubmittedAt *time.Time

	PollLease      ID
	PollLeaseUntil *time.Time
	NextPollAt     *time.Time
	// PollCount counts queries since the status last changed; the exponent of
	// the interval.
	PollCount int
	// PollFailures counts queries in a row that failed or answered with a word
	// that nobody knows.
	PollFailures int
	// PollHintAt is when a delivery asked for a query that has not begun yet.
	PollHintAt *time.Time
	// LastQueryAt is when the newest answered or failed query began.
	LastQueryAt *time.Time
	// NextReconcileAt is the timer of the slow loop: lookups of an unknown
	// submit, the extra query of a conflict, cost of a superseded attempt.
	NextReconcileAt *time.Time
	// ReconcileCount counts its rounds.
	ReconcileCount int
	// Overdue is set once the attempt has taken longer than the vendor ever
	// should; polls go slow and a case is open.
	Overdue bool
	// Conflicted is set once a contradicting terminal arrived; the extra query is
	// asked once.
	Conflicted bool

	// Credits is what was reserved for the attempt, in the platform's unit.
	Credits int64
	Closing Closing
	// AdoptedBy is the command that took this attempt's result after its money was
	// refunded; it names the adjust entry that charges again.
	AdoptedBy ActionID

	CreatedAt  time.Time
	UpdatedAt  time.Time
	TerminalAt *time.Time
}

// Timer returns the next moment at which the attempt is looked at again, nil
// when no timer runs (I16).
func (a Attempt) Timer() *time.Time {
	var first *time.Time
	for _, t := range []*time.Time{a.NextSubmitAt, a.SubmitLeaseUntil, a.NextPollAt, a.NextReconcileAt} {
		if t != nil && (first == nil || t.Before(*first)) {
			first = t
		}
	}
	return first
}

// clone copies the slice, so that a Decision never shares memory with its
// input; pointers are replaced, never written through.
func (a Attempt) clone() Attempt {
	a.Outputs = slices.Clone(a.Outputs)
	return a
}
