package domain

// cancelRequested notes the user's wish. Nothing is canceled by wishing: only an
// attempt that the vendor has never seen ends at once.
func (c *change) cancelRequested() error {
	c.source = SourceUser
	switch {
	case !c.current():
		return ErrInvalidTransition
	case c.t.Phase.Terminal():
		return ErrTaskTerminal
	case c.t.Cancel.Pending():
		return nil // asked before, and not answered yet
	case c.a.Status == AttemptCreated:
		c.cancelUnsent()
	case c.a.Status == AttemptSucceeded && c.t.OnLateSuccess == LateSuccessDiscard:
		c.t.Cancel = CancelRequested
		c.take(OnCancelDiscards)
		c.closeMoney(ClosingRefunded)
	case c.a.Status == AttemptSucceeded:
		c.t.Cancel = CancelRefused // the result is on its way and is kept
	case c.a.Status.AtVendor():
		c.t.Cancel = CancelRequested
		c.askToCancel()
	default:
		c.t.Cancel = CancelRequested // asked as soon as the vendor's id is known
	}
	return nil
}

// cancelUnsent ends an attempt that the vendor has never seen.
func (c *change) cancelUnsent() {
	c.t.Cancel = CancelRequested
	c.take(OnCancelUnsent)
	c.a.ErrorClass = ClassCanceled
	c.closeMoney(ClosingRefunded)
}

// askToCancel starts the vendor's cancel call, if it has one. Without one the
// wish is refused, unless the project discards late results: then it stands
// until the vendor's verdict.
func (c *change) askToCancel() {
	switch {
	case c.p.CanCancel:
		c.start(OperationCancelProvider, c.before.Cancel == CancelRefused) // the vendor may agree now
	case c.t.OnLateSuccess != LateSuccessDiscard:
		c.t.Cancel = CancelRefused
	}
}

// cancelAnswered notes the vendor's answer to the cancel call. The verdict itself
// comes as an observation; the next query is brought forward for it.
func (c *change) cancelAnswered() {
	c.source = SourceSystem
	switch {
	case !c.current():
		c.ignore(ReasonStaleAttempt)
		return
	case c.t.Phase.Terminal() || c.a.Status.Terminal():
		c.ignore(ReasonTerminalAbsorbing)
		return
	case !c.t.Cancel.Pending():
		return
	case c.in.Kind == InputCancelAccepted:
		c.t.Cancel = CancelSent
	default:
		c.t.Cancel = CancelRefused
	}
	if c.a.Status.AtVendor() {
		due := c.soonest()
		c.setTimer(&due)
	}
}
