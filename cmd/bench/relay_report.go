package main

import (
	"fmt"
	"os"
)

// finish fills the report.
func (s *relayRun) finish(r *report) error {
	lines, pids := s.system.commands()
	for _, l := range lines {
		r.ran(l)
	}
	r.ran("", pids...)
	r.ran(commandOf(s.cluster.PID()), s.cluster.PID())
	for _, pid := range s.broker.PIDs() {
		r.ran(commandOf(pid), pid)
	}
	r.ran(commandOf(os.Getpid()), os.Getpid())
	var drains []drained
	for _, rd := range s.rounds {
		r.Rounds = append(r.Rounds, rd)
		drains = append(drains, rd.Drain)
	}
	all := drains
	for name, d := range map[string]*drained{"hot_project": s.hot, "kill": s.kills} {
		if d != nil {
			all = append(all, *d)
			r.Details[name] = d
		}
	}
	repeats := 0
	for _, d := range all {
		r.Lost += int(d.Lost)
		r.Violations += d.Violations()
		repeats += d.Repeats
		if d.Example != "" {
			r.note("broken order: %s", d.Example)
		}
	}
	r.Details["repeats"] = repeats
	rates := each(drains, func(d drained) figure { return d.PerSecond })
	ours := r.ours("published_per_s", rates)
	r.line(fmt.Sprintf("rows of %d projects through %d relays", s.cmd.Projects, s.cmd.Relays), rates)
	floors := each(s.rounds, func(rd relayRound) figure {
		if rd.Peer == nil {
			return 0
		}
		return rd.Peer.PerSecond
	})
	r.peer(peerRocketMQ, floors, ours)
	r.peerLine(peerRocketMQ, "the broker's client alone, batches of 100, no database", "", floors)
	cost := map[string]figure{}
	for _, part := range []string{"relay", "broker", "postgres"} {
		cost[part] = median(each(drains, func(d drained) figure { return d.CPU[part] }))
	}
	r.Details["cpu_us_per_row"] = cost
	r.CPU = cost["relay"] + cost["postgres"]
	r.note("CPU per row: relay %v µs, PostgreSQL %v µs, broker %v µs", cost["relay"], cost["postgres"], cost["broker"])
	if s.hot != nil {
		r.Median.Ours["hot_published_per_s"] = s.hot.PerSecond
		r.note("one hot project: %v rows/s", s.hot.PerSecond)
	}
	if s.kills != nil {
		r.note("under %d kill -9: %v rows/s first to last, %d repeats, lost %d, out of order %d", s.kills.Kills, s.kills.PerSecond, s.kills.Repeats, s.kills.Lost, s.kills.Violations())
	}
	return nil
}
