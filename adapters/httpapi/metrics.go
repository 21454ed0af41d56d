package httpapi

import (
	"net/http"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/aivedio/aivedio/app"
)

// Metrics is the registry of a process: the figures of the use cases, of the
// HTTP surface, of Go and of the process itself. It is safe for concurrent use.
type Metrics struct {
	registry   *prometheus.Registry
	counters   map[*app.Metric]*prometheus.CounterVec
	histograms map[*app.Metric]*prometheus.HistogramVec
	gauges     map[*app.Metric]*prometheus.GaugeVec
	requests   *prometheus.CounterVec
	durations  *prometheus.HistogramVec
}

var _ app.Metrics = (*Metrics)(nil)

// NewMetrics returns a registry with every metric of [app.AllMetrics] in it.
func NewMetrics() *Metrics {
	m := &Metrics{
		registry:   prometheus.NewRegistry(),
		counters:   map[*app.Metric]*prometheus.CounterVec{},
		histograms: map[*app.Metric]*prometheus.HistogramVec{},
		gauges:     map[*app.Metric]*prometheus.GaugeVec{},
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "aivedio_http_requests_total", Help: "Requests by route, method and status.",
		}, []string{"route", "method", "status"}),
		durations: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "aivedio_http_request_seconds", Help: "Duration of requests by route; streams are left out.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}, []string{"route"}),
	}
	m.registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), m.requests, m.durations)
	for _, metric := range app.AllMetrics() {
		m.add(metric)
	}
	return m
}

// add registers a metric; one without labels shows its zero from the start, but for
// a gauge, whose zero would be a claim.
func (m *Metrics) add(metric *app.Metric) {
	if metric.Gauge {
		m.gauges[metric] = prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: metric.Name, Help: metric.Help}, metric.Labels)
		m.registry.MustRegister(m.gauges[metric])
		return
	}
	if metric.Buckets != nil {
		vec := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: metric.Name, Help: metric.Help, Buckets: metric.Buckets}, metric.Labels)
		m.registry.MustRegister(vec)
		m.histograms[metric] = vec
		if len(metric.Labels) == 0 {
			vec.WithLabelValues()
		}
		return
	}
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{Name: metric.Name, Help: metric.Help}, metric.Labels)
	m.registry.MustRegister(vec)
	m.counters[metric] = vec
	if len(metric.Labels) == 0 {
		vec.WithLabelValues()
	}
}

// Registry takes the collectors of other parts.
func (m *Metrics) Registry() prometheus.Registerer { return m.registry }

// Add implements [app.Metrics]; a metric that is not registered is ignored.
func (m *Metrics) Add(metric *app.Metric, n float64, labels ...string) {
	if vec := m.counters[metric]; vec != nil {
		vec.WithLabelValues(labels...).Add(n)
	}
}

// Observe implements [app.Metrics].
func (m *Metrics) Observe(metric *app.Metric, value float64, labels ...string) {
	if vec := m.histograms[metric]; vec != nil {
		vec.WithLabelValues(labels...).Observe(value)
	}
}

// Set implements [app.Metrics].
func (m *Metrics) Set(metric *app.Metric, value float64, labels ...string) {
	if vec := m.gauges[metric]; vec != nil {
		vec.WithLabelValues(labels...).Set(value)
	}
}

// request counts one request. A status of 0 is a client that hung up.
func (m *Metrics) request(c *call, method string, status int, took time.Duration) {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost:
	default:
		method = "other" // text from outside is no label
	}
	m.requests.WithLabelValues(c.route, method, strconv.Itoa(status)).Inc()
	if !c.untimed {
		m.durations.WithLabelValues(c.route).Observe(took.Seconds())
	}
}

// handler is the /metrics page.
func (m *Metrics) handler() http.Handler {
	return promhttp.HandlerFor(m.registry, promhttp.HandlerOpts{})
}
