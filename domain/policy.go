package domain

import "time"

// Interval is one row of the polling table: min(Cap, Base·2^n).
type Interval struct {
	Base time.Duration
	Cap  time.Duration
}

// Typical is how long jobs of a model usually take, from the accepted submit to the
// end; zero while nobody knows.
type Typical struct{ P50, P95 time.Duration }

// A job counts as near its end from this share of its model's P95 to that one:
// before, a query finds it running; later, nobody knows when it will end.
const (
	NearDoneFrom  = 0.7
	NearDoneUntil = 2.0
)

// NearDone reports whether a job of that age should end soon.
func (t Typical) NearDone(age time.Duration) bool {
	share := float64(age) / max(float64(t.P95), 1)
	return t.P95 > 0 && share >= NearDoneFrom && share < NearDoneUntil
}

// Early reports whether a job of that age is not expected to end yet.
func (t Typical) Early(age time.Duration) bool { return age < t.P50/2 }

// Policy is what is known of a vendor and matters to a decision. It is data: the
// zero value is completed by [Policy.WithDefaults].
type Policy struct {
	// CanCancel: the vendor has a call that cancels a running job.
	CanCancel bool
	// ReplaySafe: the vendor documents that the same create is not run twice.
	ReplaySafe bool
	// CanLookup: a job can be found by our own id.
	CanLookup bool
	// Corrections: the vendor documents that a terminal may be revised.
	Corrections bool

	// The polling table of specification 12.8.3.
	Submitted  Interval
	Queued     Interval
	Running    Interval
	Throttled  Interval
	Failing    Interval
	Overdue    Interval
	Superseded Interval

	// Typical is how long jobs of the attempt's model usually take.
	Typical Typical

	// SubmittedWindow is how long after the submit its own row applies.
	SubmittedWindow time.Duration
	// MinPollGap is the least distance between two queries of one attempt.
	MinPollGap time.Duration
	// Pace stretches the regular rows above 1 and shortens them below: what the
	// platform learned of the account's webhooks. 0 leaves them as they are.
	Pace float64
	// NotFoundGrace is how long after the submit a 404 is normal.
	NotFoundGrace time.Duration
	// UnknownAfter is how many failed queries in a row make a status unknown.
	UnknownAfter int
	// MaxDuration is the longest that is normal; longer is overdue.
	MaxDuration time.Duration
	// SubmitRetry spaces creates that were not sent.
	SubmitRetry Interval
	// Lookup spaces lookups of an unknown submit.
	Lookup Interval
	// LookupRetention is how long a lookup can find a job, and a replay its first
	// request; then a person decides.
	LookupRetention time.Duration

	// ProgressStep in points and ProgressGap in time bound how often progress
	// becomes an event (specification 12.11.1).
	ProgressStep int
	ProgressGap  time.Duration
}

// DefaultPolicy holds the values of specification 12.8.3 and 12.11.1.
func DefaultPolicy() Policy {
	return Policy{
		Submitted:       Interval{2 * time.Second, 5 * time.Second},
		Queued:          Interval{10 * time.Second, 30 * time.Second},
		Running:         Interval{5 * time.Second, 15 * time.Second},
		Throttled:       Interval{15 * time.Second, 5 * time.Minute},
		Failing:         Interval{5 * time.Second, 2 * time.Minute},
		Overdue:         Interval{2 * time.Minute, 10 * time.Minute},
		Superseded:      Interval{10 * time.Minute, time.Hour},
		SubmittedWindow: 30 * time.Second,
		MinPollGap:      2 * time.Second,
		NotFoundGrace:   time.Minute,
		UnknownAfter:    5,
		MaxDuration:     30 * time.Minute,
		SubmitRetry:     Interval{2 * time.Second, time.Minute},
		Lookup:          Interval{5 * time.Second, 5 * time.Minute},
		LookupRetention: time.Hour,
		ProgressStep:    5,
		ProgressGap:     time.Second,
	}
}

// WithDefaults fills what is zero from [DefaultPolicy].
func (p Policy) WithDefaults() Policy {
	d := DefaultPolicy()
	intervals := []struct{ have, def *Interval }{
		{&p.Submitted, &d.Submitted}, {&p.Queued, &d.Queued}, {&p.Running, &d.Running},
		{&p.Throttled, &d.Throttled}, {&p.Failing, &d.Failing}, {&p.Overdue, &d.Overdue},
		{&p.Superseded, &d.Superseded}, {&p.SubmitRetry, &d.SubmitRetry}, {&p.Lookup, &d.Lookup},
	}
	for _, i := range intervals {
		if i.have.Base == 0 {
			i.have.Base = i.def.Base
		}
		if i.have.Cap == 0 {
			i.have.Cap = max(i.have.Base, i.def.Cap)
		}
	}
	durations := []struct{ have, def *time.Duration }{
		{&p.SubmittedWindow, &d.SubmittedWindow}, {&p.MinPollGap, &d.MinPollGap},
		{&p.NotFoundGrace, &d.NotFoundGrace}, {&p.MaxDuration, &d.MaxDuration},
		{&p.LookupRetention, &d.LookupRetention}, {&p.ProgressGap, &d.ProgressGap},
	}
	for _, v := range durations {
		if *v.have == 0 {
			*v.have = *v.def
		}
	}
	if p.UnknownAfter == 0 {
		p.UnknownAfter = d.UnknownAfter
	}
	if p.ProgressStep == 0 {
		p.ProgressStep = d.ProgressStep
	}
	return p
}
