package statedoc

import "github.com/aivedio/aivedio/domain"

// triggers says what each trigger of the transition table stands for.
var triggers = map[domain.Trigger]string{
	domain.OnSubmitStarted:    "the submit role takes the lease",
	domain.OnSubmitReplayed:   "it takes it again, to send the same request once more",
	domain.OnSubmitNotSent:    "the vendor provably has nothing",
	domain.OnSubmitUnknown:    "nobody knows whether it has",
	domain.OnSubmitAccepted:   "the vendor's id is known",
	domain.OnSubmitRejected:   "the vendor refused the request",
	domain.OnQueued:           "the job waits at the vendor",
	domain.OnRunning:          "the job runs",
	domain.OnSucceeded:        "the job is done and has an output",
	domain.OnOutputMissing:    "a query says done and there is no output",
	domain.OnFailed:           "the job failed",
	domain.OnCanceled:         "the job was canceled",
	domain.OnCancelUnsent:     "canceled before it was sent",
	domain.OnCancelDiscards:   "canceled after the vendor was done",
	domain.OnSuccessDiscarded: "done after the wish to cancel, and the project discards that",
	domain.OnMediaStage:       "the media role moved on",
	domain.OnMediaReady:       "the file is published",
	domain.OnMediaFailed:      "the file cannot be had",
	domain.OnRetry:            "a new attempt is opened",
	domain.OnCreatedWithID:    "a person has the vendor's id",
	domain.OnNotCreated:       "a person knows that there is no job",
	domain.OnAbandoned:        "a person gives up waiting",
	domain.OnAdopted:          "a person takes this attempt's result",
}

var inputs = map[domain.Kind]string{
	domain.InputObservation:     "News of the job: a delivery, the answer to a query, or a response to the submit that already tells something.",
	domain.InputPollFailed:      "A query gave no news: a transport error, throttling, a refused key, a 404, an answer that cannot be read.",
	domain.InputSubmitStarted:   "The submit role is about to call the vendor's create. Committed first.",
	domain.InputSubmitAccepted:  "The vendor took the request and named the job.",
	domain.InputSubmitNotSent:   "The request provably did not reach the vendor.",
	domain.InputSubmitRejected:  "The vendor refused the request.",
	domain.InputSubmitUnknown:   "The answer was lost, or the lease ran out while somebody was calling.",
	domain.InputSubmitReplayed:  "The same request is about to be sent again, where the vendor documents that it is not run twice.",
	domain.InputLookupFailed:    "A lookup by our own id found nothing yet.",
	domain.InputCancelRequested: "The user wants to cancel.",
	domain.InputCancelAccepted:  "The vendor took the cancel call. The job is not canceled until it says so.",
	domain.InputCancelRefused:   "The vendor refused the cancel call.",
	domain.InputRetryRequested:  "The user wants another attempt.",
	domain.InputProgressDue:     "The timer of deferred progress.",
	domain.InputOverdue:         "The attempt has taken longer than is normal.",
	domain.InputMediaStage:      "The media role begins a stage, or has progress within one.",
	domain.InputMediaReady:      "The file is published.",
	domain.InputMediaFailed:     "The file could not be fetched, validated, transcoded or published.",
	domain.InputResolution:      "A person decided about an attempt. Every such command is audited.",
}

var verdicts = map[domain.VerdictKind]string{
	domain.VerdictApplied:    "The task changed. Its version rose by one and there is exactly one event.",
	domain.VerdictUnchanged:  "Nothing new for the task. Timers and counters of the attempt may have moved. Not on the timeline.",
	domain.VerdictNeedsQuery: "The news may not be taken at its word. The next query was brought forward and will tell.",
	domain.VerdictIgnored:    "Refused, for the reason given. If the attempt itself moved (an old one may), the task did not.",
	domain.VerdictConflict:   "Contradicts what is settled. Kept with what it claimed; a case is open; one extra query is asked.",
}

var reasons = map[domain.Reason]string{
	domain.ReasonStaleAttempt:       "The news is of an attempt that a retry has superseded. The attempt takes it, the task does not.",
	domain.ReasonStaleSequence:      "The vendor's own number says that this is older than what is known. For a verdict it comes with `needs_query`.",
	domain.ReasonStaleLease:         "The caller no longer holds the submit lease, so its account of the call does not count.",
	domain.ReasonRegressiveStatus:   "An earlier status than the known one, such as queued after running.",
	domain.ReasonRegressiveStage:    "An earlier stage of the media work, or media news of a task that has no media work.",
	domain.ReasonRegressiveProgress: "A smaller percentage than what was shown for the same stage.",
	domain.ReasonThrottledProgress:  "Too small a step, or too soon; what is only too soon waits for its second. Not on the timeline.",
	domain.ReasonTerminalAbsorbing:  "The attempt or the task has ended and this is not a contradiction, only late.",
	domain.ReasonDuplicate:          "The same delivery was stored before.",
	domain.ReasonNotTrusted:         "The signature does not prove the content. With `needs_query` when the claim would be new.",
	domain.ReasonThinEvent:          "The event names a status without carrying what belongs to it.",
	domain.ReasonOutputMissing:      "A delivery says done and has no output. Only a query may say that there is none.",
	domain.ReasonUnknownStatus:      "A word that is not in the vendor's vocabulary. It proves that the job exists and is never a verdict.",
	domain.ReasonIdentityMismatch:   "The news is of another job: the attempt, the vendor, the vendor's id or our request id differ.",
	domain.ReasonOrphan:             "No attempt is known for the delivery yet. It is tried again, then shown to a person.",
	domain.ReasonForeignEvent:       "An event type that is not about jobs.",
	domain.ReasonNotSubmittable:     "The attempt is not (or no longer) to be sent, so the vendor's create is not called.",
}

var conflicts = map[domain.Reason]string{
	domain.ConflictTerminal: "A second, different verdict about the same attempt.",
	domain.ConflictLate:     "A success after the job was canceled.",
	domain.ConflictPayload:  "The same delivery id with another body. Found when the delivery is stored.",
}

var cases = map[domain.CaseKind]string{
	domain.CaseSubmitUnknown: "the vendor may or may not have the job",
	domain.CaseLost:          "the vendor has answered 404 for longer than its reads may lag",
	domain.CaseOverdue:       "the attempt takes longer than is normal",
	domain.CaseConflict:      "a verdict contradicts the first one",
	domain.CaseCost:          "a retry superseded an attempt whose money is still reserved",
}

var failures = map[domain.ErrorClass]string{
	domain.ClassModerationInput:  "the vendor's filter refused the prompt or the image",
	domain.ClassModerationOutput: "the vendor's filter refused the result; the next try may pass",
	domain.ClassInvalidInput:     "the vendor does not take this request",
	domain.ClassQuota:            "the vendor account is out of credit or quota",
	domain.ClassUnavailable:      "the vendor could not do it now",
	domain.ClassProvider:         "the vendor failed and gave no better reason",
	domain.ClassOutputMissing:    "the vendor says done and has no output",
	domain.ClassOutputExpired:    "the output was gone before it was fetched",
	domain.ClassExpired:          "the vendor has lost or dropped the job",
	domain.ClassMedia:            "the file could not be processed",
	domain.ClassCanceled:         "canceled",
	domain.ClassNotCreated:       "the vendor never had the job",
	domain.ClassAbandoned:        "a person stopped waiting; the vendor may still be at it",
}

// guard is one question that news has to pass.
type guard struct {
	asks, then string
	gives      domain.Verdict
}

// guards stand in the order of domain's observe. The matrix test proves the order:
// where two guards would refuse the same news, its line names the first.
var guards = []guard{
	{"Is it news of this job?", "A different attempt, vendor, vendor's id or request id is refused; a query that answers so counts as failed.",
		domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonIdentityMismatch}},
	{"Does the delivery prove what it says?", "Only a fresh signature over the body does. Others ask for a query when they claim a higher status than the known one, and are refused otherwise; a flood of them costs one write per query.",
		domain.Verdict{Kind: domain.VerdictNeedsQuery, Reason: domain.ReasonNotTrusted}},
	{"Is the word known?", "An unknown word is no verdict. A delivery asks for a query; queries that keep answering so make the status unknown.",
		domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonUnknownStatus}},
	{"Has the attempt ended?", "The first verdict stays. The same verdict again refreshes links, an earlier status is late, another verdict is a conflict. A revision is taken while the task is open, if the vendor documents such a thing; none does today.",
		domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonTerminalAbsorbing}},
	{"Does it carry what it names?", "A thin event only asks for a query.",
		domain.Verdict{Kind: domain.VerdictNeedsQuery, Reason: domain.ReasonThinEvent}},
	{"Is the vendor's number newer?", "Counters must rise; of timestamps only earlier ones are refused and ties go to the next guard. A verdict with an old number is believed from a query, and asked about when it was delivered.",
		domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonStaleSequence}},
	{"Does the status go forward?", "created, submitting, submitted, queued, running, verdict: never back.",
		domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonRegressiveStatus}},
	{"Does a success have its output?", "A delivery without one asks for a query. A query without one is a failure of its own kind.",
		domain.Verdict{Kind: domain.VerdictNeedsQuery, Reason: domain.ReasonOutputMissing}},
	{"Is the attempt the task's current one?", "The transition table moves the attempt; the task moves only with its current attempt.",
		domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonStaleAttempt}},
	{"Is progress a step, and not too soon?", "A maximum per attempt and stage. What rides with another change is never throttled.",
		domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonThrottledProgress}},
}
