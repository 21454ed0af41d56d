package domain

// submitStarted takes the submit lease: the commit before the vendor's create is
// called. Who finds the attempt in another state does not call.
func (c *change) submitStarted() {
	c.source = SourceSubmit
	replay := c.in.Kind == InputSubmitReplayed
	on := OnSubmitStarted
	if replay {
		on = OnSubmitReplayed
	}
	if !c.current() && c.take(OnCancelUnsent) {
		c.a.ErrorClass = ClassCanceled
		c.closeMoney(ClosingRefunded) // superseded before it was sent
	}
	if !c.current() || c.t.Phase.Terminal() || c.t.Cancel.Pending() || (replay && !c.replayable()) || !c.take(on) {
		c.ignore(ReasonNotSubmittable)
		return
	}
	until := c.in.LeaseUntil
	c.a.SubmitLease, c.a.SubmitLeaseUntil = c.in.Lease, &until
	c.a.NextSubmitAt, c.a.NextReconcileAt = nil, nil
	c.a.SubmitCount++
}

// replayable reports whether the vendor still knows the first request: once it
// has forgotten that, the same one would be run twice (I8).
func (c *change) replayable() bool {
	return c.p.ReplaySafe && c.now.Sub(c.a.CreatedAt) < c.p.LookupRetention
}

// submitAccepted takes the vendor's id, even from a caller whose lease is gone:
// it is the vendor's word.
func (c *change) submitAccepted() {
	c.source = SourceSubmit
	id := c.in.ProviderTaskID
	if c.a.ProviderTaskID != "" && id != "" && id != c.a.ProviderTaskID {
		c.ignore(ReasonIdentityMismatch)
		return
	}
	if c.a.ProviderTaskID == "" && id != "" {
		c.a.ProviderTaskID = id
		c.touch()
	}
	if !c.take(OnSubmitAccepted) {
		// A callback was faster; only the id was missing.
		if c.a.Status.Terminal() && !c.d.AttemptChanged {
			c.ignore(ReasonTerminalAbsorbing)
		}
		return
	}
	c.known()
	c.arrived()
	c.setNextQuery()
}

// holdsSubmitLease reports whether the caller is the one who called the vendor.
func (c *change) holdsSubmitLease() bool { return c.in.Lease == c.a.SubmitLease }

// submitNotSent gives the attempt back: the vendor provably has nothing. Of a
// replay it proves nothing about the first request, which stays unknown.
func (c *change) submitNotSent() {
	c.source = SourceSubmit
	switch {
	case c.a.Status != AttemptSubmitting:
		c.ignore(ReasonRegressiveStatus)
	case !c.holdsSubmitLease():
		c.ignore(ReasonStaleLease)
	case c.current() && c.t.UnknownSince != nil:
		c.take(OnSubmitUnknown)
		c.a.SubmitLease, c.a.SubmitLeaseUntil = ID{}, nil
		c.a.ReconcileCount++
		c.a.NextReconcileAt = c.after(max(c.p.Lookup.Backoff(c.a.ReconcileCount), c.in.RetryAfter))
	default:
		c.take(OnSubmitNotSent)
		c.a.SubmitLease, c.a.SubmitLeaseUntil = ID{}, nil
		if c.current() && c.t.Cancel.Pending() {
			c.cancelUnsent()
			return
		}
		at := c.after(max(c.p.SubmitRetry.Backoff(c.a.SubmitCount-1), c.in.RetryAfter))
		c.a.NextSubmitAt = at
	}
}

// submitRejected takes the vendor's refusal of the request.
func (c *change) submitRejected() {
	c.source = SourceSubmit
	switch {
	case c.a.Status == AttemptSubmitting && !c.holdsSubmitLease():
		c.ignore(ReasonStaleLease)
	case !c.take(OnSubmitRejected):
		c.ignore(ReasonRegressiveStatus)
	default:
		c.end(c.in.ErrorClass, c.in.ErrorCode)
	}
}

// submitUnknown notes that nobody knows whether the vendor has the job: from the
// caller whose answer was lost, or by the lease running out.
func (c *change) submitUnknown() {
	c.source = SourceSubmit
	expired := c.a.SubmitLeaseUntil != nil && !c.now.Before(*c.a.SubmitLeaseUntil)
	switch {
	case c.a.Status != AttemptSubmitting:
		c.ignore(ReasonRegressiveStatus)
	case !c.holdsSubmitLease() && !(c.in.Lease.IsZero() && expired):
		c.ignore(ReasonStaleLease)
	default:
		c.take(OnSubmitUnknown)
		c.a.SubmitLease, c.a.SubmitLeaseUntil = ID{}, nil
		if c.current() && c.t.UnknownSince != nil {
			c.a.ReconcileCount++ // of a replay: the vendor may be broken, and is given time
		} else {
			c.a.ReconcileCount = 0
		}
		if c.p.CanLookup || c.p.ReplaySafe {
			c.a.NextReconcileAt = c.after(c.p.Lookup.Backoff(c.a.ReconcileCount))
		}
		c.d.OpenCases = append(c.d.OpenCases, CaseSubmitUnknown)
		if c.current() && c.t.UnknownSince == nil {
			at := c.now
			c.t.UnknownSince = &at
		}
	}
}
