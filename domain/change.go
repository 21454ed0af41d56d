package domain

import "time"

// change is a decision in the making: copies of the values, and what follows
// from them so far.
type change struct {
	before Task
	was    AttemptStatus
	lease  ID // the poll lease at the beginning
	t      Task
	a      Attempt
	in     Input
	p      Policy
	now    time.Time
	source Source
	d      Decision
}

func begin(task Task, attempt Attempt, in Input, now time.Time) *change {
	c := &change{before: task, was: attempt.Status, lease: attempt.PollLease, t: task, a: attempt.clone(), in: in, p: in.Policy.WithDefaults(), now: now, source: SourceSystem}
	c.d.Verdict = Verdict{Kind: VerdictUnchanged}
	return c
}

// public is the part of a task whose change is an event.
type public struct {
	phase       Phase
	cancel      Cancel
	unknown     bool
	stage       Stage
	progress    int
	hasProgress bool
	asset       AssetID
	failed      bool
	attempt     AttemptID
	version     bool
}

func publicOf(t Task) public {
	p := public{phase: t.Phase, cancel: t.Cancel, unknown: t.UnknownSince != nil, stage: t.Stage, asset: t.AssetID, failed: t.Error != nil, attempt: t.CurrentAttemptID, version: t.Version > 0}
	if t.Progress != nil {
		p.progress, p.hasProgress = *t.Progress, true
	}
	return p
}

// finish raises the version and writes the event when the public part changed:
// the one place where I4 is kept.
func (c *change) finish() Decision {
	d := c.d
	d.Source = c.source
	d.StatusChanged = c.a.Status != c.was
	if d.AttemptChanged || d.StatusChanged {
		d.AttemptChanged = true
		c.a.UpdatedAt = c.now
	}
	if c.t.Version == 0 || publicOf(c.t) != publicOf(c.before) {
		c.t.Version++
		c.t.UpdatedAt = c.now
		d.TaskChanged = true
		d.Verdict = Verdict{Kind: VerdictApplied}
		d.Event = c.event()
	}
	d.Task, d.Attempt = c.t, c.a
	return d
}

func (c *change) event() *Event {
	t := c.t
	return &Event{
		TenantID: t.TenantID, ProjectID: t.ProjectID, UserID: t.UserID, TaskID: t.ID, AttemptID: t.CurrentAttemptID,
		Version: t.Version, Type: EventTaskStatusChanged, Status: t.Status(), Phase: t.Phase, Cancel: t.Cancel,
		Stage: t.Stage, Progress: t.Progress, AssetID: t.AssetID, Error: t.Error, Source: c.source, TraceID: t.TraceID,
	}
}

// current reports whether the attempt may change the task (I11).
func (c *change) current() bool { return c.before.Current(c.a) || c.t.Current(c.a) }

// ignore refuses the input with a reason.
func (c *change) ignore(r Reason) { c.d.Verdict = Verdict{VerdictIgnored, r} }

// touch says that the attempt has to be written.
func (c *change) touch() { c.d.AttemptChanged = true }

// take follows the row of a trigger; false when the table has none for the
// state. An attempt that is not current moves alone.
func (c *change) take(on Trigger) bool {
	row, ok := lookup(on, c.a.Status, c.t.Phase)
	if !ok {
		return false
	}
	if row.To != "" && row.To != c.a.Status {
		c.a.Status = row.To
		c.a.PollCount, c.a.PollFailures = 0, 0
		c.dropProgress()
		if row.To.Terminal() {
			c.stopTimers()
		}
		c.touch()
	}
	if !c.current() {
		c.ignore(ReasonStaleAttempt)
		return true
	}
	if row.Phase != "" {
		c.enter(row.Phase)
	}
	if row.Stage != "" {
		c.stage(row.Stage)
	}
	return true
}

// enter moves the task to a phase and settles the facts that the phase does not
// allow.
func (c *change) enter(p Phase) {
	c.t.Phase = p
	if p != PhaseQueued && p != PhaseRunning {
		c.t.UnknownSince = nil
	}
	switch {
	case p == PhaseCanceled && c.t.Cancel != CancelNone:
		c.t.Cancel = CancelConfirmed
	case p != PhaseQueued && p != PhaseRunning && p != PhaseCanceled && c.t.Cancel.Pending():
		c.t.Cancel = CancelRefused // the vendor ended first
	}
	if p.Terminal() {
		at := c.now
		c.t.TerminalAt = &at
		c.dropProgress()
	} else {
		c.t.TerminalAt = nil
	}
}

// stage moves the task to a stage; its progress starts anew.
func (c *change) stage(s Stage) {
	if c.t.Stage == s {
		return
	}
	c.t.Stage = s
	c.t.Progress = nil
	c.dropProgress()
}

// dropProgress forgets the progress of the stage that was left.
func (c *change) dropProgress() {
	c.a.Progress, c.a.ProgressAt, c.a.DeferredProgress, c.a.DeferredUntil = nil, nil, nil, nil
	c.touch()
}

// stopTimers ends all work on an attempt that has its verdict, and closes the
// cases that waited for one.
func (c *change) stopTimers() {
	at := c.now
	c.a.TerminalAt = &at
	c.a.NextSubmitAt, c.a.SubmitLeaseUntil, c.a.SubmitLease = nil, nil, ID{}
	c.a.NextPollAt, c.a.NextReconcileAt, c.a.PollHintAt = nil, nil, nil
	c.a.PollLease, c.a.PollLeaseUntil = ID{}, nil
	c.d.CloseCases = append(c.d.CloseCases, CaseSubmitUnknown, CaseLost, CaseOverdue)
}

// fail gives the task its public error.
func (c *change) fail(class ErrorClass) {
	if c.current() {
		c.t.Error = &PublicError{Code: class, Retryable: class.Retryable(), TraceID: c.t.TraceID}
	}
}

// known clears an unknown status: the vendor has spoken.
func (c *change) known() {
	if c.current() {
		c.t.UnknownSince = nil
	}
}

// after is a moment from now, with the caller's jitter.
func (c *change) after(d time.Duration) *time.Time {
	j := c.in.Jitter
	if j == 0 {
		j = 1
	}
	at := c.now.Add(time.Duration(float64(d) * j))
	return &at
}

// start adds follow-up work.
func (c *change) start(t OperationType, restart bool) {
	c.d.Operations = append(c.d.Operations, Operation{TaskID: c.t.ID, AttemptID: c.a.ID, Type: t, Restart: restart})
}

// ledger adds an entry for the attempt.
func (c *change) ledger(t LedgerType, a Attempt, action ActionID) {
	c.d.Ledger = append(c.d.Ledger, LedgerEntry{TenantID: c.t.TenantID, TaskID: c.t.ID, AttemptID: a.ID, Type: t, Credits: a.Credits, ActionID: action})
}

// closeMoney settles or refunds what is still reserved; once (I9).
func (c *change) closeMoney(how Closing) {
	if c.a.Closing != ClosingOpen {
		return
	}
	entry := LedgerRefund
	if how == ClosingSettled {
		entry = LedgerSettle
	}
	c.a.Closing = how
	c.ledger(entry, c.a, ActionID{})
	c.touch()
	if !c.current() {
		c.d.CloseCases = append(c.d.CloseCases, CaseCost)
		c.a.NextReconcileAt = nil
	}
}
