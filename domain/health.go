package domain

import "time"

// Breaker says whether a provider account may be called.
type Breaker string

// The states of a breaker.
const (
	// BreakerClosed lets calls pass.
	BreakerClosed Breaker = "closed"
	// BreakerOpen lets none pass until its time has come.
	BreakerOpen Breaker = "open"
	// BreakerHalfOpen lets one call pass, the probe, whose answer decides.
	BreakerHalfOpen Breaker = "half_open"
)

// BreakerReason says why a breaker is not closed.
type BreakerReason string

// The reasons of a breaker.
const (
	// BreakerTransport: too many calls got no usable answer.
	BreakerTransport BreakerReason = "transport"
	// BreakerAuth: the vendor refused the credential.
	BreakerAuth BreakerReason = "auth"
	// BreakerOperator: a person opened it; only a person closes it.
	BreakerOperator BreakerReason = "operator"
)

// Health is what all processes know of one provider account. The zero value,
// with its breaker completed by [Health.State], is an account of which nothing
// bad is known. It is a value: every change returns a new one, and says whether
// anything changed, so that a change can be repeated on a row that somebody else
// has changed meanwhile.
type Health struct {
	// Breaker is closed when empty.
	Breaker Breaker
	Reason  BreakerReason
	// Until is when an open breaker may be probed; zero when a person must close it.
	Until time.Time
	// Opens is how often it opened since it was last closed by an answer.
	Opens int
	// ProbeUntil is when the probe under way counts as lost; zero when there is none.
	ProbeUntil time.Time

	// Limit is how many calls all processes together may have under way; 0 for no
	// limit. HalvedAt and GrownAt are its last changes.
	Limit    int
	HalvedAt time.Time
	GrownAt  time.Time
	// ThrottledUntil is when the vendor wants to be called again.
	ThrottledUntil time.Time

	// QuarantinedAt is when the vendor's answers stopped being understood; zero when
	// they are. QuarantineUntil is when the next call may try.
	QuarantinedAt   time.Time
	QuarantineUntil time.Time
	// Malformed is how many answers in a row led there; Sample the shape of the last:
	// names of keys, no values.
	Malformed int
	Sample    string
}

// State is the breaker, closed when nothing is known.
func (h Health) State() Breaker {
	if h.Breaker == "" {
		return BreakerClosed
	}
	return h.Breaker
}

// Quarantined reports whether the account's answers are not understood.
func (h Health) Quarantined() bool { return !h.QuarantinedAt.IsZero() }

// HealthPolicy says how an account's health reacts. The zero value is completed
// by [HealthPolicy.WithDefaults].
type HealthPolicy struct {
	// Transport and Auth space the probes of an open breaker: the wait doubles with
	// every opening in a row.
	Transport Interval
	Auth      Interval
	// SubmitLag is how much later than a query a create may be the probe: a create
	// without an answer needs a person, a query does not.
	SubmitLag time.Duration
	// Window is the least time between two halvings of the limit; one more call per
	// GrowEvery is allowed afterwards, up to Ceiling, where the limit ends.
	Window    time.Duration
	GrowEvery time.Duration
	Ceiling   int
	// Quarantine is the time between two probes of a quarantined account.
	Quarantine time.Duration
}

// WithDefaults returns a copy with every zero field set: 15 s to 5 min after
// failures, 1 min to 1 h after a refused credential, creates probe 15 s after
// queries; halved at most every 10 s, one more every 2 s up to 256; quarantine
// probed every 5 min.
func (p HealthPolicy) WithDefaults() HealthPolicy {
	if p.Transport == (Interval{}) {
		p.Transport = Interval{15 * time.Second, 5 * time.Minute}
	}
	if p.Auth == (Interval{}) {
		p.Auth = Interval{time.Minute, time.Hour}
	}
	for _, d := range []struct {
		have *time.Duration
		def  time.Duration
	}{{&p.SubmitLag, 15 * time.Second}, {&p.Window, 10 * time.Second}, {&p.GrowEvery, 2 * time.Second}, {&p.Quarantine, 5 * time.Minute}} {
		if *d.have == 0 {
			*d.have = d.def
		}
	}
	if p.Ceiling == 0 {
		p.Ceiling = 256
	}
	return p
}

// Admission says whether a call may be made now.
type Admission struct {
	// Free: it may. Probe: one call may, after [Health.TakeProbe] was stored.
	// Neither: the account is shut.
	Free  bool
	Probe bool
	// Until is when to look again at a shut account; zero when only a person opens it.
	Until time.Time
}

// Admit decides on a call at now. create says that it is a vendor's create.
func (h Health) Admit(now time.Time, create bool, p HealthPolicy) Admission {
	state := h.State()
	shut := func(until time.Time) Admission { return Admission{Until: until} }
	switch {
	case state == BreakerOpen && h.Until.IsZero():
		return shut(time.Time{})
	case now.Before(h.ThrottledUntil):
		return shut(h.ThrottledUntil)
	case state == BreakerClosed && !h.Quarantined():
		return Admission{Free: true}
	}
	ready := h.QuarantineUntil // zero unless quarantined
	if state == BreakerOpen && h.Until.After(ready) {
		ready = h.Until
	}
	if create && !ready.IsZero() {
		ready = ready.Add(p.SubmitLag)
	}
	if h.ProbeUntil.After(ready) {
		ready = h.ProbeUntil
	}
	if now.Before(ready) {
		return shut(ready)
	}
	return Admission{Probe: true}
}
