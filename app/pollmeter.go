package app

import (
	"sync"

	"github.com/aivedio/aivedio/ports"
)

// The metrics of the poller.
var (
	MetricPollLag       = &Metric{Name: "aivedio_poll_lag_seconds", Help: "How long a query was due when it was claimed.", Labels: []string{"provider"}, Buckets: seconds}
	MetricPollsRunning  = &Metric{Name: "aivedio_polls_in_flight", Help: "Queries that this process has under way.", Labels: []string{"provider"}, Gauge: true}
	MetricModelDuration = &Metric{Name: "aivedio_model_duration_seconds", Help: "Learned duration of jobs.", Labels: []string{"provider", "model", "quantile"}, Gauge: true}
)

// pollMeter tells how late queries are and how many are under way.
type pollMeter struct {
	metrics Metrics

	mu      sync.Mutex
	running map[string]int
}

func newPollMeter(metrics Metrics) *pollMeter {
	return &pollMeter{metrics: metrics, running: map[string]int{}}
}

// claimed notes a query that is about to begin.
func (m *pollMeter) claimed(job ports.Job, params ports.ClaimParams) {
	if due := job.Attempt.NextPollAt; params.Kind == ports.WorkPoll && due != nil {
		m.metrics.Observe(MetricPollLag, params.Now.Sub(*due).Seconds(), job.Attempt.Provider)
	}
	m.move(job.Attempt.Provider, 1)
}

// done notes its end.
func (m *pollMeter) done(job ports.Job) { m.move(job.Attempt.Provider, -1) }

func (m *pollMeter) move(provider string, by int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.running[provider] += by
	m.metrics.Set(MetricPollsRunning, float64(m.running[provider]), provider)
}
