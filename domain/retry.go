package domain

import "fmt"

// retry opens a new attempt. The old one keeps its facts; if it is still open, it
// is followed slowly for its cost.
func (c *change) retry() error {
	c.source = SourceUser
	if c.in.NewAttempt == nil || c.in.NewAttempt.ID.IsZero() || c.in.NewAttempt.ID == c.a.ID {
		return fmt.Errorf("%w: a retry needs a new attempt", ErrInvalidInput)
	}
	if !c.current() {
		return ErrInvalidTransition
	}
	unsure := c.a.Status == AttemptSubmitUnknown || c.a.ErrorClass == ClassAbandoned
	switch {
	case c.t.Phase != PhaseFailed && c.t.Phase != PhaseCanceled && c.a.Status != AttemptSubmitUnknown:
		return ErrNotRetryable
	case unsure && !c.in.AcceptPossibleDuplicate:
		return ErrPossibleDuplicate
	}
	if !c.take(OnRetry) {
		return ErrInvalidTransition
	}
	c.supersede()
	c.t.Cancel, c.t.UnknownSince, c.t.Error = CancelNone, nil, nil
	c.t.Progress, c.t.AssetID = nil, AssetID{}
	c.openAttempt(*c.in.NewAttempt)
	return nil
}

// supersede takes the task away from an attempt that may still be running.
func (c *change) supersede() {
	if c.a.Status.Terminal() {
		return
	}
	c.a.NextSubmitAt, c.a.NextPollAt = nil, nil
	c.a.NextReconcileAt = c.after(c.p.Superseded.Base)
	c.d.OpenCases = append(c.d.OpenCases, CaseCost)
	c.d.CloseCases = append(c.d.CloseCases, CaseSubmitUnknown, CaseOverdue, CaseLost)
	c.touch()
}

// openAttempt makes an attempt the task's current one and reserves its price.
func (c *change) openAttempt(a Attempt) {
	due := c.now
	a.TaskID, a.No, a.Status, a.Closing = c.t.ID, c.t.AttemptCount+1, AttemptCreated, ClosingOpen
	a.NextSubmitAt, a.CreatedAt, a.UpdatedAt = &due, c.now, c.now
	c.t.CurrentAttemptID, c.t.AttemptCount = a.ID, a.No
	c.d.NewAttempt = &a
	c.ledger(LedgerReserve, a, ActionID{})
}
