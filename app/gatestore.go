package app

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Run follows the shared state and stores what this process decides, until the
// context ends and the last decisions are stored.
func (g *Gate) Run(ctx context.Context) error {
	return Loop{
		Name: "gate", Step: g.Step, Interval: g.cfg.Refresh, MaxBackoff: 2 * time.Second, Bell: g.changed, Env: g.deps.Env,
		Drain: func() { g.last(ctx) },
	}.Run(ctx)
}

// last stores what was decided since the last round.
func (g *Gate) last(ctx context.Context) {
	ctx, cancel := detached(ctx)
	defer cancel()
	if len(g.unsaved()) == 0 {
		return
	}
	if _, err := g.Step(ctx); err != nil {
		g.deps.Logger.Warn("the last changes of provider accounts are lost", "error", err)
	}
}

// Step stores what is pending and reads what the others have stored. It returns 0:
// there is always a next look.
func (g *Gate) Step(ctx context.Context) (int, error) {
	attend := g.attend(ctx)
	for range 3 { // a change that somebody else was faster than is made again on theirs
		if err := g.refresh(ctx); err != nil {
			return 0, errors.Join(attend, err)
		}
		done, err := g.store(ctx)
		if err != nil {
			return 0, errors.Join(attend, err)
		}
		if done {
			break
		}
	}
	return 0, attend
}

// attend counts the processes that share the limits.
func (g *Gate) attend(ctx context.Context) error {
	now := g.deps.Now()
	if now.Before(g.nextAttend) {
		return nil
	}
	n, err := g.deps.Health.AttendCalls(ctx, g.id, now, now.Add(-3*g.cfg.Attend))
	if err != nil {
		return fmt.Errorf("attend calls: %w", err)
	}
	g.nextAttend = now.Add(g.cfg.Attend)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.callers = max(1, n)
	return nil
}

// refresh reads what is stored and puts this process's pending changes on top.
func (g *Gate) refresh(ctx context.Context) error {
	g.mu.Lock()
	stamps := make(map[ports.AccountRef]uint64, len(g.accounts))
	for ref, a := range g.accounts {
		stamps[ref] = a.stamp
	}
	g.mu.Unlock()
	rows, err := g.deps.Health.AccountHealth(ctx)
	if err != nil {
		return fmt.Errorf("account health: %w", err)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, row := range rows {
		a := g.account(row.AccountRef)
		if a.stamp != stamps[row.AccountRef] {
			continue // this process has stored something since
		}
		a.row.Version, a.row.LastCallbackAt, a.row.UpdatedAt = row.Version, row.LastCallbackAt, row.UpdatedAt
		a.row.WebhookSilentSince = row.WebhookSilentSince
		g.rebase(a, row.Health)
	}
	return nil
}

// unsaved is a change on its way to the store.
type unsaved struct {
	row     ports.AccountHealth
	changes int
}

// store saves what is pending; false when somebody was faster.
func (g *Gate) store(ctx context.Context) (done bool, err error) {
	done = true
	for _, u := range g.unsaved() {
		saved, err := g.deps.Health.SaveAccountHealth(ctx, u.row, nil)
		if err != nil {
			return false, fmt.Errorf("save account health: %w", err)
		}
		done = done && saved
		if saved {
			g.saved(u)
		}
	}
	return done, nil
}

func (g *Gate) unsaved() []unsaved {
	g.mu.Lock()
	defer g.mu.Unlock()
	var list []unsaved
	for _, a := range g.accounts {
		if len(a.pending) > 0 && !a.asking {
			list = append(list, unsaved{row: a.row, changes: len(a.pending)})
		}
	}
	return list
}

// saved takes note of what the store has now. Changes that came meanwhile stay
// pending.
func (g *Gate) saved(u unsaved) {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account(u.row.AccountRef)
	a.pending = slices.Delete(a.pending, 0, u.changes)
	a.row.Version = u.row.Version + 1
	a.stamp++
	g.note(a, u.row.Health)
	a.stored = u.row.Health
}

// note reports a change that this process has stored, so that of all processes one
// tells it. mu is held.
func (g *Gate) note(a *gateAccount, stored domain.Health) {
	log := g.deps.Logger.With("provider", a.row.Provider, "account", a.row.AccountID)
	if from, to := a.stored.State(), stored.State(); from != to || a.stored.Reason != stored.Reason {
		g.deps.Metrics.Add(MetricBreakerMoves, 1, a.row.Provider, a.row.AccountID, string(to))
		switch to {
		case domain.BreakerOpen:
			log.Warn("a provider account is shut: its breaker opened", "reason", string(stored.Reason), "openings", stored.Opens, "probe_at", stored.Until)
		case domain.BreakerHalfOpen:
			log.Info("a provider account is probed", "reason", string(stored.Reason))
		case domain.BreakerClosed:
			log.Info("a provider account is open again: its breaker closed")
		}
	}
	switch {
	case stored.Quarantined() && !a.stored.Quarantined():
		log.Warn("a provider account is in quarantine: its answers are not understood", "answers", stored.Malformed, "sample", stored.Sample)
	case !stored.Quarantined() && a.stored.Quarantined():
		log.Info("a provider account has left quarantine")
	}
}

// gauges shows the state of an account as this process sees it. mu is held.
func (g *Gate) gauges(a *gateAccount) {
	state := map[domain.Breaker]float64{domain.BreakerHalfOpen: 1, domain.BreakerOpen: 2}[a.row.State()]
	quarantined := 0.
	if a.row.Quarantined() {
		quarantined = 1
	}
	g.deps.Metrics.Set(MetricBreaker, state, a.row.Provider, a.row.AccountID)
	g.deps.Metrics.Set(MetricQuarantined, quarantined, a.row.Provider, a.row.AccountID)
	g.deps.Metrics.Set(MetricConcurrency, float64(a.row.Limit), a.row.Provider, a.row.AccountID)
}
