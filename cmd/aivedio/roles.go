package main

import (
	"context"
	"errors"

	"github.com/aivedio/aivedio/app"
)

// loop is one running part of a process.
type loop struct {
	name string
	run  func(context.Context) error
	// outward loops call vendors. They take nothing new from the beginning of a stop,
	// so that what is under way has the more time.
	outward bool
}

// loops builds the background work of the configured roles.
func (p *process) loops() ([]loop, error) {
	builders := []struct {
		role  Role
		build func() ([]loop, error)
	}{
		{RoleSubmit, p.submitLoops}, {RoleProcess, p.processLoops}, {RolePoll, p.pollLoops}, {RoleRelay, p.relayLoops},
		{RoleDispatch, p.dispatchLoops}, {RoleMedia, p.mediaLoops}, {RoleSweep, p.sweepLoops},
	}
	var all []loop
	var faults []error
	for _, b := range builders {
		if !p.cfg.has(b.role) {
			continue
		}
		built, err := b.build()
		faults = append(faults, err)
		all = append(all, built...)
	}
	if p.cfg.has(RoleProcess) || p.cfg.has(RolePoll) {
		all = append(all, loop{"webhooks", p.env.Webhooks.Run, false})
	}
	return append(all, p.gateLoops()...), errors.Join(faults...)
}

// outward is what loops get that call vendors: they stop first, and so have the
// time that the others wait for their turn. A create that is cut is an unknown
// submit.
func (p *process) outward() app.Env {
	env := p.env
	env.StopGrace = p.cfg.StopTimeout * 2 / 3
	return env
}

// submitLoops is the only place that gives a part the power to create (I8).
func (p *process) submitLoops() ([]loop, error) {
	cfg := p.cfg.Work.submitter()
	cfg.Quota = p.cfg.submitQuota()
	cfg.CallbackBase = p.cfg.PublicURL
	s, err := app.NewSubmitter(app.SubmitterDeps{Env: p.outward(), Transitions: p.store, Work: p.store, Providers: p.providers, Tokens: p.tokens, Quota: p.quota, Gate: p.gate}, cfg)
	if err != nil {
		return nil, err
	}
	return []loop{{"submit", s.Run, true}}, nil
}

func (p *process) processLoops() ([]loop, error) {
	w, err := app.NewProcess(app.ProcessDeps{Env: p.env, Inbox: p.store, Vendors: p.vendors}, app.ProcessConfig{Workers: p.cfg.Work.Processors})
	if err != nil {
		return nil, err
	}
	return []loop{{"process", w.Run, false}}, nil
}

// pollLoops queries vendors and carries out cancellations: both only ask.
func (p *process) pollLoops() ([]loop, error) {
	q, err := app.NewPoll(app.PollDeps{
		Env: p.outward(), Transitions: p.store, Work: p.store, Vendors: p.vendors, Quota: p.quota, Gate: p.gate, Durations: p.store, Due: p.due,
	}, app.PollConfig{Concurrency: p.cfg.Work.Polls, Quota: p.cfg.queryQuota()})
	if err != nil {
		return nil, err
	}
	c, err := app.NewCancelSender(app.CancelSenderDeps{Env: p.outward(), Transitions: p.store, Work: p.store, Vendors: p.vendors, Gate: p.gate}, app.CancelSenderConfig{})
	if err != nil {
		return nil, err
	}
	return []loop{{"poll", q.Run, true}, {"cancel", c.Run, true}}, nil
}

func (p *process) relayLoops() ([]loop, error) {
	r, err := app.NewRelay(app.RelayDeps{Env: p.env, Outbox: p.store, Desk: p.store, Bus: p.bus}, app.RelayConfig{})
	if err != nil {
		return nil, err
	}
	return []loop{{"relay", r.Run, false}}, nil
}

func (p *process) dispatchLoops() ([]loop, error) {
	d, err := app.NewDispatch(app.DispatchDeps{Env: p.env, Bus: p.bus, Notifier: p.notifier}, app.DispatchConfig{})
	if err != nil {
		return nil, err
	}
	return []loop{{"dispatch", d.Run, false}}, nil
}

func (p *process) mediaLoops() ([]loop, error) {
	cfg := p.cfg.Work.media()
	cfg.MaxBytes = p.cfg.Media.MaxBytes
	m, err := app.NewMedia(app.MediaDeps{Env: p.outward(), Transitions: p.store, Work: p.store, Vendors: p.vendors, Media: p.media, Downloader: p.downloader()}, cfg)
	if err != nil {
		return nil, err
	}
	return []loop{{"media", m.Run, true}}, nil
}

func (p *process) sweepLoops() ([]loop, error) {
	s, err := app.NewSweep(app.SweepDeps{Env: p.env, Transitions: p.store, Inbox: p.store, Work: p.store, Desk: p.store, Log: p.store, Durations: p.store, Vendors: p.vendors}, app.SweepConfig{})
	if err != nil {
		return nil, err
	}
	return []loop{{"sweep", s.Run, false}}, nil
}
