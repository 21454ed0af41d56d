package domain

import "time"

// Source says where news came from.
type Source string

// The sources of an observation and of an event.
const (
	SourceWebhook    Source = "webhook"
	SourcePoll       Source = "poll"
	SourceReconcile  Source = "reconcile"
	SourceCorrection Source = "correction"
	SourceSubmit     Source = "submit"
	SourceMedia      Source = "media"
	SourceUser       Source = "user"
	SourceOperator   Source = "operator"
	SourceSystem     Source = "system"
)

// Sources lists every source.
func Sources() []Source {
	return []Source{SourceWebhook, SourcePoll, SourceReconcile, SourceCorrection, SourceSubmit, SourceMedia, SourceUser, SourceOperator, SourceSystem}
}

// Query reports whether the news is the vendor's own answer to our question,
// over a connection that we opened: the truth as far as there is one.
func (s Source) Query() bool {
	return s == SourcePoll || s == SourceReconcile
}

// Trust says what the signature of a delivery proves.
type Trust string

// The trust levels of a delivery, best first.
const (
	// TrustAuthentic: the body is signed and fresh. Only this changes state.
	TrustAuthentic Trust = "authentic"
	// TrustReplayable: the body is signed, its time is not.
	TrustReplayable Trust = "replayable"
	// TrustEnvelope: the signature does not cover the body.
	TrustEnvelope Trust = "envelope"
	// TrustBearer: only the URL is secret.
	TrustBearer Trust = "bearer"
)

// Trusts lists every trust level.
func Trusts() []Trust {
	return []Trust{TrustAuthentic, TrustReplayable, TrustEnvelope, TrustBearer}
}

// SequenceKind says how exact a vendor's sequence is.
type SequenceKind string

// The kinds of vendor sequence.
const (
	// SequenceCounter never repeats: an equal one is a repetition.
	SequenceCounter SequenceKind = "counter"
	// SequenceTimestamp has coarse steps: a terminal may share one with
	// "running", so ties go to rank.
	SequenceTimestamp SequenceKind = "timestamp"
)

// Observed is the vendor's status in the platform's words.
type Observed string

// The normalised vendor statuses. ObservedNone is "no information": an unknown
// word never becomes a verdict.
const (
	ObservedNone      Observed = ""
	ObservedQueued    Observed = "queued"
	ObservedRunning   Observed = "running"
	ObservedSucceeded Observed = "succeeded"
	ObservedFailed    Observed = "failed"
	ObservedCanceled  Observed = "canceled"
)

// Known reports whether the word is one of the platform's; ObservedNone is not.
func (o Observed) Known() bool {
	switch o {
	case ObservedQueued, ObservedRunning, ObservedSucceeded, ObservedFailed, ObservedCanceled:
		return true
	default:
		return false
	}
}

// Attempt is the attempt status that the observation claims.
func (o Observed) Attempt() AttemptStatus { return AttemptStatus(o) }

// Terminal reports whether the vendor claims to be done.
func (o Observed) Terminal() bool { return AttemptStatus(o).Terminal() && o != ObservedNone }

// MaxErrorMessage is the most that is kept of a vendor's sentence, in bytes.
const MaxErrorMessage = 500

// Observation is what a vendor said about a job, by webhook or by query, in the
// platform's words (specification 12.5.1).
type Observation struct {
	Provider        string
	ProviderEventID string
	DedupKey        string
	ProviderTaskID  string
	ClientRequestID string
	AttemptID       AttemptID

	// ProviderSequence orders the vendor's own news, nil where it has no order.
	ProviderSequence *int64
	SequenceKind     SequenceKind
	// ProviderOccurredAt is the vendor's clock: shown to people, never compared.
	ProviderOccurredAt *time.Time
	ReceivedAt         time.Time

	Status   Observed
	Progress *int
	// ErrorClass and ErrorCode explain a failure.
	ErrorClass ErrorClass
	ErrorCode  string
	// ErrorMessage is the vendor's own sentence about the failure, cleaned and at
	// most [MaxErrorMessage] bytes of UTF-8: for operators, never public (I15).
	ErrorMessage string
	Outputs      []OutputRef

	Source Source
	// Trust applies to what was delivered to us, webhooks and corrections; what we
	// asked for ourselves is always authentic.
	Trust Trust
	// Thin marks an event that names a verdict without carrying it; only a query
	// can tell.
	Thin bool
	// PayloadHash is the hex SHA-256 of the raw body.
	PayloadHash string
	TraceID     TraceID
}
