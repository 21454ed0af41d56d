package capacity

// The codes of warnings.
const (
	WarnQuota       = "quota_exceeded"
	WarnQuotaPeak   = "quota_exceeded_at_peak"
	WarnOneNode     = "one_node"
	WarnDescriptors = "file_descriptors"
	WarnMemory      = "memory"
	WarnMemoryCost  = "memory_above_plan"
	WarnMachines    = "machines"
	WarnDatabase    = "database"
	WarnUnmeasured  = "unmeasured_costs"
)

// warnings says what does not fit and what to do about it.
func warnings(l Load, c Costs, d demand, machines int) []Warning {
	var found []Warning
	warn := func(when bool, code, text string, args ...any) {
		if when {
			found = append(found, Warning{Code: code, Text: formulaOf(text, args)})
		}
	}
	warn(d.queries > l.VendorQuota, WarnQuota,
		"%s queries/s do not fit a quota of %s/s: poll every %s s or slower on average, or let webhooks replace at least %s of the queries, or both; lengthen the interval by status, spread with jitter, limit per tenant, vendor, model and in all, and query watched and nearly done tasks first without starving the rest",
		d.queries, l.VendorQuota, atLeast(d.inFlight/l.VendorQuota), percent(webhookShare(l, d.queries)))
	warn(d.queriesPeak > l.VendorQuota, WarnQuotaPeak,
		"a peak that outlasts a task (%s s) brings %s tasks in flight and %s queries/s: inside the quota of %s/s that is one query every %s s, or webhooks for at least %s",
		l.MeanDuration, d.inFlightPeak, d.queriesPeak, l.VendorQuota, atLeast(d.inFlightPeak/l.VendorQuota), percent(webhookShare(l, d.queriesPeak)))
	warn(l.Nodes == 1, WarnOneNode, "one node has nowhere to send its streams during a release or after a fault: plan at least 2")
	warn(float64(d.perNodeLost) > c.ConnectionsPerProcess.Value, WarnDescriptors,
		"with one node lost a node has %s streams and a process takes %s: run more than one gateway process on a node as counted here, raise the limit of open files and measure again, or plan %s nodes",
		d.perNodeLost, c.ConnectionsPerProcess.Value, nodesFor(l, c.ConnectionsPerProcess.Value))
	warnMemory(l, c, d, warn)
	warn(machines > l.Nodes, WarnMachines, "%s nodes have not enough CPU at the peak: the placement has %s machines", l.Nodes, machines)
	warn(databaseLoad(c, d) > room, WarnDatabase,
		"ingest and state take %s of one PostgreSQL machine like the unit costs', and %s is what a plan uses: more processes do not help a single primary; give it a larger machine, throttle progress harder, or split the projects over two systems",
		percent(databaseLoad(c, d)), percent(room))
	warn(c.assumed() != "", WarnUnmeasured, "not measured on this machine: %s; measure with cmd/bench and give the file with --costs", c.assumed())
	return found
}

func warnMemory(l Load, c Costs, d demand, warn func(bool, string, string, ...any)) {
	kib := max(l.KiBPerConnection, c.KiBPerConnection.Value)
	need, has := memoryGiB(d.perNodeLost, kib), float64(c.Machine.Memory)/1024
	warn(need > has*room, WarnMemory,
		"with one node lost the streams of a node take %s GiB at %s KiB, and %s of a machine's %s GiB may be planned: use more nodes or more memory",
		need, kib, percent(room), has)
	warn(c.KiBPerConnection.Value > l.KiBPerConnection, WarnMemoryCost,
		"the unit cost of a stream is %s KiB, more than the %s KiB of the plan: plan with --kib-per-connection=%[1]s",
		c.KiBPerConnection.Value, l.KiBPerConnection)
}

// nodesFor is how many nodes keep a process's limit with one of them lost.
func nodesFor(l Load, perProcess float64) int {
	return divideUp(l.Connections, max(int(perProcess), 1)) + 1
}

// assumed names the costs that nobody has measured on the machine.
func (c Costs) assumed() string {
	names := ""
	for _, cost := range c.List() {
		if cost.Basis != Assumed {
			continue
		}
		if names != "" {
			names += ", "
		}
		names += cost.Name
	}
	return names
}
