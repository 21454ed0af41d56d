package stream

import "github.com/prometheus/client_golang/prometheus"

// newAge is the time from an event's commit to its write to a client.
func newAge() prometheus.Histogram {
	return prometheus.NewHistogram(prometheus.HistogramOpts{
		Name:    "aivedio_stream_delivery_seconds",
		Help:    "Time from an event's commit to its write to a live client.",
		Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60},
	})
}

// figure is one number of [Stats] as Prometheus knows it.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(Stats) float64
}

func newFigure(kind prometheus.ValueType, name, help string, read func(Stats) float64) figure {
	return figure{prometheus.NewDesc("aivedio_stream_"+name, help, nil, nil), kind, read}
}

// collector exports the hub.
type collector struct {
	hub     *Hub
	figures []figure
}

var _ prometheus.Collector = collector{}

// Collector exports [Hub.Stats] and the age of events at their delivery.
// Register it once.
func (h *Hub) Collector() prometheus.Collector {
	const gauge, counter = prometheus.GaugeValue, prometheus.CounterValue
	return collector{h, []figure{
		newFigure(gauge, "connections", "Clients connected now.", func(s Stats) float64 { return float64(s.Connections) }),
		newFigure(gauge, "projects", "Projects watched now.", func(s Stats) float64 { return float64(s.Projects) }),
		newFigure(gauge, "queued_events", "Events that wait to be written to clients.", func(s Stats) float64 { return float64(s.Queued) }),
		newFigure(gauge, "longest_queue_events", "Events that wait for the client that is furthest behind.", func(s Stats) float64 { return float64(s.LongestQueue) }),
		newFigure(counter, "opened_total", "Streams opened.", func(s Stats) float64 { return float64(s.Opened) }),
		newFigure(counter, "refused_total", "Streams refused for lack of room.", func(s Stats) float64 { return float64(s.Refused) }),
		newFigure(counter, "events_written_total", "Events written to clients.", func(s Stats) float64 { return float64(s.Written) }),
		newFigure(counter, "conflated_total", "Progress that a slow client was spared.", func(s Stats) float64 { return float64(s.Conflated) }),
		newFigure(counter, "slow_total", "Clients told to move because they read too slowly.", func(s Stats) float64 { return float64(s.Slow) }),
		newFigure(counter, "write_errors_total", "Clients cut because a write failed.", func(s Stats) float64 { return float64(s.WriteErrors) }),
		newFigure(counter, "hints_total", "Events from the notifier.", func(s Stats) float64 { return float64(s.Hints) }),
		newFigure(counter, "deltas_total", "Delta queries.", func(s Stats) float64 { return float64(s.Deltas) }),
		newFigure(counter, "found_total", "Events that only a delta query brought.", func(s Stats) float64 { return float64(s.Found) }),
		newFigure(counter, "reads_total", "Reads of the store.", func(s Stats) float64 { return float64(s.Reads) }),
		newFigure(counter, "read_errors_total", "Reads of the store that failed.", func(s Stats) float64 { return float64(s.ReadErrors) }),
		newFigure(counter, "watch_errors_total", "Subscriptions that the notifier did not confirm.", func(s Stats) float64 { return float64(s.WatchErrors) }),
		newFigure(counter, "resets_total", "Histories that were replaced under live clients.", func(s Stats) float64 { return float64(s.Resets) }),
	}}
}

// Describe implements prometheus.Collector.
func (c collector) Describe(out chan<- *prometheus.Desc) {
	for _, f := range c.figures {
		out <- f.desc
	}
	c.hub.age.Describe(out)
}

// Collect implements prometheus.Collector.
func (c collector) Collect(out chan<- prometheus.Metric) {
	s := c.hub.Stats()
	for _, f := range c.figures {
		out <- prometheus.MustNewConstMetric(f.desc, f.kind, f.read(s))
	}
	c.hub.age.Collect(out)
}
