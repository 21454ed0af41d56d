package capacity

import "math"

// RoleCount is how many processes of a role a load takes.
type RoleCount struct {
	// Role is as in `aivedio serve --roles`.
	Role      string `json:"role"`
	Processes int    `json:"processes"`
	// Cores is the CPU of all of them together at the peak; 0 when no unit cost
	// is known for the role.
	Cores float64 `json:"cores"`
	// Formula is how both came about.
	Formula string `json:"formula"`
}

// work is what a role does at the peak.
type work struct {
	role, what string  // what is counted, with "/s"
	perS       float64 // units per second
	cpu        float64 // µs of CPU for a unit
	rate       float64 // units per second that one machine was seen to do; 0 if unknown
}

// roles counts every role. The events all count as callbacks and as transitions:
// those that a query finds instead cost a query and no callback.
func roles(l Load, c Costs, d demand) []RoleCount {
	spare := min(2, l.Nodes)
	counts := []RoleCount{
		c.count(spare, work{"callback", "callbacks/s", d.eventsPeak, c.CPUPerCallback.Value, c.CallbacksPerS.Value}),
		c.count(spare, work{"process", "transitions/s", d.eventsPeak, c.CPUPerTransition.Value, c.TransitionsPerS.Value}),
		c.count(spare, work{"poll", "queries/s inside the quota", min(d.queriesPeak, l.VendorQuota), c.CPUPerQuery.Value, 0}),
		c.count(spare, work{"relay", "outbox rows/s", d.eventsPeak, c.CPUPerPublished.Value, c.PublishedPerS.Value}),
		c.gateways(l, d),
	}
	for _, role := range []string{"api", "submit", "dispatch", "media", "sweep"} {
		counts = append(counts, RoleCount{Role: role, Processes: spare, Formula: formulaOf("%s, so that one may be lost; no unit cost known", []any{spare})})
	}
	return counts
}

// count is the larger of what the CPU and what the measured rate ask for.
func (c Costs) count(least int, w work) RoleCount {
	cores := w.perS * w.cpu / 1e6
	n := max(least, c.processes(cores))
	formula := formulaOf("%s %s × %s µs, on %s cores at %s", []any{w.perS, w.what, w.cpu, c.Machine.CPUs, percent(room)})
	if w.rate > 0 {
		n = max(n, int(math.Ceil(w.perS/(w.rate*room))))
		formula += formulaOf(", %s/s seen", []any{w.rate})
	}
	return RoleCount{Role: w.role, Processes: n, Cores: cores, Formula: formula + formulaOf("; at least %s", []any{least})}
}

// processes is how many machines' worth of usable CPU the cores are.
func (c Costs) processes(cores float64) int {
	return int(math.Ceil(cores / (float64(c.Machine.CPUs) * room)))
}

// gateways come in equal numbers to each node: as many as the file descriptors
// need while one node is away.
func (c Costs) gateways(l Load, d demand) RoleCount {
	frames := d.deliveries + d.heartbeats
	cores := frames * c.CPUPerDelivery.Value / 1e6
	per := max(1, int(math.Ceil(float64(d.perNodeLost)/c.ConnectionsPerProcess.Value)))
	return RoleCount{
		Role: "gateway", Processes: max(l.Nodes*per, c.processes(cores)), Cores: cores,
		Formula: formulaOf("%s nodes × %s (%s streams with one node lost, %s fit in a process); %s frames/s × %s µs",
			[]any{l.Nodes, per, d.perNodeLost, c.ConnectionsPerProcess.Value, frames, c.CPUPerDelivery.Value}),
	}
}
