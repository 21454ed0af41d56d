package capacity

import (
	"fmt"
	"slices"
)

// figures are the numbers of 12.11.1 to 12.11.4 and what one database bears.
func figures(l Load, c Costs, d demand) []Figure {
	return slices.Concat(taskFigures(l, d), pollFigures(l, d), streamFigures(l, c, d), bandwidthFigures(l, d), databaseFigures(c, d))
}

// single is a figure of one number, printed with its unit.
func single(name, label string, value float64, unit, formula string, args ...any) Figure {
	return Figure{Name: name, Label: label, Value: value, Unit: unit, Formula: formulaOf(formula, args), Text: number(value) + " " + unit}
}

// share is a figure that is a part of a whole, 1 being all of it.
func share(name, label string, value float64, formula string, args ...any) Figure {
	return Figure{Name: name, Label: label, Value: value, Unit: "share", Formula: formulaOf(formula, args), Text: percent(value)}
}

// formulaOf puts numbers into a formula as a person writes them.
func formulaOf(formula string, args []any) string {
	for i, a := range args {
		switch v := a.(type) {
		case float64:
			args[i] = number(v)
		case int:
			args[i] = number(float64(v))
		}
	}
	return fmt.Sprintf(formula, args...)
}

func taskFigures(l Load, d demand) []Figure {
	return []Figure{
		single("in_flight", "tasks in flight", d.inFlight, "tasks", "L = λ × W = %s/s × %s s (Little)", l.ArrivalRate, l.MeanDuration),
		single("events_per_s", "stored events", d.events, "events/s", "λ × events per task = %s × %s", l.ArrivalRate, l.EventsPerTask),
		single("events_peak_per_s", "stored events at the peak", d.eventsPeak, "events/s", "%s events/s × %s", d.events, l.PeakFactor),
	}
}

func pollFigures(l Load, d demand) []Figure {
	return []Figure{
		single("queries_per_s", "queries of the vendors", d.queries, "queries/s", "L / interval = %s / %s s; quota %s/s", d.inFlight, l.PollInterval, l.VendorQuota),
		single("queries_peak_per_s", "queries if the peak outlasts a task", d.queriesPeak, "queries/s", "%s queries/s × %s", d.queries, l.PeakFactor),
		single("fitting_interval_s", "shortest interval inside the quota", d.inFlight/l.VendorQuota, "s", "L / quota = %s / %s/s", d.inFlight, l.VendorQuota),
		share("webhook_share", "share of queries webhooks must replace", webhookShare(l, d.queries), "max(0, 1 − quota / queries) = 1 − %s / %s", l.VendorQuota, d.queries),
	}
}

// webhookShare is the part of the queries that must not be needed.
func webhookShare(l Load, queries float64) float64 {
	return max(0, 1-l.VendorQuota/queries)
}

func streamFigures(l Load, c Costs, d demand) []Figure {
	low, high := d.heartbeats*heartbeatLow, d.heartbeats*heartbeatHigh
	return []Figure{
		single("heartbeats_per_s", "heartbeats", d.heartbeats, "heartbeats/s", "C / H = %s / %s s", l.Connections, l.HeartbeatInterval),
		{
			Name: "heartbeat_bytes_per_s", Label: "bandwidth of heartbeats", Value: low, High: high, Unit: "bytes/s",
			Formula: formulaOf("%s/s × %s to %s bytes, payload", []any{d.heartbeats, heartbeatLow, heartbeatHigh}),
			Text:    span(low/1e6, high/1e6, "MB/s"),
		},
		gib("connection_memory_gib", "memory of streams, as planned", l.Connections, l.KiBPerConnection, ""),
		gib("connection_memory_known_gib", "memory of streams, unit cost", l.Connections, c.KiBPerConnection.Value, " ("+string(c.KiBPerConnection.Basis)+")"),
		single("connections_per_node", "streams on a node", float64(d.perNode), "streams", "C / nodes = %s / %s, rounded up", l.Connections, l.Nodes),
		single("connections_per_node_one_lost", "streams on a node, one node lost", float64(d.perNodeLost), "streams", "C / (nodes − 1) = %s / %s, rounded up", l.Connections, max(l.Nodes-1, 1)),
	}
}

func gib(name, label string, connections int, kib float64, note string) Figure {
	return single(name, label, memoryGiB(connections, kib), "GiB", "%s × %s KiB%s / 1,048,576; without runtime, TLS, caches", connections, kib, note)
}

func memoryGiB(connections int, kib float64) float64 {
	return float64(connections) * kib / (1 << 20)
}

func bandwidthFigures(l Load, d demand) []Figure {
	events := d.deliveries * l.EventBytes
	low, high := events+d.heartbeats*heartbeatLow, events+d.heartbeats*heartbeatHigh
	return []Figure{
		single("deliveries_peak_per_s", "deliveries at the peak", d.deliveries, "frames/s", "%s events/s × fan-out %s", d.eventsPeak, l.FanOut),
		single("event_bytes_per_s", "bandwidth of events at the peak", events, "bytes/s", "%s events/s × %s × %s bytes", d.eventsPeak, l.FanOut, l.EventBytes),
		{
			Name: "egress_bytes_per_s", Label: "egress at the peak", Value: low, High: high, Unit: "bytes/s",
			Formula: "events + heartbeats; TLS, TCP and proxies come on top", Text: span(low/1e6, high/1e6, "MB/s"),
		},
	}
}

func databaseFigures(c Costs, d demand) []Figure {
	return []Figure{
		share("database_load", "load of one PostgreSQL machine", databaseLoad(c, d), "peak events / callbacks + peak events / transitions = %[1]s / %[2]s + %[1]s / %[3]s; upper bound",
			d.eventsPeak, c.CallbacksPerS.Value, c.TransitionsPerS.Value),
		share("one_machine_load", "load if one machine did it all", d.eventsPeak/c.ConvergedPerS.Value, "peak events / converged = %s / %s; without streams", d.eventsPeak, c.ConvergedPerS.Value),
	}
}

// databaseLoad is what ingest and state ask of the machine that has the one
// primary, as a part of what such a machine was seen to do. Everything in the
// measurement counts, the application and the client too.
func databaseLoad(c Costs, d demand) float64 {
	return d.eventsPeak/c.CallbacksPerS.Value + d.eventsPeak/c.TransitionsPerS.Value
}
