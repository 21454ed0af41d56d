package app

// The state of the outbox and of this process's part of it.
var (
	MetricBacklog     = &Metric{Name: "aivedio_outbox_backlog_rows", Help: "Outbox rows that wait for the bus, those of parked projects left out.", Gauge: true}
	MetricBacklogAge  = &Metric{Name: "aivedio_outbox_oldest_seconds", Help: "Age of the oldest outbox row that waits.", Gauge: true}
	MetricParked      = &Metric{Name: "aivedio_outbox_parked_projects", Help: "Projects whose events the bus refuses and that wait for a person.", Gauge: true}
	MetricRelayShards = &Metric{Name: "aivedio_relay_shards", Help: "Outbox shards that this process holds.", Gauge: true}
)
