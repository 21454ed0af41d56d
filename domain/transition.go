package domain

import "slices"

// Trigger is what an input comes down to once the guards have let it pass.
type Trigger string

// The triggers.
const (
	OnSubmitStarted  Trigger = "submit_started"
	OnSubmitReplayed Trigger = "submit_replayed"
	OnSubmitNotSent  Trigger = "submit_not_sent"
	OnSubmitUnknown  Trigger = "submit_unknown"
	OnSubmitAccepted Trigger = "submit_accepted"
	OnSubmitRejected Trigger = "submit_rejected"

	OnQueued        Trigger = "observed_queued"
	OnRunning       Trigger = "observed_running"
	OnSucceeded     Trigger = "observed_succeeded"
	OnOutputMissing Trigger = "observed_without_output"
	OnFailed        Trigger = "observed_failed"
	OnCanceled      Trigger = "observed_canceled"

	OnCancelUnsent     Trigger = "cancel_unsent"
	OnCancelDiscards   Trigger = "cancel_discards_result"
	OnSuccessDiscarded Trigger = "late_success_discarded"
	OnMediaStage       Trigger = "media_stage"
	OnMediaReady       Trigger = "media_ready"
	OnMediaFailed      Trigger = "media_failed"
	OnRetry            Trigger = "retry"
	OnCreatedWithID    Trigger = "resolved_created_with_id"
	OnNotCreated       Trigger = "resolved_not_created"
	OnAbandoned        Trigger = "resolved_abandon"
	OnAdopted          Trigger = "resolved_adopt"
)

// Transition is one row of the state machine. An input whose trigger has no row
// for the state is refused with a reason; there is no other way to move.
type Transition struct {
	On Trigger
	// From are the statuses of the attempt, FromPhase the phases of the task, from
	// which the row applies; an empty list does not ask.
	From      []AttemptStatus
	FromPhase []Phase
	// To is the attempt's new status, Phase and Stage the task's if the attempt is
	// its current one; empty keeps what is there.
	To    AttemptStatus
	Phase Phase
	Stage Stage
	// Why says what is not obvious.
	Why string
}

var (
	beforeVendor = []AttemptStatus{AttemptCreated, AttemptSubmitting, AttemptSubmitUnknown}
	open         = []AttemptStatus{AttemptCreated, AttemptSubmitting, AttemptSubmitUnknown, AttemptSubmitted, AttemptQueued, AttemptRunning}
	inMedia      = []Phase{PhaseProviderSucceeded, PhaseProcessingMedia}
)

// Transitions returns the whole table. docs/state-machine.md is made from it.
func Transitions() []Transition {
	return []Transition{
		{On: OnSubmitStarted, From: []AttemptStatus{AttemptCreated}, To: AttemptSubmitting,
			Why: "Committed before the vendor is called, so that a crash in between is seen as an unknown submit and never as an unsent one."},
		{On: OnSubmitReplayed, From: []AttemptStatus{AttemptSubmitUnknown}, To: AttemptSubmitting,
			Why: "Only where the vendor documents that the same request is not run twice."},
		{On: OnSubmitNotSent, From: []AttemptStatus{AttemptSubmitting}, To: AttemptCreated,
			Why: "Only with proof that the vendor has nothing: the dial or TLS failed, or it answered 429 or 503."},
		{On: OnSubmitUnknown, From: []AttemptStatus{AttemptSubmitting}, To: AttemptSubmitUnknown,
			Why: "An answer was lost or the lease ran out: submitting again could be a second generation."},
		{On: OnSubmitAccepted, From: beforeVendor, To: AttemptSubmitted, Phase: PhaseQueued, Stage: StageWaiting,
			Why: "Also from an unknown submit: a late answer is still the vendor's answer."},
		{On: OnSubmitRejected, From: []AttemptStatus{AttemptSubmitting, AttemptSubmitUnknown}, To: AttemptFailed, Phase: PhaseFailed,
			Why: "The vendor said no, so there is nothing to wait for; a late refusal ends an unknown submit, too."},

		{On: OnQueued, From: []AttemptStatus{AttemptCreated, AttemptSubmitting, AttemptSubmitUnknown, AttemptSubmitted}, To: AttemptQueued, Phase: PhaseQueued, Stage: StageWaiting,
			Why: "Authentic news may come before the answer to the submit, and proves that the vendor has the job."},
		{On: OnRunning, From: []AttemptStatus{AttemptCreated, AttemptSubmitting, AttemptSubmitUnknown, AttemptSubmitted, AttemptQueued}, To: AttemptRunning, Phase: PhaseRunning, Stage: StageGenerating,
			Why: "A step may be skipped, since its news may be lost; there is no way back to queued."},
		{On: OnSucceeded, From: open, To: AttemptSucceeded, Phase: PhaseProviderSucceeded, Stage: StageFetching,
			Why: "The vendor's success is not the platform's: the task is ready only when its file is published."},
		{On: OnSuccessDiscarded, From: open, To: AttemptSucceeded, Phase: PhaseCanceled,
			Why: "The user had asked to cancel and the project discards late results."},
		{On: OnOutputMissing, From: open, To: AttemptFailed, Phase: PhaseFailed,
			Why: "A query that says succeeded without an output is an end, not a reason to wait."},
		{On: OnFailed, From: open, To: AttemptFailed, Phase: PhaseFailed,
			Why: "Only a vendor's verdict is a failure; a query that fails, a deadline or an unknown word never is."},
		{On: OnCanceled, From: open, To: AttemptCanceled, Phase: PhaseCanceled,
			Why: "The vendor confirms the user's wish, or canceled by itself."},

		{On: OnCancelUnsent, From: []AttemptStatus{AttemptCreated}, To: AttemptCanceled, Phase: PhaseCanceled,
			Why: "The vendor has nothing that could be canceled."},
		{On: OnCancelDiscards, FromPhase: inMedia, Phase: PhaseCanceled,
			Why: "The vendor is done; the project discards late results."},
		{On: OnMediaStage, FromPhase: inMedia, Phase: PhaseProcessingMedia,
			Why: "The stage itself comes with the input; it only moves forward."},
		{On: OnMediaReady, FromPhase: inMedia, Phase: PhaseReady, Stage: StageDone,
			Why: "The file is published, and only now it is paid for."},
		{On: OnMediaFailed, FromPhase: inMedia, Phase: PhaseFailed,
			Why: "The vendor's part stays a success; what failed is ours, so the reservation is refunded."},
		{On: OnRetry, FromPhase: []Phase{PhaseFailed, PhaseCanceled, PhaseQueued}, Phase: PhaseQueued, Stage: StageSubmitting,
			Why: "From queued only while the last submit is unknown and the caller accepts a possible duplicate."},
		{On: OnCreatedWithID, From: []AttemptStatus{AttemptSubmitUnknown}, To: AttemptSubmitted, Phase: PhaseQueued, Stage: StageWaiting,
			Why: "A person found the job at the vendor; from here on it is asked about like any other."},
		{On: OnNotCreated, From: []AttemptStatus{AttemptSubmitUnknown}, To: AttemptFailed, Phase: PhaseFailed,
			Why: "A person made sure that the vendor has nothing; a retry is safe."},
		{On: OnAbandoned, From: []AttemptStatus{AttemptSubmitUnknown, AttemptSubmitted, AttemptQueued, AttemptRunning}, To: AttemptFailed, Phase: PhaseFailed,
			Why: "A person stops waiting. The vendor may still be at it, so a retry has to accept a possible duplicate."},
		{On: OnAdopted, FromPhase: []Phase{PhaseQueued, PhaseRunning, PhaseProviderSucceeded, PhaseProcessingMedia, PhaseFailed, PhaseCanceled}, To: AttemptSucceeded, Phase: PhaseProviderSucceeded, Stage: StageFetching,
			Why: "A person takes the result of this attempt; it becomes the current one. A result that is already being fetched is not adopted again."},
	}
}

var transitions = Transitions()

// lookup finds the row of a trigger for a state.
func lookup(on Trigger, from AttemptStatus, phase Phase) (Transition, bool) {
	for _, t := range transitions {
		if t.On == on &&
			(len(t.From) == 0 || slices.Contains(t.From, from)) &&
			(len(t.FromPhase) == 0 || slices.Contains(t.FromPhase, phase)) {
			return t, true
		}
	}
	return Transition{}, false
}
