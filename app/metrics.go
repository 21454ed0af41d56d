package app

// Metrics takes the figures of the use cases. Implementations are safe for
// concurrent use and never block.
type Metrics interface {
	// Add raises a counter. labels stand in the order of the metric's Labels.
	Add(metric *Metric, n float64, labels ...string)
	// Observe enters a value into a histogram, in the metric's unit.
	Observe(metric *Metric, value float64, labels ...string)
	// Set gives a gauge its value, in the metric's unit.
	Set(metric *Metric, value float64, labels ...string)
}

// NopMetrics counts nothing.
type NopMetrics struct{}

var _ Metrics = NopMetrics{}

// Add does nothing.
func (NopMetrics) Add(*Metric, float64, ...string) {}

// Observe does nothing.
func (NopMetrics) Observe(*Metric, float64, ...string) {}

// Set does nothing.
func (NopMetrics) Set(*Metric, float64, ...string) {}

// Metric describes one figure, so that an exporter can register all of them at
// the start and a scrape shows a zero instead of nothing.
type Metric struct {
	// Name is the full Prometheus name, unit included.
	Name string
	Help string
	// Labels are the label names in order; their values are few by nature.
	Labels []string
	// Buckets make it a histogram; a counter and a gauge have none.
	Buckets []float64
	// Gauge makes it a figure that goes up and down.
	Gauge bool
}

var (
	seconds = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	rows    = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256}
)

// The metrics of the use cases.
var (
	MetricDeliveries     = &Metric{Name: "aivedio_callback_deliveries_total", Help: "Webhook deliveries by outcome.", Labels: []string{"provider", "outcome"}}
	MetricDeliverTime    = &Metric{Name: "aivedio_callback_commit_seconds", Help: "Time from a verified delivery to its commit.", Buckets: seconds}
	MetricInboxBatch     = &Metric{Name: "aivedio_inbox_batch_rows", Help: "Deliveries committed together.", Buckets: rows}
	MetricProcessed      = &Metric{Name: "aivedio_inbox_processed_total", Help: "Inbox rows digested by outcome.", Labels: []string{"outcome"}}
	MetricVerdicts       = &Metric{Name: "aivedio_verdicts_total", Help: "Inputs of the state machine by source and verdict.", Labels: []string{"source", "verdict", "reason"}}
	MetricSubmits        = &Metric{Name: "aivedio_provider_submits_total", Help: "Calls of a vendor's create by outcome.", Labels: []string{"provider", "outcome"}}
	MetricSubmitTime     = &Metric{Name: "aivedio_provider_submit_seconds", Help: "Duration of a vendor's create.", Labels: []string{"provider"}, Buckets: seconds}
	MetricQueries        = &Metric{Name: "aivedio_provider_queries_total", Help: "Queries of a vendor by outcome.", Labels: []string{"provider", "outcome"}}
	MetricQueryTime      = &Metric{Name: "aivedio_provider_query_seconds", Help: "Duration of a vendor's query.", Labels: []string{"provider"}, Buckets: seconds}
	MetricQuotaWaits     = &Metric{Name: "aivedio_quota_waits_total", Help: "Vendor calls put off by our own limits.", Labels: []string{"verb", "provider"}}
	MetricPublished      = &Metric{Name: "aivedio_outbox_published_total", Help: "Outbox rows that the bus stored."}
	MetricPublishErrors  = &Metric{Name: "aivedio_outbox_publish_errors_total", Help: "Publish calls that failed at least in part."}
	MetricPublishLag     = &Metric{Name: "aivedio_outbox_lag_seconds", Help: "Age of an event when the bus stored it.", Buckets: seconds}
	MetricNotified       = &Metric{Name: "aivedio_dispatch_events_total", Help: "Bus events by outcome of their notification.", Labels: []string{"outcome"}}
	MetricConsumeLag     = &Metric{Name: "aivedio_dispatch_lag_seconds", Help: "Age of an event when the bus handed it over for notification, repetitions left out.", Buckets: seconds}
	MetricNotifyTime     = &Metric{Name: "aivedio_notify_seconds", Help: "Duration of one publish to the notifier, failed ones included.", Buckets: seconds}
	MetricMedia          = &Metric{Name: "aivedio_media_fetches_total", Help: "Downloads of outputs by outcome.", Labels: []string{"provider", "outcome"}}
	MetricMediaBytes     = &Metric{Name: "aivedio_media_fetched_bytes_total", Help: "Bytes of outputs stored."}
	MetricCancels        = &Metric{Name: "aivedio_provider_cancels_total", Help: "Cancellations asked of a vendor by outcome.", Labels: []string{"provider", "outcome"}}
	MetricSwept          = &Metric{Name: "aivedio_sweep_rows_total", Help: "Rows that a sweep moved, by chore.", Labels: []string{"chore"}}
	MetricWebhookSilence = &Metric{Name: "aivedio_webhook_silence", Help: "1 while jobs of the account are found finished by queries only.", Labels: []string{"provider", "account"}, Gauge: true}
	MetricPollPace       = &Metric{Name: "aivedio_poll_pace_ratio", Help: "Factor of the account's regular polling delays, by how much its webhooks tell.", Labels: []string{"provider", "account"}, Gauge: true}
	MetricLoopErrors     = &Metric{Name: "aivedio_loop_errors_total", Help: "Rounds of a role that failed.", Labels: []string{"loop"}}
)

// AllMetrics lists every metric.
func AllMetrics() []*Metric {
	return []*Metric{
		MetricDeliveries, MetricDeliverTime, MetricInboxBatch, MetricProcessed, MetricVerdicts,
		MetricSubmits, MetricSubmitTime, MetricQueries, MetricQueryTime, MetricQuotaWaits,
		MetricPollLag, MetricPollsRunning, MetricModelDuration,
		MetricPublished, MetricPublishErrors, MetricPublishLag, MetricNotified, MetricConsumeLag, MetricNotifyTime,
		MetricBacklog, MetricBacklogAge, MetricParked, MetricRelayShards,
		MetricMedia, MetricMediaBytes, MetricCancels, MetricSwept, MetricLoopErrors,
		MetricWebhookSilence, MetricPollPace,
		MetricBreaker, MetricBreakerMoves, MetricConcurrency, MetricQuarantined, MetricThrottles, MetricPutOff,
		MetricSweepRuns, MetricSweepTime, MetricExpired, MetricWaitingRows, MetricWaitingAge, MetricPartitionDays,
	}
}
