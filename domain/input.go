package domain

import "time"

// Kind names what [Apply] is asked to digest.
type Kind string

// The kinds of input.
const (
	// InputObservation is news from the vendor; needs Observation.
	InputObservation Kind = "observation"
	// InputPollFailed is a query without an answer; needs QueryError.
	InputPollFailed Kind = "poll_failed"

	// InputSubmitStarted takes the lease before the vendor's create is called.
	InputSubmitStarted Kind = "submit_started"
	// InputSubmitAccepted is the vendor's id; needs ProviderTaskID.
	InputSubmitAccepted Kind = "submit_accepted"
	// InputSubmitNotSent says that the vendor provably did not get the request.
	InputSubmitNotSent Kind = "submit_not_sent"
	// InputSubmitRejected is the vendor's refusal; needs ErrorClass.
	InputSubmitRejected Kind = "submit_rejected"
	// InputSubmitUnknown says that nobody knows whether the vendor accepted.
	InputSubmitUnknown Kind = "submit_unknown"
	// InputSubmitReplayed takes the lease again where the vendor documents that
	// the same request is not run twice.
	InputSubmitReplayed Kind = "submit_replayed"
	// InputLookupFailed is a lookup of an unknown submit that found nothing yet.
	InputLookupFailed Kind = "lookup_failed"

	// InputCancelRequested is the user's wish.
	InputCancelRequested Kind = "cancel_requested"
	// InputCancelAccepted and InputCancelRefused are the vendor's answer to it.
	InputCancelAccepted Kind = "cancel_accepted"
	InputCancelRefused  Kind = "cancel_refused"
	// InputRetryRequested opens a new attempt; needs NewAttempt.
	InputRetryRequested Kind = "retry_requested"

	// InputProgressDue is the timer of deferred progress.
	InputProgressDue Kind = "progress_due"
	// InputOverdue is the timer of the longest duration that is normal.
	InputOverdue Kind = "overdue"

	// InputMediaStage, InputMediaReady and InputMediaFailed come from the media
	// role; they need Stage, AssetID and ErrorClass.
	InputMediaStage  Kind = "media_stage"
	InputMediaReady  Kind = "media_ready"
	InputMediaFailed Kind = "media_failed"

	// InputResolution is a person's decision; needs Resolution.
	InputResolution Kind = "resolution"
)

// Kinds lists every kind of input.
func Kinds() []Kind {
	return []Kind{
		InputObservation, InputPollFailed,
		InputSubmitStarted, InputSubmitAccepted, InputSubmitNotSent, InputSubmitRejected, InputSubmitUnknown, InputSubmitReplayed, InputLookupFailed,
		InputCancelRequested, InputCancelAccepted, InputCancelRefused, InputRetryRequested,
		InputProgressDue, InputOverdue,
		InputMediaStage, InputMediaReady, InputMediaFailed,
		InputResolution,
	}
}

// Input is one thing that happened. Which fields matter depends on Kind.
type Input struct {
	Kind Kind
	// Policy is what the vendor's documentation says about it.
	Policy Policy
	// Jitter multiplies every interval; drawn from 0.8 to 1.2 by the caller, 0
	// means 1.
	Jitter float64

	Observation *Observation
	QueryError  *QueryError
	// QueryStartedAt is when the query behind an observation or a failure began:
	// a query older than the newest hint may not postpone the next one.
	QueryStartedAt time.Time

	// Lease is the fencing token of the submit or poll lease under which the
	// caller works; LeaseUntil its end when the input takes one.
	Lease      ID
	LeaseUntil time.Time

	ProviderTaskID string
	ErrorClass     ErrorClass
	// ErrorCode is our own word for what went wrong ("throttled/http_429"); with
	// submit_rejected the vendor's code.
	ErrorCode string
	// ErrorMessage is the vendor's own sentence, as in [Observation].
	ErrorMessage string
	// RetryAfter is how long the vendor asked us to wait, 0 when it did not.
	RetryAfter time.Duration

	// AcceptPossibleDuplicate lets a retry pass while the last submit is unknown.
	AcceptPossibleDuplicate bool
	// NewAttempt is the attempt that a retry opens; its No, TaskID, Status and
	// timers are set by [Apply].
	NewAttempt *Attempt

	Stage    Stage
	Progress *int
	AssetID  AssetID

	Resolution *Resolution
}

// QueryError says why a query gave no news.
type QueryError struct {
	Class QueryClass
	// RetryAfter is the vendor's wish, 0 when it has none.
	RetryAfter time.Duration
}

// QueryClass sorts failed queries; none of them is a verdict (specification
// 12.8.4, I12).
type QueryClass string

// The classes of failed queries.
const (
	QueryTransport QueryClass = "transport"
	QueryThrottled QueryClass = "throttled"
	QueryAuth      QueryClass = "auth"
	QueryNotFound  QueryClass = "not_found"
	QueryMalformed QueryClass = "malformed"
)

// QueryClasses lists every class of failed query.
func QueryClasses() []QueryClass {
	return []QueryClass{QueryTransport, QueryThrottled, QueryAuth, QueryNotFound, QueryMalformed}
}

// ResolutionKind names what a person decided.
type ResolutionKind string

// The resolutions. Each is an audited command.
const (
	// ResolveCreatedWithID: the vendor has the job under ProviderTaskID.
	ResolveCreatedWithID ResolutionKind = "created_with_id"
	// ResolveNotCreated: the vendor never had it; refund.
	ResolveNotCreated ResolutionKind = "not_created"
	// ResolveAbandon: stop waiting; the task fails and is refunded.
	ResolveAbandon ResolutionKind = "abandon"
	// ResolveAdopt: take the result of this attempt, whatever is current.
	ResolveAdopt ResolutionKind = "adopt"
	// ResolveCloseCost closes the money of a superseded attempt.
	ResolveCloseCost ResolutionKind = "close_cost"
	// ResolveRefund gives the credits of an ended attempt back, whatever it was
	// closed with, and keeps its result.
	ResolveRefund ResolutionKind = "refund"
	// ResolveKeep leaves everything as it is settled and closes the contradiction.
	ResolveKeep ResolutionKind = "keep"
)

// ResolutionKinds lists every resolution.
func ResolutionKinds() []ResolutionKind {
	return []ResolutionKind{ResolveCreatedWithID, ResolveNotCreated, ResolveAbandon, ResolveAdopt, ResolveCloseCost, ResolveRefund, ResolveKeep}
}

// Resolution is a person's decision about an attempt.
type Resolution struct {
	Kind     ResolutionKind
	ActionID ActionID
	// ProviderTaskID goes with created_with_id.
	ProviderTaskID string
	// Outputs go with adopt where the attempt itself holds none.
	Outputs []OutputRef
	// Closing goes with close_cost: settled or refunded.
	Closing Closing
}
