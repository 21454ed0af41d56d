package main

// round is one pass over both sides. A part that did not run is absent.
type round struct {
	Intake   intakeFigures      `json:"intake"`
	Drain    drainFigures       `json:"drain"`
	Together togetherFigures    `json:"together"`
	Peers    map[string]peerRun `json:"peers"`
}

// peerRun is one run of a peer.
type peerRun struct {
	PerSecond figure `json:"per_s"`
	Clients   int    `json:"clients,omitempty"`
}

// intakeFigures: the callback role alone takes deliveries, as the peer alone
// inserts rows.
type intakeFigures struct {
	Acknowledged int                `json:"acknowledged"`
	PerSecond    figure             `json:"acknowledged_per_s"`
	Refused      int                `json:"refused"`
	Answer       quantiles          `json:"answer_ms"`
	CPU          map[string]cpuTime `json:"cpu_s"`
}

// drainFigures: the process role alone digests what intake left, as the peer
// alone works through its inbox.
type drainFigures struct {
	Transitions int                `json:"transitions"`
	PerSecond   figure             `json:"transitions_per_s"`
	CPU         map[string]cpuTime `json:"cpu_s"`
}

// togetherFigures: all roles at once, under full load.
type togetherFigures struct {
	Acknowledged       int                `json:"acknowledged"`
	AcknowledgedPerSec figure             `json:"acknowledged_per_s"`
	Transitions        int                `json:"transitions"`
	TransitionsPerSec  figure             `json:"transitions_per_s"`
	CPUPerDelivery     figure             `json:"cpu_us_per_delivery"`
	CPU                map[string]cpuTime `json:"cpu_s"`
}

// summarise puts medians, ratios and the table into the report.
func (c *converge) summarise(r *report) {
	for _, rd := range c.rounds {
		r.Rounds = append(r.Rounds, rd)
	}
	intake := each(c.rounds, func(rd round) figure { return rd.Intake.PerSecond })
	drain := each(c.rounds, func(rd round) figure { return rd.Drain.PerSecond })
	acknowledged := each(c.rounds, func(rd round) figure { return rd.Together.AcknowledgedPerSec })
	converged := each(c.rounds, func(rd round) figure { return rd.Together.TransitionsPerSec })
	inserts := each(c.rounds, func(rd round) figure { return rd.Peers[peerInsert].PerSecond })
	river := each(c.rounds, func(rd round) figure { return rd.Peers[peerRiver].PerSecond })
	burn := each(c.rounds, func(rd round) figure { return rd.Peers[peerRiverBurn].PerSecond })
	naive := each(c.rounds, func(rd round) figure { return rd.Peers[peerNaive].PerSecond })

	r.peer(peerInsert, inserts, r.ours("acknowledged_per_s", intake))
	transitions := r.ours("transitions_per_s", drain)
	r.peer(peerNaive, naive, transitions)
	r.peer(peerRiver, river, transitions)
	r.peer(peerRiverBurn, burn, transitions)
	r.ours("together_acknowledged_per_s", acknowledged)
	r.ours("together_transitions_per_s", converged)
	r.CPU = median(each(c.rounds, func(rd round) figure { return rd.Together.CPUPerDelivery }))
	r.Latency = &c.latency.quantiles
	r.Details["stream"] = c.latency

	r.line("acknowledged over HTTP, intake alone", intake)
	r.peerLine(peerInsert, "pgbench, one-row inserts, 32 connections", "≥ 0.7", inserts)
	r.line("transitions, inbox alone", drain)
	r.peerLine(peerNaive, "pgbench, one by one", "≥ 5", naive)
	r.peerLine(peerRiver, "River, jobs while others are inserted", "> 1", river)
	r.peerLine(peerRiverBurn, "River, jobs inserted before", "", burn)
	r.line("acknowledged, all roles at once", acknowledged)
	r.line("converged, all roles at once", converged)
	r.note("commit to stream at %v/s: %v ms (%d events on %d streams)", c.latency.Rate, c.latency.quantiles, c.latency.Events, c.latency.Streams)
	if c.cmd.Rate > 0 {
		r.Details["paced"] = c.steadily
		r.note("all roles at a pace: %v (goal p99 < 250)", c.steadily)
	}
	if c.broker != nil {
		r.Details["broker"] = *c.broker
		r.note("%v (goal p99 < 250)", *c.broker)
	}
	r.note("CPU per delivery, all roles and PostgreSQL: %v µs", r.CPU)
}
