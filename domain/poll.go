package domain

import "time"

// Backoff is min(Cap, Base·2^n), without jitter (specification 12.8.3).
func (i Interval) Backoff(n int) time.Duration {
	d := i.Base
	for ; n > 0 && d < i.Cap; n-- {
		d *= 2
	}
	return min(d, i.Cap)
}

// PollDelay is the time to the next query of an attempt at the vendor, without
// jitter: the row of the polling table that fits its status, at the exponent of
// the queries since the status last changed, at the pace of the account. Where it
// is known how long jobs take, a job is left alone in the first half of that time,
// and asked for as often as the row allows when it should be done.
func PollDelay(a Attempt, current bool, p Policy, now time.Time) time.Duration {
	row, age := p.Running, time.Duration(0)
	if a.SubmittedAt != nil {
		age = now.Sub(*a.SubmittedAt)
	}
	switch {
	case !current:
		return p.Superseded.Backoff(a.PollCount)
	case a.Overdue:
		return p.Overdue.Backoff(a.PollCount)
	case a.SubmittedAt != nil && age < p.SubmittedWindow:
		return p.Paced(p.Submitted.Backoff(a.PollCount))
	case a.Status != AttemptRunning:
		row = p.Queued // accepted and not yet heard of is waiting, too
	}
	switch {
	case p.Typical.NearDone(age):
		return p.Paced(row.Base)
	case p.Typical.Early(age):
		return p.Paced(row.Cap)
	default:
		return p.Paced(row.Backoff(a.PollCount))
	}
}

// holdsPollLease reports whether the caller's query is the one that the attempt
// waits for. Another's answer is news all the same, but moves no timer. The lease
// counts that stood when the answer came: digesting it releases the lease.
func (c *change) holdsPollLease() bool {
	return c.in.Lease.IsZero() || c.in.Lease == c.lease
}

// answered notes an answered query.
func (c *change) answered(o Observation) {
	if !o.Source.Query() || !c.holdsPollLease() {
		return
	}
	c.queried()
	if c.a.PollHintAt != nil && !c.a.LastQueryAt.Before(*c.a.PollHintAt) {
		c.a.PollHintAt = nil // a query that began before the hint does not answer it
	}
	if o.Status != ObservedNone {
		c.a.PollFailures = 0
		c.known() // also when the answer itself is late: the vendor can be read again
	}
	c.a.PollCount++
	c.d.CloseCases = append(c.d.CloseCases, CaseLost)
	if c.a.Status.Terminal() {
		c.a.NextReconcileAt = nil // the extra query is answered
	}
}

// queried releases the lease and notes when the query began.
func (c *change) queried() {
	c.a.PollLease, c.a.PollLeaseUntil = ID{}, nil
	began := c.in.QueryStartedAt
	if began.IsZero() {
		began = c.now
	}
	c.a.LastQueryAt = &began
	c.touch()
}

// hint brings the next query forward for news that cannot be taken at its word,
// if it claims something new. A repeated hint moves nothing and is only counted,
// so a flood costs no writes.
func (c *change) hint(o Observation, r Reason) {
	if c.a.Status.Terminal() || o.Status.Attempt().Rank() <= c.a.Status.Rank() || o.Status == ObservedNone {
		c.ignore(r)
		return
	}
	c.ask(r)
}

// ask brings the next query forward; once for all hints that no query has
// answered.
func (c *change) ask(r Reason) {
	at, due := c.now, c.soonest()
	if !c.a.Status.AtVendor() {
		c.hintUnsent(r, at)
		return
	}
	if next := c.nextQuery(); c.a.PollHintAt != nil && next != nil && !next.After(due) {
		return
	}
	c.a.PollHintAt = &at
	c.setTimer(&due)
	c.d.Verdict = Verdict{VerdictNeedsQuery, r}
}

// hintUnsent notes a hint about an attempt whose vendor id is not known: an
// unknown submit is looked up at once where the vendor can, and every other one
// is queried as soon as its id is there.
func (c *change) hintUnsent(r Reason, at time.Time) {
	if c.a.PollHintAt != nil {
		return
	}
	c.a.PollHintAt = &at
	if c.a.Status == AttemptSubmitUnknown && c.p.CanLookup {
		due := c.soonest()
		c.a.NextReconcileAt = &due
	}
	c.touch()
	c.d.Verdict = Verdict{VerdictNeedsQuery, r}
}

// soonest is now, or the least gap after the last query.
func (c *change) soonest() time.Time {
	if c.a.LastQueryAt != nil {
		if at := c.a.LastQueryAt.Add(c.p.MinPollGap); at.After(c.now) {
			return at
		}
	}
	return c.now
}

// hintWaits reports whether a delivery asked for a query and none has begun
// since.
func (c *change) hintWaits() bool {
	return c.a.PollHintAt != nil && (c.a.LastQueryAt == nil || c.a.LastQueryAt.Before(*c.a.PollHintAt))
}

// schedule sets the next query after an answer or after news that was taken.
// Refused news puts nothing off, or a replay of old deliveries could hold up the
// queries for ever.
func (c *change) schedule(o Observation, taken bool) {
	switch {
	case !c.a.Status.AtVendor():
		return
	case c.a.Timer() == nil:
	case o.Source.Query() && !c.holdsPollLease(), !o.Source.Query() && !taken:
		return
	case o.Source == SourceWebhook && c.keepsTimer():
		return
	}
	c.setNextQuery()
}

// keepsTimer reports whether a delivery leaves the next query where it is. A new
// status has its own row of the table; news of the same one puts queries off and
// never brings one forward that no hint asks for. It does so only when the query
// would come within half of the delay, since each move of a timer is a write into
// every index of the attempt.
func (c *change) keepsTimer() bool {
	next := c.a.NextPollAt
	if !c.current() || c.a.Status != c.was || next == nil || c.a.PollHintAt != nil || c.in.RetryAfter > 0 {
		return false
	}
	return !next.Before(c.now.Add(PollDelay(c.a, true, c.p, c.now) / 2))
}

// nextQuery is the timer that setTimer sets.
func (c *change) nextQuery() *time.Time {
	if c.current() {
		return c.a.NextPollAt
	}
	return c.a.NextReconcileAt
}

// setNextQuery sets the timer of an attempt at the vendor: at once for a hint
// that waits, as the vendor wished, or by the table.
func (c *change) setNextQuery() {
	at := c.after(PollDelay(c.a, c.current(), c.p, c.now))
	switch {
	case c.a.PollHintAt != nil:
		due := c.soonest()
		at = &due
	case c.in.RetryAfter > 0:
		wish := c.now.Add(max(c.in.RetryAfter, c.p.MinPollGap))
		at = &wish
	}
	c.setTimer(at)
}

// setTimer sets the timer that fits: the poll of a current attempt, the slow
// loop of a superseded one.
func (c *change) setTimer(at *time.Time) {
	if c.current() {
		c.a.NextPollAt = at
	} else {
		c.a.NextPollAt, c.a.NextReconcileAt = nil, at
	}
	c.touch()
}

// queryFailed notes a query without an answer. It is no verdict (I12): after a
// number of them the status is unknown, and a person is told when the vendor
// does not know the job.
func (c *change) queryFailed(e QueryError) {
	c.source = SourcePoll
	if !c.holdsPollLease() {
		return
	}
	c.queried()
	if c.a.Status == AttemptSubmitUnknown {
		c.lookupAgain()
		return
	}
	if c.a.Status.Terminal() {
		c.retryReconcile()
		return
	}
	if !c.a.Status.AtVendor() {
		return // there is no job to ask for yet
	}
	if e.Class == QueryNotFound && c.a.SubmittedAt != nil && c.now.Sub(*c.a.SubmittedAt) < c.p.NotFoundGrace {
		c.setTimer(c.after(c.p.Submitted.Backoff(c.a.PollCount)))
		c.a.PollCount++
		return
	}
	lost := c.missed() && e.Class == QueryNotFound
	c.setTimer(c.failureTimer(e))
	if lost {
		c.d.OpenCases = append(c.d.OpenCases, CaseLost)
	}
	c.d.Noted = c.a.PollFailures == 1 || c.a.PollFailures == c.p.UnknownAfter
}

// missed counts a query that taught nothing, and notes an unknown status after a
// number of them in a row; true from then on.
func (c *change) missed() bool {
	c.a.PollFailures++
	c.touch()
	if c.a.PollFailures < c.p.UnknownAfter {
		return false
	}
	if c.current() && c.t.UnknownSince == nil && (c.t.Phase == PhaseQueued || c.t.Phase == PhaseRunning) {
		at := c.now
		c.t.UnknownSince = &at
	}
	return true
}

// failureTimer is when to ask again after a failure. A hint that came after the
// failed query began is not put off, unless the vendor wants to be left alone.
func (c *change) failureTimer(e QueryError) *time.Time {
	if c.hintWaits() && e.Class != QueryThrottled && e.RetryAfter == 0 {
		due := c.soonest()
		return &due
	}
	row := c.p.Failing
	switch {
	case !c.current():
		row = c.p.Superseded
	case e.Class == QueryThrottled:
		row = c.p.Throttled
	}
	at := c.after(row.Backoff(c.a.PollFailures - 1))
	if wish := c.now.Add(e.RetryAfter); e.RetryAfter > 0 && wish.After(*at) {
		return &wish
	}
	return at
}

// retryReconcile asks again about a contradicted attempt a few times; the case
// stays for a person in any event. Any other settled attempt has nothing to ask.
func (c *change) retryReconcile() {
	if !c.a.Conflicted {
		return
	}
	c.a.ReconcileCount++
	c.a.NextReconcileAt = nil
	if c.a.ReconcileCount < c.p.UnknownAfter {
		c.a.NextReconcileAt = c.after(c.p.Failing.Backoff(c.a.ReconcileCount))
	}
}

// lookupFailed notes a lookup that did not find the job.
func (c *change) lookupFailed() {
	c.source = SourceReconcile
	if !c.holdsPollLease() {
		return
	}
	c.queried()
	if c.a.Status == AttemptSubmitUnknown {
		c.lookupAgain()
	}
}

// lookupAgain sets the next lookup until the vendor forgets; then the case alone
// stands (I16).
func (c *change) lookupAgain() {
	c.a.ReconcileCount++
	c.a.NextReconcileAt = nil
	switch {
	case !c.p.CanLookup:
	case c.hintWaits():
		due := c.soonest()
		c.a.NextReconcileAt = &due
	case c.now.Sub(c.a.CreatedAt) < c.p.LookupRetention:
		c.a.NextReconcileAt = c.after(c.p.Lookup.Backoff(c.a.ReconcileCount))
	}
	c.d.Noted = c.a.ReconcileCount == 1 || c.a.NextReconcileAt == nil
	c.touch()
}

// overdue slows the polls of an attempt that takes too long and calls a person;
// one that no vendor would take yet waits on, and a person is called all the same.
// Nothing is failed for being slow.
func (c *change) overdue() {
	if c.a.Status.Terminal() || c.a.Overdue {
		return
	}
	c.a.Overdue, c.d.Noted = true, true
	c.d.OpenCases = append(c.d.OpenCases, CaseOverdue)
	c.touch()
	if c.a.Status.AtVendor() {
		c.setNextQuery()
	}
}
