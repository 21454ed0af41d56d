package domain

// mediaStage moves the platform's own work on, stage by stage, never back.
func (c *change) mediaStage() {
	c.source = SourceMedia
	if c.mediaRefused() {
		return
	}
	s := c.in.Stage
	if !s.Media() || s.Order() < c.t.Stage.Order() {
		c.ignore(ReasonRegressiveStage)
		return
	}
	c.take(OnMediaStage)
	c.stage(s)
	if c.in.Progress != nil {
		c.progress(*c.in.Progress)
	}
}

// mediaReady publishes the file: only now is the task ready, and only now is it
// paid for.
func (c *change) mediaReady() {
	c.source = SourceMedia
	if c.mediaRefused() {
		return
	}
	c.take(OnMediaReady)
	full := 100
	c.t.AssetID, c.t.Progress = c.in.AssetID, &full
	if c.a.Closing == ClosingRefunded && !c.a.AdoptedBy.IsZero() {
		c.a.Closing = ClosingSettled
		c.ledger(LedgerAdjust, c.a, c.a.AdoptedBy)
		c.touch()
		return
	}
	c.closeMoney(ClosingSettled)
}

// mediaFailed ends the task when its file cannot be had.
func (c *change) mediaFailed() {
	c.source = SourceMedia
	if c.mediaRefused() {
		return
	}
	c.take(OnMediaFailed)
	c.fail(c.in.ErrorClass.or(ClassMedia))
	c.closeMoney(ClosingRefunded)
}

// mediaRefused gives the reason why news of the media role does not count.
func (c *change) mediaRefused() bool {
	switch {
	case !c.current():
		c.ignore(ReasonStaleAttempt)
	case c.t.Phase.Terminal():
		c.ignore(ReasonTerminalAbsorbing)
	case c.t.Phase != PhaseProviderSucceeded && c.t.Phase != PhaseProcessingMedia:
		c.ignore(ReasonRegressiveStage)
	default:
		return false
	}
	return true
}
