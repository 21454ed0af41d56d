package domain_test

import (
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// matrixInput is one word of the matrix's first column.
type matrixInput struct {
	name string
	in   domain.Input
	// answers: an answered query, which always closes the case "lost".
	answers bool
	// arrange puts the attempt into the state that the word speaks of.
	arrange func(*domain.Attempt)
}

var (
	leaseMine  = id(50)
	leaseOther = id(51)
	firstLinks = []domain.OutputRef{{Kind: "video", Ref: "clip", URL: "https://vendor.example/clip?sig=1"}}
)

// lastSequence is what attempts at the vendor have seen.
const lastSequence = 10

// matrixInputs lists every input that the matrix decides.
func matrixInputs() []matrixInput {
	return slices.Concat(newsInputs(), queryInputs(), submitInputs(), commandInputs(), resolutionInputs())
}

func newsInputs() []matrixInput {
	var all []matrixInput
	for _, source := range []string{"webhook", "poll", "reconcile", "submit", "correction", "revision"} {
		for _, trust := range domain.Trusts() {
			if trust != domain.TrustAuthentic && source != "webhook" && source != "correction" {
				continue // our own connection proves the sender
			}
			for _, form := range []string{"full", "thin"} {
				if form == "thin" && source != "webhook" {
					continue
				}
				for _, status := range []string{"none", "queued", "running", "succeeded", "empty", "failed", "canceled"} {
					for _, sequence := range []string{"unnumbered", "newer", "equal", "tie", "older"} {
						if trust != domain.TrustAuthentic && sequence != "newer" {
							continue
						}
						all = append(all, news(source, trust, form, status, sequence))
					}
				}
			}
		}
	}
	stranger := func(source domain.Source) domain.Input {
		return domain.Input{Kind: domain.InputObservation, Observation: &domain.Observation{Source: source, Trust: domain.TrustAuthentic, Status: domain.ObservedSucceeded, AttemptID: domain.AttemptID{ID: id(99)}, Outputs: firstLinks}}
	}
	return append(all,
		matrixInput{name: "foreign.webhook", in: stranger(domain.SourceWebhook)},
		matrixInput{name: "foreign.poll", in: stranger(domain.SourcePoll)})
}

func news(source string, trust domain.Trust, form, status, sequence string) matrixInput {
	o := &domain.Observation{Source: domain.Source(source), Trust: trust, Thin: form == "thin", Status: domain.Observed(status), ProviderTaskID: "job"}
	in := domain.Input{Kind: domain.InputObservation, Observation: o}
	switch status {
	case "none":
		o.Status = domain.ObservedNone
	case "succeeded":
		o.Outputs = firstLinks
	case "empty":
		o.Status = domain.ObservedSucceeded
	}
	if source == "revision" {
		o.Source, in.Policy.Corrections = domain.SourceCorrection, true
	}
	step := map[string]int64{"newer": 1, "equal": 0, "tie": 0, "older": -1}
	if by, ok := step[sequence]; ok {
		number := lastSequence + by
		o.ProviderSequence, o.SequenceKind = &number, domain.SequenceCounter
	}
	if sequence == "tie" {
		o.SequenceKind = domain.SequenceTimestamp
	}
	name := source + "." + string(trust) + "." + form + "." + status + "." + sequence
	return matrixInput{name: name, in: in, answers: o.Source.Query()}
}

func queryInputs() []matrixInput {
	var all []matrixInput
	for _, class := range domain.QueryClasses() {
		for _, count := range []string{"below", "at"} {
			for _, age := range []string{"grace", "after"} {
				all = append(all, matrixInput{
					name: "poll_failed." + string(class) + "." + count + "." + age,
					in:   domain.Input{Kind: domain.InputPollFailed, QueryError: &domain.QueryError{Class: class}},
					arrange: func(a *domain.Attempt) {
						if count == "at" {
							a.PollFailures = domain.DefaultPolicy().UnknownAfter - 1
						}
						if age == "grace" && a.SubmittedAt != nil {
							a.SubmittedAt = ago(10 * time.Second)
						}
					},
				})
			}
		}
	}
	deferred := func(a *domain.Attempt) {
		if a.Status == domain.AttemptRunning {
			sixty := 60
			a.DeferredProgress, a.DeferredUntil = &sixty, ago(time.Second)
		}
	}
	return append(all,
		matrixInput{name: "lookup_failed.can", in: domain.Input{Kind: domain.InputLookupFailed, Policy: domain.Policy{CanLookup: true}}},
		matrixInput{name: "lookup_failed.cannot", in: domain.Input{Kind: domain.InputLookupFailed}},
		matrixInput{name: "progress_due.nothing", in: domain.Input{Kind: domain.InputProgressDue}},
		matrixInput{name: "progress_due.deferred", in: domain.Input{Kind: domain.InputProgressDue}, arrange: deferred},
		matrixInput{name: "overdue", in: domain.Input{Kind: domain.InputOverdue}},
	)
}

func submitInputs() []matrixInput {
	lease := func(kind domain.Kind, lease domain.ID) domain.Input {
		return domain.Input{Kind: kind, Lease: lease, LeaseUntil: now.Add(time.Minute)}
	}
	accepted := func(vendorID string) domain.Input {
		in := lease(domain.InputSubmitAccepted, leaseOther) // the lease does not matter
		in.ProviderTaskID = vendorID
		return in
	}
	replayed := lease(domain.InputSubmitReplayed, leaseMine)
	safe := replayed
	safe.Policy.ReplaySafe = true
	expired := func(a *domain.Attempt) {
		if a.SubmitLeaseUntil != nil {
			a.SubmitLeaseUntil = ago(time.Second)
		}
	}
	return []matrixInput{
		{name: "submit_started", in: lease(domain.InputSubmitStarted, leaseMine)},
		{name: "submit_replayed.safe", in: safe},
		{name: "submit_replayed.unsafe", in: replayed},
		{name: "submit_accepted.same", in: accepted("job")},
		{name: "submit_accepted.empty", in: accepted("")},
		{name: "submit_accepted.other", in: accepted("another job")},
		{name: "submit_not_sent.mine", in: lease(domain.InputSubmitNotSent, leaseMine)},
		{name: "submit_not_sent.other", in: lease(domain.InputSubmitNotSent, leaseOther)},
		{name: "submit_rejected.mine", in: lease(domain.InputSubmitRejected, leaseMine)},
		{name: "submit_rejected.other", in: lease(domain.InputSubmitRejected, leaseOther)},
		{name: "submit_unknown.mine", in: lease(domain.InputSubmitUnknown, leaseMine)},
		{name: "submit_unknown.other", in: lease(domain.InputSubmitUnknown, leaseOther)},
		{name: "submit_unknown.early", in: lease(domain.InputSubmitUnknown, domain.ID{})},
		{name: "submit_unknown.expired", in: lease(domain.InputSubmitUnknown, domain.ID{}), arrange: expired},
	}
}

func commandInputs() []matrixInput {
	retry := domain.Input{Kind: domain.InputRetryRequested, NewAttempt: &domain.Attempt{ID: domain.AttemptID{ID: id(120)}, Credits: 7}}
	accept := retry
	accept.AcceptPossibleDuplicate = true
	stage := func(s domain.Stage) matrixInput {
		return matrixInput{name: "media_stage." + string(s), in: domain.Input{Kind: domain.InputMediaStage, Stage: s}}
	}
	return []matrixInput{
		{name: "cancel_requested", in: domain.Input{Kind: domain.InputCancelRequested}},
		{name: "cancel_accepted", in: domain.Input{Kind: domain.InputCancelAccepted}},
		{name: "cancel_refused", in: domain.Input{Kind: domain.InputCancelRefused}},
		{name: "retry_requested.plain", in: retry},
		{name: "retry_requested.accept", in: accept},
		stage(domain.StageGenerating), stage(domain.StageFetching), stage(domain.StageTranscoding),
		{name: "media_ready", in: domain.Input{Kind: domain.InputMediaReady, AssetID: domain.AssetID{ID: id(60)}}},
		{name: "media_failed", in: domain.Input{Kind: domain.InputMediaFailed}},
	}
}

func resolutionInputs() []matrixInput {
	resolve := func(name string, r domain.Resolution) matrixInput {
		r.ActionID = domain.ActionID{ID: id(70)}
		return matrixInput{name: "resolution." + name, in: domain.Input{Kind: domain.InputResolution, Resolution: &r}}
	}
	return []matrixInput{
		resolve("created_with_id", domain.Resolution{Kind: domain.ResolveCreatedWithID, ProviderTaskID: "job"}),
		resolve("not_created", domain.Resolution{Kind: domain.ResolveNotCreated}),
		resolve("abandon", domain.Resolution{Kind: domain.ResolveAbandon}),
		resolve("adopt.with", domain.Resolution{Kind: domain.ResolveAdopt, Outputs: firstLinks}),
		resolve("adopt.without", domain.Resolution{Kind: domain.ResolveAdopt}),
		resolve("close_cost.settled", domain.Resolution{Kind: domain.ResolveCloseCost, Closing: domain.ClosingSettled}),
		resolve("close_cost.refunded", domain.Resolution{Kind: domain.ResolveCloseCost, Closing: domain.ClosingRefunded}),
		resolve("refund", domain.Resolution{Kind: domain.ResolveRefund}),
		resolve("keep", domain.Resolution{Kind: domain.ResolveKeep}),
	}
}

// fixture builds the task and the attempt of a cell, as the machine would have
// left them.
func fixture(s state, p policy, m matrixInput) (domain.Task, domain.Attempt, domain.Input) {
	in := m.in
	in.Policy.CanCancel = p.canCancel
	task := taskIn(s.cell, p.late)
	attempt := attemptIn(s.attempt, s.current, task.Phase)
	if s.current {
		task.CurrentAttemptID, task.AttemptCount = attempt.ID, attempt.No
	}
	if m.arrange != nil {
		m.arrange(&attempt)
	}
	return task, attempt, in
}

// taskIn is a task with the facts of a cell, whose current attempt is another.
func taskIn(c cell, late domain.LateSuccess) domain.Task {
	stage := map[domain.Phase]domain.Stage{
		domain.PhaseQueued: domain.StageSubmitting, domain.PhaseProviderSucceeded: domain.StageFetching,
		domain.PhaseProcessingMedia: domain.StageTranscoding, domain.PhaseReady: domain.StageDone,
	}[c.phase]
	if stage == "" {
		stage = domain.StageGenerating
	}
	if c.attempt == domain.AttemptSubmitted || c.attempt == domain.AttemptQueued {
		stage = domain.StageWaiting
	}
	task := domain.Task{
		ID: domain.TaskID{ID: id(1)}, Phase: c.phase, Cancel: c.cancel, Stage: stage, Version: 5,
		CurrentAttemptID: domain.AttemptID{ID: id(110)}, AttemptCount: 2, OnLateSuccess: late,
		CreatedAt: *ago(20 * time.Minute), UpdatedAt: *ago(time.Minute),
	}
	if c.unknown {
		task.UnknownSince = ago(time.Minute)
	}
	if c.phase.Terminal() {
		task.TerminalAt = ago(time.Minute)
	}
	if c.phase == domain.PhaseFailed {
		task.Error = &domain.PublicError{Code: domain.ClassProvider, Retryable: true}
	}
	return task
}

// attemptIn is an attempt in a status; its money is open until it, or the task
// that it is current for, has ended.
func attemptIn(status domain.AttemptStatus, current bool, phase domain.Phase) domain.Attempt {
	a := domain.Attempt{
		ID: domain.AttemptID{ID: id(101)}, TaskID: domain.TaskID{ID: id(1)}, No: 1, Provider: "sim",
		Status: status, Credits: 7, Closing: domain.ClosingOpen, CreatedAt: *ago(11 * time.Minute),
	}
	if status == domain.AttemptSubmitting {
		until := now.Add(30 * time.Second)
		a.SubmitLease, a.SubmitLeaseUntil, a.SubmitCount = leaseMine, &until, 1
	}
	if status.AtVendor() || status.Terminal() {
		sequence := int64(lastSequence)
		a.ProviderTaskID, a.LastSequence, a.SubmittedAt = "job", &sequence, ago(10*time.Minute)
	}
	if status == domain.AttemptSucceeded {
		a.Outputs = slices.Clone(firstLinks)
	}
	if status == domain.AttemptFailed {
		a.ErrorClass = domain.ClassProvider
	}
	switch {
	case current && phase == domain.PhaseReady, !current && status == domain.AttemptSucceeded:
		a.Closing = domain.ClosingSettled
	case current && phase.Terminal(), !current && status.Terminal():
		a.Closing = domain.ClosingRefunded
	}
	return a
}
