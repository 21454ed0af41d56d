package domain

import "time"

// TakeProbe makes the next call the probe, whose answer is awaited for the lease.
// Whoever stores this first may call; false when there is nothing to probe now.
func (h Health) TakeProbe(now time.Time, create bool, lease time.Duration, p HealthPolicy) (Health, bool) {
	if !h.Admit(now, create, p).Probe {
		return h, false
	}
	if h.Breaker == BreakerOpen {
		h.Breaker = BreakerHalfOpen
	}
	h.ProbeUntil = now.Add(lease)
	return h, true
}

// DropProbe gives a probe back that was not called.
func (h Health) DropProbe() (Health, bool) {
	if h.ProbeUntil.IsZero() {
		return h, false
	}
	h.ProbeUntil = time.Time{}
	return h, true
}

// Open opens the breaker for a reason of the vendor's. One that is open already
// stays as it is, but a refused credential outweighs failures, and a person
// outweighs both. A failed probe opens it again, for longer.
func (h Health) Open(reason BreakerReason, probe bool, now time.Time, p HealthPolicy) (Health, bool) {
	switch h.State() {
	case BreakerOpen:
		if h.Reason == BreakerOperator || h.Reason == reason || reason != BreakerAuth {
			return h, false
		}
	case BreakerHalfOpen:
		if !probe {
			return h, false // an answer to a call from before it opened
		}
	case BreakerClosed:
	}
	h = h.probed(now, probe, p)
	h.Breaker, h.Reason, h.Opens = BreakerOpen, reason, h.Opens+1
	wait := p.Transport
	if reason == BreakerAuth {
		wait = p.Auth
	}
	h.Until = now.Add(wait.Backoff(h.Opens - 1))
	return h, true
}

// ProbeFailed notes that the probe got no usable answer: the breaker opens again,
// for longer and for the reason it had, and a quarantine goes on.
func (h Health) ProbeFailed(now time.Time, p HealthPolicy) (Health, bool) {
	if h.State() == BreakerHalfOpen {
		return h.Open(h.Reason, true, now, p)
	}
	if h.ProbeUntil.IsZero() {
		return h, false
	}
	return h.probed(now, true, p), true
}

// Answered notes that the probe got an answer which shows that the vendor is
// there. understood says that the answer made sense, too, which ends a quarantine.
func (h Health) Answered(understood bool, now time.Time, p HealthPolicy) (Health, bool) {
	if h.State() == BreakerClosed && !h.Quarantined() && h.ProbeUntil.IsZero() {
		return h, false
	}
	h = h.probed(now, true, p)
	if h.Breaker == BreakerHalfOpen {
		h = h.closed()
	}
	if understood {
		h = h.released()
	}
	return h, true
}

// probed ends a probe; an account in quarantine waits for the next one.
func (h Health) probed(now time.Time, probe bool, p HealthPolicy) Health {
	if !probe {
		return h
	}
	h.ProbeUntil = time.Time{}
	if h.Quarantined() {
		h.QuarantineUntil = now.Add(p.Quarantine)
	}
	return h
}

func (h Health) closed() Health {
	h.Breaker, h.Reason, h.Until, h.Opens = BreakerClosed, "", time.Time{}, 0
	return h
}

func (h Health) released() Health {
	h.QuarantinedAt, h.QuarantineUntil, h.Malformed, h.Sample = time.Time{}, time.Time{}, 0, ""
	return h
}

// Quarantine shuts the account after a number of answers in a row that made no
// sense; while it is in quarantine only the sample changes.
func (h Health) Quarantine(malformed int, sample string, now time.Time, p HealthPolicy) (Health, bool) {
	if h.Quarantined() {
		changed := sample != "" && sample != h.Sample
		if changed {
			h.Sample = sample
		}
		return h, changed
	}
	h.QuarantinedAt, h.QuarantineUntil, h.Malformed, h.Sample = now, now.Add(p.Quarantine), malformed, sample
	return h, true
}

// Throttle follows a vendor's "too many": no call before its wish, and half the
// calls at once, halved at most once per window. underway is how many calls all
// processes had at that moment. At a limit of one, which cannot be halved, a
// vendor without a wish is left alone for a window.
func (h Health) Throttle(wish time.Duration, underway int, now time.Time, p HealthPolicy) (Health, bool) {
	before := h
	if h.HalvedAt.IsZero() || !now.Before(h.HalvedAt.Add(p.Window)) {
		if h.Limit == 1 && wish <= 0 {
			wish = p.Window
		}
		from := underway
		if h.Limit > 0 {
			from = min(h.Limit, underway)
		}
		h.Limit, h.HalvedAt = max(1, from/2), now
	}
	if until := now.Add(wish); wish > 0 && until.After(h.ThrottledUntil) {
		h.ThrottledUntil = until
	}
	return h, h != before
}

// Grow allows one more call at once, some time after the last change of the
// limit, and ends the limit at the ceiling.
func (h Health) Grow(now time.Time, p HealthPolicy) (Health, bool) {
	if h.Limit == 0 || now.Before(h.HalvedAt.Add(p.Window)) || now.Before(h.GrownAt.Add(p.GrowEvery)) {
		return h, false
	}
	h.Limit, h.GrownAt = h.Limit+1, now
	if h.Limit >= p.Ceiling {
		h.Limit, h.HalvedAt, h.GrownAt = 0, time.Time{}, time.Time{}
	}
	return h, true
}

// OpenByHand shuts the account until a person closes it.
func (h Health) OpenByHand() Health {
	h.Breaker, h.Reason, h.Until, h.Opens, h.ProbeUntil = BreakerOpen, BreakerOperator, time.Time{}, 0, time.Time{}
	return h
}

// CloseByHand lets calls pass again, without a limit and without a wait; a
// quarantine stays.
func (h Health) CloseByHand() Health {
	h = h.closed()
	h.ProbeUntil, h.ThrottledUntil = time.Time{}, time.Time{}
	h.Limit, h.HalvedAt, h.GrownAt = 0, time.Time{}, time.Time{}
	return h
}

// ReleaseByHand ends a quarantine; the breaker stays as it is.
func (h Health) ReleaseByHand() Health {
	if h.Breaker != BreakerHalfOpen {
		h.ProbeUntil = time.Time{}
	}
	return h.released()
}
