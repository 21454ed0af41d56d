package main

import (
	"context"
	"fmt"

	"github.com/aivedio/aivedio/adapters/breaker"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/ports"
)

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
		NewTripwire: func() ports.Tripwire { return breaker.New(breaker.Config{}) },
	}, app.GateConfig{})
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
