package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// String is a line for a person.
func (ph pollPhase) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %v queries/s, worst second %d of %d", ph.Name, ph.PerSecond, ph.WorstSecond, ph.Quota)
	if l := ph.Leases; l != nil {
		fmt.Fprintf(&b, ", lag %v ms, %v", *ph.Lag, l)
	}
	if f := ph.Fair; f != nil {
		fmt.Fprintf(&b, ", gap median %v s, max %v s (× %v), lag in ms by third of the time: %v", f.Median, f.Max, f.Ratio, f.Lag)
	}
	if a := ph.Alone; a != nil {
		fmt.Fprintf(&b, ", %v/s with Redis, %v/s without, %v/s with it again", a.Before, a.During, a.After)
	}
	if d := ph.Death; d != nil {
		fmt.Fprintf(&b, ", the dead worker held %d, taken over %d, the last after %v s", d.Held, d.TakenOver, d.Last)
	}
	b.WriteString(", CPU in µs per query:")
	for _, name := range slices.Sorted(maps.Keys(ph.PerQuery)) {
		fmt.Fprintf(&b, " %s %v", name, ph.PerQuery[name])
	}
	return b.String()
}

// summarise puts medians, ratios and the table into the report, and every broken
// promise into its verdict.
func (p *poll) summarise(r *report) {
	for _, ph := range p.phases {
		r.Rounds = append(r.Rounds, ph)
		r.note("%s", ph)
		p.judge(r, ph)
		switch ph.Name {
		case partRest:
			r.Latency = ph.Lag
			r.ours("at_rest_queries_per_s", []figure{ph.PerSecond})
		case partFlood:
			r.peer(peerClaim, p.claims, r.ours("queries_per_s", []figure{ph.PerSecond}))
			r.line("queries, all tasks due at once", []figure{ph.PerSecond})
			r.peerLine(peerClaim, "pgbench, claim and release one by one, without a query", "", p.claims)
			for name, used := range ph.PerQuery {
				r.ours(name+"_cpu_us_per_query", []figure{used})
			}
		}
	}
	r.note("lag: from the timer that was claimed to the arrival at the vendor, by the vendor's log and a trace of the leases")
}

// judge counts what must never happen.
func (p *poll) judge(r *report, ph pollPhase) {
	broken := func(n int, what string) {
		if n > 0 {
			r.Violations += n
			r.faults = append(r.faults, invalid("%s: %d %s", ph.Name, n, what))
		}
	}
	broken(ph.Over, "queries above the vendor's quota")
	if l := ph.Leases; l != nil {
		broken(l.Repeated, "queries repeated within a lease")
		broken(l.Stolen, "attempts leased while another's lease ran")
		broken(l.Unclaimed, "queries without a lease")
	}
	if d := ph.Death; d != nil {
		broken(d.Early, "attempts of the dead worker taken over before their lease had ended")
		broken(d.Held-d.TakenOver, "attempts of the dead worker that nobody took over")
	}
}
