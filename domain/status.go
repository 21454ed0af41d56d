package domain

import (
	"slices"
	"time"
)

// Phase is how far a task has come. It is one of the three facts from which the
// public [Status] follows.
type Phase string

// The phases of a task, in the order in which a successful one passes them.
const (
	PhaseQueued            Phase = "queued"
	PhaseRunning           Phase = "running"
	PhaseProviderSucceeded Phase = "provider_succeeded"
	PhaseProcessingMedia   Phase = "processing_media"
	PhaseReady             Phase = "ready"
	PhaseFailed            Phase = "failed"
	PhaseCanceled          Phase = "canceled"
)

// Phases lists every phase. The CHECK constraints of the schema repeat it.
func Phases() []Phase {
	return []Phase{PhaseQueued, PhaseRunning, PhaseProviderSucceeded, PhaseProcessingMedia, PhaseReady, PhaseFailed, PhaseCanceled}
}

// Terminal reports whether the phase is left only by a command.
func (p Phase) Terminal() bool {
	return p == PhaseReady || p == PhaseFailed || p == PhaseCanceled
}

// Cancel is how far a request to cancel has come.
type Cancel string

// The states of a cancellation.
const (
	CancelNone      Cancel = "none"
	CancelRequested Cancel = "requested"
	CancelSent      Cancel = "sent"
	CancelRefused   Cancel = "refused"
	CancelConfirmed Cancel = "confirmed"
)

// Cancels lists every state of a cancellation.
func Cancels() []Cancel {
	return []Cancel{CancelNone, CancelRequested, CancelSent, CancelRefused, CancelConfirmed}
}

// Pending reports whether a cancellation was asked for and not yet answered.
func (c Cancel) Pending() bool { return c == CancelRequested || c == CancelSent }

// Status is what the public sees: a pure function of the facts.
type Status string

// The public statuses that are not phases.
const (
	StatusCancelRequested       Status = "cancel_requested"
	StatusProviderStatusUnknown Status = "provider_status_unknown"
)

// Statuses lists every public status.
func Statuses() []Status {
	var all []Status
	for _, p := range Phases() {
		all = append(all, Status(p))
	}
	return append(all, StatusCancelRequested, StatusProviderStatusUnknown)
}

// Terminal reports whether no more events follow without a command.
func (s Status) Terminal() bool { return Phase(s).Terminal() }

// Public derives the public status. A terminal phase outranks a pending
// cancellation, which outranks an unknown vendor status, which outranks the
// phase.
func Public(phase Phase, cancel Cancel, unknownSince *time.Time) Status {
	switch {
	case phase.Terminal():
		return Status(phase)
	case cancel.Pending():
		return StatusCancelRequested
	case unknownSince != nil:
		return StatusProviderStatusUnknown
	default:
		return Status(phase)
	}
}

// LegalFacts reports whether a task may hold the three facts together. A CHECK
// constraint repeats it in the database.
//
//   - an answer is due only while the task is not terminal;
//   - only a canceled task has a confirmed cancellation, and a canceled one has
//     either a confirmed one or none (the vendor canceled by itself);
//   - a vendor's status is unknown only while the vendor's part goes on.
func LegalFacts(phase Phase, cancel Cancel, unknown bool) bool {
	if unknown && phase != PhaseQueued && phase != PhaseRunning {
		return false
	}
	switch phase {
	case PhaseCanceled:
		return cancel == CancelNone || cancel == CancelConfirmed
	case PhaseReady, PhaseFailed:
		return cancel == CancelNone || cancel == CancelRefused
	default:
		return cancel != CancelConfirmed
	}
}

// Stage is the finer step within a phase that the public sees.
type Stage string

// The stages in their order. A task never goes back to an earlier one within
// one attempt.
const (
	StageSubmitting  Stage = "submitting"
	StageWaiting     Stage = "waiting"
	StageGenerating  Stage = "generating"
	StageFetching    Stage = "fetching"
	StageValidating  Stage = "validating"
	StageTranscoding Stage = "transcoding"
	StagePublishing  Stage = "publishing"
	StageDone        Stage = "done"
)

// Stages lists every stage in order.
func Stages() []Stage {
	return []Stage{StageSubmitting, StageWaiting, StageGenerating, StageFetching, StageValidating, StageTranscoding, StagePublishing, StageDone}
}

// Order is the position of the stage, from 0; −1 for an unknown one.
func (s Stage) Order() int { return slices.Index(Stages(), s) }

// Media reports whether the stage belongs to the platform's own media work.
func (s Stage) Media() bool {
	return s.Order() >= StageFetching.Order() && s != StageDone
}

// AttemptStatus is what is known of an attempt at the vendor.
type AttemptStatus string

// The statuses of an attempt.
const (
	AttemptCreated       AttemptStatus = "created"
	AttemptSubmitting    AttemptStatus = "submitting"
	AttemptSubmitUnknown AttemptStatus = "submit_unknown"
	AttemptSubmitted     AttemptStatus = "submitted"
	AttemptQueued        AttemptStatus = "queued"
	AttemptRunning       AttemptStatus = "running"
	AttemptSucceeded     AttemptStatus = "succeeded"
	AttemptFailed        AttemptStatus = "failed"
	AttemptCanceled      AttemptStatus = "canceled"
)

// AttemptStatuses lists every status of an attempt.
func AttemptStatuses() []AttemptStatus {
	return []AttemptStatus{AttemptCreated, AttemptSubmitting, AttemptSubmitUnknown, AttemptSubmitted, AttemptQueued, AttemptRunning, AttemptSucceeded, AttemptFailed, AttemptCanceled}
}

// Terminal reports whether the vendor has given its verdict.
func (s AttemptStatus) Terminal() bool {
	return s == AttemptSucceeded || s == AttemptFailed || s == AttemptCanceled
}

// Rank orders the statuses of an attempt for news without a vendor sequence:
// news of a lower rank than what is known is late. All terminals share a rank.
func (s AttemptStatus) Rank() int {
	switch s {
	case AttemptCreated:
		return 0
	case AttemptSubmitting, AttemptSubmitUnknown:
		return 1
	case AttemptSubmitted:
		return 2
	case AttemptQueued:
		return 3
	case AttemptRunning:
		return 4
	default:
		return 5
	}
}

// AtVendor reports whether the vendor is known to have the job and to be
// working on it.
func (s AttemptStatus) AtVendor() bool {
	return s == AttemptSubmitted || s == AttemptQueued || s == AttemptRunning
}
