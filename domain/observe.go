package domain

// observe digests news from the vendor. The order of the guards is the order of
// specification 12.8.1: identity, trust, settled, sequence, rank.
func (c *change) observe(o Observation) {
	c.source = o.Source
	if !o.Status.Known() {
		o.Status = ObservedNone
	}
	if c.foreign(o) {
		if o.Source.Query() {
			c.queryFailed(QueryError{Class: QueryMalformed})
		}
		c.ignore(ReasonIdentityMismatch)
		return
	}
	if !o.Source.Query() && o.Source != SourceSubmit && o.Trust != TrustAuthentic {
		c.hint(o, ReasonNotTrusted)
		return
	}
	c.answered(o)
	c.learn(o)
	taken := false
	switch {
	case o.Status == ObservedNone:
		c.unreadable(o)
	case c.a.Status.Terminal():
		c.observeSettled(o)
	case o.Thin:
		c.hint(o, ReasonThinEvent)
	case c.stale(o) && !o.Status.Terminal():
		c.ignore(ReasonStaleSequence)
	case c.stale(o) && !o.Source.Query():
		// A verdict with an old number is either a repetition or a vendor that
		// counts badly: the query decides.
		c.hint(o, ReasonStaleSequence)
	case o.Status.Attempt().Rank() < c.a.Status.Rank():
		c.ignore(ReasonRegressiveStatus)
	case o.Status == ObservedSucceeded && len(o.Outputs) == 0 && !o.Source.Query():
		c.hint(o, ReasonOutputMissing)
	default:
		c.advance(o)
		taken = true
	}
	c.schedule(o, taken)
}

// unreadable digests news whose word is not in the vocabulary. It is never a
// verdict: a delivery asks for a query, and a query that keeps answering so
// makes the status unknown.
func (c *change) unreadable(o Observation) {
	switch {
	case c.a.Status.Terminal():
		c.ignore(ReasonUnknownStatus)
	case o.Source == SourceWebhook:
		c.ask(ReasonUnknownStatus)
	default:
		c.ignore(ReasonUnknownStatus)
		if o.Source.Query() && c.holdsPollLease() && c.a.Status.AtVendor() {
			c.missed()
		}
	}
}

// foreign reports news of another job.
func (c *change) foreign(o Observation) bool {
	return (!o.AttemptID.IsZero() && o.AttemptID != c.a.ID) ||
		(o.ProviderTaskID != "" && c.a.ProviderTaskID != "" && o.ProviderTaskID != c.a.ProviderTaskID) ||
		(o.ClientRequestID != "" && c.a.ClientRequestID != "" && o.ClientRequestID != c.a.ClientRequestID) ||
		(o.Provider != "" && o.Provider != c.a.Provider)
}

// learn takes the vendor's id. News that cannot be applied as it stands still
// proves that the vendor has the job: without this, an unknown submit whose
// callback needs a query would have an id and never be asked about.
func (c *change) learn(o Observation) {
	if c.a.ProviderTaskID == "" && o.ProviderTaskID != "" {
		c.a.ProviderTaskID = o.ProviderTaskID
		c.touch()
	}
	if c.onlyProves(o) && c.a.ProviderTaskID != "" && c.take(OnSubmitAccepted) {
		c.known()
		c.arrived()
	}
}

// onlyProves reports news that is not applied but still proves a job.
func (c *change) onlyProves(o Observation) bool {
	switch {
	case o.Thin, o.Status == ObservedNone:
		return true
	case o.Source.Query() && o.Status.Terminal():
		return false
	default:
		return c.stale(o) || (o.Status == ObservedSucceeded && len(o.Outputs) == 0)
	}
}

// stale compares vendor sequences. Timestamps are coarse: there a tie is left to
// rank, since a terminal may share its second with "running".
func (c *change) stale(o Observation) bool {
	if o.ProviderSequence == nil || c.a.LastSequence == nil {
		return false
	}
	got, last := *o.ProviderSequence, *c.a.LastSequence
	return got < last || (got == last && o.SequenceKind != SequenceTimestamp)
}

// advance applies news that passed every guard.
func (c *change) advance(o Observation) {
	c.remember(o)
	before := c.a.Status
	switch o.Status {
	case ObservedQueued:
		c.take(OnQueued)
	case ObservedRunning:
		c.take(OnRunning)
	case ObservedSucceeded:
		c.succeed(o)
	case ObservedFailed:
		c.take(OnFailed)
		c.end(o.ErrorClass, o.ErrorCode)
	case ObservedCanceled:
		c.take(OnCanceled)
		c.end(ClassCanceled, o.ErrorCode)
	}
	c.known()
	if before.Rank() < AttemptSubmitted.Rank() {
		c.arrived()
	}
	if o.Status == ObservedRunning && o.Progress != nil {
		c.progress(*o.Progress)
	}
	if !c.current() {
		c.ignore(ReasonStaleAttempt)
	}
}

// remember keeps the vendor's order and time.
func (c *change) remember(o Observation) {
	if o.ProviderSequence != nil && (c.a.LastSequence == nil || *o.ProviderSequence > *c.a.LastSequence) {
		c.a.LastSequence = o.ProviderSequence
		c.touch()
	}
	if o.ProviderOccurredAt != nil && c.a.Status != o.Status.Attempt() {
		c.a.LastProviderAt = o.ProviderOccurredAt
		c.touch()
	}
}

// succeed takes the vendor's success. Without an output it is an end of another
// kind; after a wish to cancel the project's policy decides.
func (c *change) succeed(o Observation) {
	switch {
	case len(o.Outputs) == 0:
		c.take(OnOutputMissing)
		c.end(ClassOutputMissing, o.ErrorCode)
		return
	case c.current() && c.t.Cancel.Pending() && c.t.OnLateSuccess == LateSuccessDiscard:
		c.take(OnSuccessDiscarded)
		c.a.Outputs = o.Outputs
		c.closeMoney(ClosingRefunded)
		return
	}
	c.take(OnSucceeded)
	c.a.Outputs = o.Outputs
	if c.current() {
		c.start(OperationFetchOutput, false)
		return
	}
	c.closeMoney(ClosingSettled) // the vendor did the work of a superseded attempt
}

// end closes an attempt that gave nothing.
func (c *change) end(class ErrorClass, code string) {
	class = class.or(ClassProvider)
	c.a.ErrorClass, c.a.ErrorCode = class, code
	if c.a.Status == AttemptFailed {
		c.fail(class)
	}
	c.closeMoney(ClosingRefunded)
}

// arrived notes that the vendor has the job, however we learnt it.
func (c *change) arrived() {
	if c.a.SubmittedAt == nil {
		at := c.now
		c.a.SubmittedAt = &at
		if c.a.Overdue { // it was the wait for the vendor; the run is measured anew
			c.a.Overdue = false
			c.d.CloseCases = append(c.d.CloseCases, CaseOverdue)
		}
	}
	c.a.NextSubmitAt, c.a.SubmitLease, c.a.SubmitLeaseUntil = nil, ID{}, nil
	c.a.NextReconcileAt, c.a.ReconcileCount = nil, 0
	c.d.CloseCases = append(c.d.CloseCases, CaseSubmitUnknown)
	c.touch()
	if c.current() && c.a.Status.AtVendor() && c.t.Cancel == CancelRequested {
		c.askToCancel()
	}
}

// observeSettled digests news of an attempt that has its verdict.
func (c *change) observeSettled(o Observation) {
	got := o.Status.Attempt()
	switch {
	case !got.Terminal():
		c.ignore(ReasonTerminalAbsorbing)
	case got == c.a.Status:
		c.refreshOutputs(o)
	case c.a.ErrorClass == ClassOutputMissing && got == AttemptSucceeded && len(o.Outputs) == 0:
		// The same success without an output, once more.
	case o.Thin:
		c.reconcileOnce()
		c.d.Verdict = Verdict{VerdictNeedsQuery, ReasonThinEvent}
	case o.Source == SourceCorrection && c.p.Corrections && !c.stale(o):
		c.correct(o)
	default:
		c.contradict(o)
	}
}

// refreshOutputs takes newly signed URLs of the same outputs. What the first
// success named stays: a later, emptier or other list erases nothing.
func (c *change) refreshOutputs(o Observation) {
	for _, fresh := range o.Outputs {
		for i, have := range c.a.Outputs {
			if have.Ref == fresh.Ref && have.URL != fresh.URL {
				c.a.Outputs[i].URL, c.a.Outputs[i].ExpiresAt = fresh.URL, fresh.ExpiresAt
				c.touch()
			}
		}
	}
}

// contradict records a second, different verdict. The first one stands; one more
// query and a person look at it (specification 12.7.7).
func (c *change) contradict(o Observation) {
	kind := ConflictTerminal
	if c.a.Status == AttemptCanceled && o.Status == ObservedSucceeded {
		kind = ConflictLate
	}
	c.d.Verdict = Verdict{VerdictConflict, kind}
	c.d.Conflict = &Conflict{Kind: kind, Have: c.a.Status, Got: o.Status.Attempt(), Outputs: o.Outputs}
	c.d.OpenCases = append(c.d.OpenCases, CaseConflict)
	c.reconcileOnce()
}

// reconcileOnce asks the vendor one more time about a settled attempt.
func (c *change) reconcileOnce() {
	if c.a.Conflicted {
		return
	}
	c.a.Conflicted = true
	c.a.NextReconcileAt = c.after(c.p.MinPollGap)
	c.touch()
}

// correct takes a documented revision of a verdict. A task that has ended is
// left to a person.
func (c *change) correct(o Observation) {
	if !c.current() || c.t.Phase.Terminal() {
		c.contradict(o)
		return
	}
	c.a.Status = AttemptRunning // as if the first verdict had not come
	c.t.Phase = PhaseRunning
	c.advance(o)
}
