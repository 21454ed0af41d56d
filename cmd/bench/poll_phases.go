package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/leasewatch"
	"github.com/aivedio/aivedio/internal/simulator"
)

// pollPhase is one part of the run. Every part starts its workers and stops them
// in order, so what the vendor saw and what was leased are complete.
type pollPhase struct {
	Name string `json:"name"`
	// Seconds is how long the workers were watched, without their start and stop.
	Seconds figure `json:"seconds"`
	// Quota is the vendor's, Limit what the workers were told.
	Quota int    `json:"quota"`
	Limit figure `json:"limit_per_s"`
	// Queries are all that arrived at the vendor, PerSecond those that did while the
	// workers were watched.
	Queries   int    `json:"queries"`
	PerSecond figure `json:"queries_per_s"`
	// The worst windows at the vendor, and the calls above its quota.
	WorstSecond int `json:"worst_second"`
	WorstBurst  int `json:"worst_100ms"`
	Over        int `json:"over"`
	// Leases and Lag are absent where leases were not watched. The lag is from the
	// time a query was due to its arrival at the vendor.
	Leases *leasewatch.Findings `json:"leases,omitempty"`
	Lag    *quantiles           `json:"lag_ms,omitempty"`
	// CPU is in seconds by process, PerQuery in µs: of the workers, the database and
	// the vendor.
	CPU      map[string]cpuTime `json:"cpu_s"`
	PerQuery map[string]figure  `json:"cpu_us_per_query"`
	// Fair is there where the quota was too little, Alone where Redis went away, Death
	// where a worker was killed.
	Fair  *fairness `json:"fairness,omitempty"`
	Alone *alone    `json:"alone,omitempty"`
	Death *death    `json:"death,omitempty"`
}

// fairness says how the lack was shared out.
type fairness struct {
	// Median and Max are the time between two queries of a task, in s; a task that
	// waits counts with its wait so far.
	Median figure `json:"gap_median_s"`
	Max    figure `json:"gap_max_s"`
	Ratio  figure `json:"max_to_median"`
	// Lag is that of the first, the second and the last third of the time.
	Lag []quantiles `json:"lag_by_third_ms"`
}

// pollPart says how a phase is run.
type pollPart struct {
	name  string
	quota int
	due   string // the timers at the start
	// watched: leases are written down, which costs PostgreSQL an insert each; it is
	// off where CPU is compared.
	watched bool
	// fair asks how the lack was shared out.
	fair bool
	// watch returns when enough was seen; nil waits for the time of the part.
	watch func(context.Context) error
	time  time.Duration
}

// The parts, in their order.
const (
	partRest   = "rest"
	partFlood  = "flood"
	partScarce = "scarce"
	partAlone  = "alone"
	partKilled = "killed"
)

// pollParts are the names that --parts takes.
var pollParts = []string{partRest, partFlood, partScarce, partAlone, partKilled}

// run goes through the parts, the peer around the one that it is compared with.
func (p *poll) run(ctx context.Context) error {
	for _, name := range pollParts {
		if !slices.Contains(p.cmd.Parts, name) {
			continue
		}
		how := pollPart{name: name, quota: p.cmd.Quota, due: dueSpread, watched: true, time: p.seconds()}
		run := p.part
		switch name {
		case partFlood:
			how.due, how.watched, how.watch = dueAtOnce, false, p.awaitFlood
			run = p.besidePeer
		case partScarce:
			how.quota, how.fair = p.cmd.Scarce, true
		case partAlone:
			how.quota, how.due, how.watch = p.cmd.Scarce, dueAtOnce, p.loseRedis
		case partKilled:
			how.due, how.watch = dueAtOnce, p.killOne
		}
		if err := run(ctx, how); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// besidePeer runs a part between two runs of the peer.
func (p *poll) besidePeer(ctx context.Context, how pollPart) error {
	if err := p.claim(ctx); err != nil {
		return err
	}
	if err := p.part(ctx, how); err != nil {
		return err
	}
	return p.claim(ctx)
}

// part runs one part and keeps what it found.
func (p *poll) part(ctx context.Context, how pollPart) error {
	p.std.say("%s, quota %d/s", how.name, how.quota)
	allowed := p.cmd.limit(how.quota)
	phase := pollPhase{Name: how.name, Quota: how.quota, Limit: figure(allowed.perSecond)}
	err := errors.Join(p.leases.Begin(ctx, how.watched), p.timers(ctx, how.due), p.vendor.allow(ctx, how.quota))
	if err == nil {
		err = p.workers.start(ctx, p.cmd.Workers, allowed)
	}
	if err == nil {
		err = p.watch(ctx, how, &phase)
	}
	end := time.Now()
	if err == nil {
		err = p.workers.stop()
	}
	if err == nil {
		err = p.evaluate(ctx, how, &phase, end)
	}
	if err != nil {
		return err
	}
	p.phases = append(p.phases, phase)
	p.std.say("  %s", phase)
	return nil
}

// watch measures rate and CPU while the workers work.
func (p *poll) watch(ctx context.Context, how pollPart, phase *pollPhase) error {
	before, err := p.vendor.usage(ctx)
	if err != nil {
		return err
	}
	cpu, began := startCPU(p.parts()), time.Now()
	watch := how.watch
	if watch == nil {
		watch = func(ctx context.Context) error { return pause(ctx, how.time) }
	}
	if err := watch(ctx); err != nil {
		return err
	}
	phase.CPU = cpu.stop()
	after, err := p.vendor.usage(ctx)
	if err != nil {
		return err
	}
	took, queries := time.Since(began), after.Accepted-before.Accepted
	if queries == 0 {
		return invalid("%s: the vendor was not asked at all", how.name)
	}
	phase.Seconds, phase.PerSecond = figure(took.Seconds()), perSecond(queries, took)
	phase.PerQuery = map[string]figure{}
	for name, used := range phase.CPU {
		if name != "postgres" && name != "vendor" {
			name = "workers"
		}
		phase.PerQuery[name] += used * 1e6 / figure(queries)
	}
	return nil
}

// pause waits.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// awaitFlood returns when as many queries were sent as there are tasks, but
// for the last hundredth, in which workers wait for one another.
func (p *poll) awaitFlood(ctx context.Context) error {
	return p.awaitQueries(ctx, p.cmd.Tasks*99/100)
}

// awaitQueries returns when the vendor has seen so many.
func (p *poll) awaitQueries(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		seen, err := p.vendor.usage(ctx)
		if err != nil || seen.Accepted >= n {
			return err
		}
		if err := pause(ctx, 50*time.Millisecond); err != nil {
			return invalid("the vendor saw %d queries instead of %d in %s", seen.Accepted, n, patience)
		}
	}
}

// evaluate holds the vendor's log against the claims.
func (p *poll) evaluate(ctx context.Context, how pollPart, phase *pollPhase, end time.Time) error {
	seen, err := p.vendor.usage(ctx)
	if err != nil {
		return err
	}
	phase.Queries, phase.Over = seen.Accepted, seen.Over
	phase.WorstSecond, phase.WorstBurst = seen.WorstSecond, seen.WorstBurst
	queries, err := p.vendor.queries(ctx)
	if err != nil {
		return err
	}
	waits := gaps(p.asked, queries, end)
	if !how.watched {
		return nil
	}
	log, err := p.leases.Read(ctx)
	if err != nil {
		return err
	}
	found := log.Match(queries)
	lag := quantilesOf(lagsIn(found.Lags, time.Time{}, end))
	phase.Leases, phase.Lag = &found, &lag
	if how.fair {
		phase.Fair = fair(waits, found.Lags, end)
	}
	if p.outage != nil {
		phase.Alone, p.outage = p.outage.of(queries), nil
	}
	if p.killed != nil {
		phase.Death = p.killed.end(log.Of)
		p.killed = nil
	}
	return nil
}

// fair sums up waits, which are sorted and in ms; a job that was never asked for
// before has none.
func fair(waits []figure, lags []leasewatch.Lag, end time.Time) *fairness {
	f := &fairness{}
	if len(waits) > 0 {
		f.Median, f.Max = percentile(waits, 50)/1000, waits[len(waits)-1]/1000
		f.Ratio = f.Max / f.Median
	}
	if len(lags) > 0 {
		first := slices.MinFunc(lags, func(a, b leasewatch.Lag) int { return a.At.Compare(b.At) }).At
		third := end.Sub(first) / 3
		for n := range time.Duration(3) {
			f.Lag = append(f.Lag, quantilesOf(lagsIn(lags, first.Add(n*third), first.Add((n+1)*third))))
		}
	}
	return f
}

// lagsIn are those, in ms, of the queries that arrived in the time.
func lagsIn(all []leasewatch.Lag, from, to time.Time) []figure {
	var in []figure
	for _, l := range all {
		if !l.At.Before(from) && l.At.Before(to) {
			in = append(in, milliseconds(l.Late))
		}
	}
	return in
}

// gaps are between a job's queries, sorted and in ms, for those that ended in the
// phase; a job that still waits counts with its wait so far. before holds the last
// query of each job ahead of the phase and is brought up to date.
func gaps(before map[string]int64, queries []simulator.QueryEntry, end time.Time) []figure {
	var all []figure
	gap := func(from, to int64) { all = append(all, milliseconds(time.Duration(to-from))) }
	last := maps.Clone(before)
	for _, q := range queries {
		if at, ok := last[q.Job]; ok {
			gap(at, q.At)
		}
		last[q.Job] = q.At
	}
	for job, at := range last {
		if before[job] == at { // not asked for in the phase at all
			gap(at, end.UnixNano())
		}
		before[job] = at
	}
	slices.Sort(all)
	return all
}
