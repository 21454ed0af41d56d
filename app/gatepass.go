package app

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// pass is the permission for one call of a vendor. A nil pass does nothing.
type pass struct {
	gate  *Gate
	ref   ports.AccountRef
	probe bool
}

// done reports how the call ended. A call that our own stop has cut says nothing
// about the vendor.
func (p *pass) done(ctx context.Context, err error) {
	switch {
	case p == nil:
	case err != nil && ctx.Err() != nil:
		p.drop()
	default:
		p.gate.report(p, err)
	}
}

// drop ends a pass under which nothing was called.
func (p *pass) drop() {
	if p == nil {
		return
	}
	g := p.gate
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account(p.ref)
	a.inFlight--
	if p.probe {
		g.change(a, domain.Health.DropProbe)
	}
}

// report draws the consequences of a call.
func (g *Gate) report(p *pass, err error) {
	now, policy := g.deps.Now(), g.cfg.Policy
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account(p.ref)
	underway := a.inFlight * g.callers
	a.inFlight--
	if err == nil {
		g.succeeded(a, p.probe, now)
		return
	}
	failure := providerError(err)
	switch failure.Class {
	case ports.ClassTransport:
		g.failed(a, p.probe, now)
	case ports.ClassAuth:
		g.change(a, func(h domain.Health) (domain.Health, bool) { return h.Open(domain.BreakerAuth, p.probe, now, policy) })
	case ports.ClassThrottled:
		g.answered(a, p.probe, false, now)
		g.deps.Metrics.Add(MetricThrottles, 1, a.row.Provider, a.row.AccountID)
		g.change(a, func(h domain.Health) (domain.Health, bool) {
			return h.Throttle(failure.RetryAfter, underway, now, policy)
		})
	case ports.ClassMalformed:
		g.answered(a, p.probe, false, now)
		g.misunderstood(a, failure.Shape, now)
	case ports.ClassNotFound, ports.ClassRejected:
		g.answered(a, p.probe, false, now)
	}
}

// answered: the vendor is there, whatever it said. mu is held.
func (g *Gate) answered(a *gateAccount, probe, understood bool, now time.Time) {
	a.tripwire.Report(true)
	if probe {
		g.change(a, func(h domain.Health) (domain.Health, bool) { return h.Answered(understood, now, g.cfg.Policy) })
	}
}

// succeeded: the answer made sense, too. mu is held.
func (g *Gate) succeeded(a *gateAccount, probe bool, now time.Time) {
	a.malformed = 0
	g.answered(a, probe, true, now)
	if a.row.Limit == 0 {
		return
	}
	if a.successes++; a.successes < g.share(a) {
		return
	}
	if g.change(a, func(h domain.Health) (domain.Health, bool) { return h.Grow(now, g.cfg.Policy) }) {
		a.successes = 0
	}
}

// failed: no usable answer. mu is held.
func (g *Gate) failed(a *gateAccount, probe bool, now time.Time) {
	tripped := a.tripwire.Report(false)
	if probe {
		g.change(a, func(h domain.Health) (domain.Health, bool) { return h.ProbeFailed(now, g.cfg.Policy) })
	}
	if tripped {
		g.change(a, func(h domain.Health) (domain.Health, bool) {
			return h.Open(domain.BreakerTransport, false, now, g.cfg.Policy)
		})
	}
}

// misunderstood counts an answer that makes no sense. mu is held.
func (g *Gate) misunderstood(a *gateAccount, shape string, now time.Time) {
	a.malformed++
	if n := a.malformed; n >= g.cfg.Malformed {
		g.change(a, func(h domain.Health) (domain.Health, bool) { return h.Quarantine(n, shape, now, g.cfg.Policy) })
	}
}

// change applies a change here at once and leaves it to the loop to store it. mu is
// held.
func (g *Gate) change(a *gateAccount, f healthChange) bool {
	next, changed := f(a.row.Health)
	if !changed {
		return false
	}
	g.become(a, next)
	a.pending = append(a.pending, f)
	g.changed.Ring()
	return true
}

// rebase takes over what is stored, with the pending changes made on it anew. mu is
// held.
func (g *Gate) rebase(a *gateAccount, stored domain.Health) {
	a.stored = stored
	for _, f := range a.pending {
		stored, _ = f(stored)
	}
	g.become(a, stored)
}

// become takes a health over. What this process has counted ends with the breaker
// or the quarantine that it led to. mu is held.
func (g *Gate) become(a *gateAccount, next domain.Health) {
	if next.State() != a.row.State() {
		a.tripwire.Reset()
	}
	if a.row.Quarantined() && !next.Quarantined() {
		a.malformed = 0
	}
	a.row.Health = next
	g.gauges(a)
}
