package domain

// progress applies a percentage of the current stage: a maximum, in steps of a
// size and at distances in time that keep it from flooding the stream
// (specification 12.11.1). What is only too soon is deferred, the newest wins.
func (c *change) progress(percent int) {
	percent = min(max(percent, 0), 100)
	have := 0
	if c.a.Progress != nil {
		have = *c.a.Progress
	}
	deferred := have
	if c.a.DeferredProgress != nil {
		deferred = *c.a.DeferredProgress
	}
	rides := publicOf(c.t) != publicOf(c.before) // an event is written anyway
	switch {
	case percent < have:
		c.ignore(ReasonRegressiveProgress)
	case percent == have && c.a.Progress != nil:
	case rides:
		c.storeProgress(percent)
	case percent <= deferred && c.a.DeferredProgress != nil:
		c.ignore(ReasonThrottledProgress)
	case percent-have < c.p.ProgressStep:
		c.ignore(ReasonThrottledProgress)
	case c.a.ProgressAt != nil && c.now.Sub(*c.a.ProgressAt) < c.p.ProgressGap:
		until := c.a.ProgressAt.Add(c.p.ProgressGap)
		c.a.DeferredProgress, c.a.DeferredUntil = &percent, &until
		c.touch()
		c.ignore(ReasonThrottledProgress)
	default:
		c.storeProgress(percent)
	}
}

// storeProgress makes a percentage public.
func (c *change) storeProgress(percent int) {
	at := c.now
	c.a.Progress, c.a.ProgressAt = &percent, &at
	c.a.DeferredProgress, c.a.DeferredUntil = nil, nil
	c.a.PollCount = 0
	c.touch()
	if c.current() {
		c.t.Progress = &percent
	}
}

// progressDue applies what was deferred, when its time has come.
func (c *change) progressDue() {
	switch {
	case c.a.DeferredProgress == nil:
	case c.a.DeferredUntil != nil && c.now.Before(*c.a.DeferredUntil):
	case !c.current() || c.t.Phase.Terminal():
		c.dropProgress()
	default:
		c.storeProgress(*c.a.DeferredProgress)
	}
}
