package main

import (
	"context"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/adapters/breaker"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// HealthConfig says when a provider account is left alone; the same in every
// process. A process with other values follows what the others have decided.
type HealthConfig struct {
	// Failures in a row open the breaker, and so does FailureRatio of the calls within
	// FailureWindow, from MinCalls calls on.
	Failures      int           `yaml:"failures" env:"AIVEDIO_HEALTH_FAILURES"`
	FailureRatio  float64       `yaml:"failure_ratio" env:"AIVEDIO_HEALTH_FAILURE_RATIO"`
	FailureWindow time.Duration `yaml:"failure_window" env:"AIVEDIO_HEALTH_FAILURE_WINDOW"`
	MinCalls      int           `yaml:"min_calls" env:"AIVEDIO_HEALTH_MIN_CALLS"`
	// OpenFor is the wait for the first probe, which doubles up to OpenMost; AuthOpenFor
	// and AuthOpenMost are the same after a refused credential.
	OpenFor      time.Duration `yaml:"open_for" env:"AIVEDIO_HEALTH_OPEN_FOR"`
	OpenMost     time.Duration `yaml:"open_most" env:"AIVEDIO_HEALTH_OPEN_MOST"`
	AuthOpenFor  time.Duration `yaml:"auth_open_for" env:"AIVEDIO_HEALTH_AUTH_OPEN_FOR"`
	AuthOpenMost time.Duration `yaml:"auth_open_most" env:"AIVEDIO_HEALTH_AUTH_OPEN_MOST"`
	// ThrottleWindow is the least time between two halvings of the calls at once.
	ThrottleWindow time.Duration `yaml:"throttle_window" env:"AIVEDIO_HEALTH_THROTTLE_WINDOW"`
	// Malformed answers in a row begin a quarantine, probed every QuarantineProbe.
	Malformed       int           `yaml:"malformed" env:"AIVEDIO_HEALTH_MALFORMED"`
	QuarantineProbe time.Duration `yaml:"quarantine_probe" env:"AIVEDIO_HEALTH_QUARANTINE_PROBE"`
}

// defaultHealth is what holds where nothing is said.
func defaultHealth() HealthConfig {
	wire, gate := breaker.Config{}.WithDefaults(), app.GateConfig{}.WithDefaults()
	p := gate.Policy
	return HealthConfig{
		Failures: wire.Consecutive, FailureRatio: wire.Ratio, FailureWindow: wire.Window, MinCalls: wire.MinCalls,
		OpenFor: p.Transport.Base, OpenMost: p.Transport.Cap, AuthOpenFor: p.Auth.Base, AuthOpenMost: p.Auth.Cap,
		ThrottleWindow: p.Window, Malformed: gate.Malformed, QuarantineProbe: p.Quarantine,
	}
}

func (c HealthConfig) tripwire() breaker.Config {
	return breaker.Config{Consecutive: c.Failures, Ratio: c.FailureRatio, MinCalls: c.MinCalls, Window: c.FailureWindow}
}

func (c HealthConfig) gate() app.GateConfig {
	return app.GateConfig{Malformed: c.Malformed, Policy: domain.HealthPolicy{
		Transport: domain.Interval{Base: c.OpenFor, Cap: c.OpenMost}, Auth: domain.Interval{Base: c.AuthOpenFor, Cap: c.AuthOpenMost},
		Window: c.ThrottleWindow, Quarantine: c.QuarantineProbe,
	}}
}

// validate reports values that cannot be meant.
func (c HealthConfig) validate(bad func(string, ...any)) {
	if c.Failures < 1 || c.MinCalls < 1 || c.Malformed < 1 {
		bad("health: failures, min_calls and malformed must be at least 1")
	}
	if !(c.FailureRatio > 0 && c.FailureRatio <= 1) {
		bad("health.failure_ratio must be above 0 and at most 1")
	}
	if c.FailureWindow < time.Second || c.ThrottleWindow < time.Second || c.QuarantineProbe < time.Second || c.OpenFor < time.Second || c.AuthOpenFor < time.Second {
		bad("health: failure_window, throttle_window, quarantine_probe, open_for and auth_open_for must be at least 1s")
	}
	if c.OpenMost < c.OpenFor || c.AuthOpenMost < c.AuthOpenFor {
		bad("health: open_most must not be below open_for, nor auth_open_most below auth_open_for")
	}
}

// openGate makes the gate of a process that calls vendors. It reads what the others
// know before the first call, so that a restart opens nothing.
func (p *process) openGate(ctx context.Context) error {
	if !p.cfg.has(RoleSubmit) && !p.cfg.has(RolePoll) {
		return nil
	}
	var accounts []ports.AccountRef
	for _, name := range p.vendors.Names() {
		for _, a := range p.vendors.Accounts(name) {
			accounts = append(accounts, ports.AccountRef{Provider: name, AccountID: a.ID})
		}
	}
	var err error
	p.gate, err = app.NewGate(app.GateDeps{
		Env: p.env, Health: p.store, Accounts: accounts,
		NewTripwire: func() ports.Tripwire { return breaker.New(p.cfg.Health.tripwire()) },
	}, p.cfg.Health.gate())
	if err != nil {
		return err
	}
	if _, err := p.gate.Step(ctx); err != nil {
		return fmt.Errorf("health of provider accounts: %w", err)
	}
	return nil
}

// gateLoops keep the gate in step with the other processes.
func (p *process) gateLoops() []loop {
	if p.gate == nil {
		return nil
	}
	return []loop{{"gate", p.gate.Run, false}}
}
