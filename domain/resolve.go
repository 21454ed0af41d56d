package domain

import "fmt"

// resolve applies a person's decision.
func (c *change) resolve() error {
	c.source = SourceOperator
	r := c.in.Resolution
	if r == nil || r.ActionID.IsZero() {
		return fmt.Errorf("%w: a resolution needs its action id", ErrInvalidInput)
	}
	switch r.Kind {
	case ResolveCreatedWithID:
		return c.resolveCreated(*r)
	case ResolveNotCreated:
		return c.resolveEnd(OnNotCreated, ClassNotCreated)
	case ResolveAbandon:
		return c.resolveEnd(OnAbandoned, ClassAbandoned)
	case ResolveAdopt:
		return c.adopt(*r)
	case ResolveCloseCost:
		return c.closeCost(*r)
	case ResolveRefund:
		return c.refund(*r)
	case ResolveKeep:
		return c.keep()
	default:
		return fmt.Errorf("%w: unknown resolution %q", ErrInvalidInput, r.Kind)
	}
}

// resolveCreated gives an unknown submit the id that the vendor has for it.
func (c *change) resolveCreated(r Resolution) error {
	if r.ProviderTaskID == "" {
		return fmt.Errorf("%w: created_with_id needs the vendor's id", ErrInvalidInput)
	}
	if !c.take(OnCreatedWithID) {
		return ErrInvalidTransition
	}
	c.a.ProviderTaskID = r.ProviderTaskID
	c.known()
	c.arrived()
	due := c.now
	c.setTimer(&due)
	return nil
}

// resolveEnd closes an attempt on a person's word.
func (c *change) resolveEnd(on Trigger, class ErrorClass) error {
	if !c.take(on) {
		return ErrInvalidTransition
	}
	c.end(class, "")
	return nil
}

// adopt takes the result of this attempt for the task, whatever the task's
// current attempt is and however this one was closed.
func (c *change) adopt(r Resolution) error {
	if len(c.a.Outputs) == 0 {
		c.a.Outputs = r.Outputs
	}
	if len(c.a.Outputs) == 0 {
		return fmt.Errorf("%w: there is no output to adopt", ErrInvalidInput)
	}
	if c.current() && (c.t.Phase == PhaseProviderSucceeded || c.t.Phase == PhaseProcessingMedia) {
		return ErrInvalidTransition // it is being fetched already
	}
	c.t.CurrentAttemptID = c.a.ID
	if !c.take(OnAdopted) {
		return ErrInvalidTransition
	}
	c.t.Error, c.t.UnknownSince, c.t.Progress = nil, nil, nil
	if c.t.Cancel == CancelConfirmed {
		c.t.Cancel = CancelNone
	}
	c.a.ErrorClass, c.a.ErrorCode = "", ""
	c.a.AdoptedBy = r.ActionID
	c.d.CloseCases = append(c.d.CloseCases, CaseConflict, CaseCost)
	c.start(OperationFetchOutput, true)
	c.touch()
	return nil
}

// closeCost closes the money of an attempt that is no longer the task's.
func (c *change) closeCost(r Resolution) error {
	if c.a.Closing != ClosingOpen || (c.current() && !c.t.Phase.Terminal()) {
		return ErrInvalidTransition
	}
	if r.Closing != ClosingSettled && r.Closing != ClosingRefunded {
		return fmt.Errorf("%w: close_cost says settled or refunded", ErrInvalidInput)
	}
	if c.take(OnAbandoned) {
		c.a.ErrorClass = ClassAbandoned // nobody waits for its verdict any more
	}
	c.closeMoney(r.Closing)
	return nil
}

// refund gives back what an ended attempt cost. One that was settled keeps its
// entry, and an adjust named by the command gives the credits back; one that was
// refunded has nothing to give (I9).
func (c *change) refund(r Resolution) error {
	if !c.a.Status.Terminal() || c.a.Closing == ClosingRefunded || (c.current() && !c.t.Phase.Terminal()) {
		return ErrInvalidTransition
	}
	if c.a.Closing == ClosingSettled {
		c.a.Closing = ClosingRefunded
		c.ledger(LedgerAdjust, c.a, r.ActionID)
		c.d.Ledger[len(c.d.Ledger)-1].Back = true
	}
	c.closeMoney(ClosingRefunded)
	c.calm()
	return nil
}

// keep closes the contradiction of an ended attempt.
func (c *change) keep() error {
	if !c.a.Status.Terminal() {
		return ErrInvalidTransition
	}
	c.calm()
	return nil
}

// calm ends the search for the truth about a contradicted attempt: a person has
// decided.
func (c *change) calm() {
	c.a.NextReconcileAt = nil
	c.d.CloseCases = append(c.d.CloseCases, CaseConflict)
	c.d.Noted = true
	c.touch()
}
