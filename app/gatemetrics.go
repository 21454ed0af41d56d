package app

// The metrics of the provider accounts' health. Gauges are what a process that
// calls vendors sees; counters belong to the one that decided.
var (
	MetricBreaker      = &Metric{Name: "aivedio_provider_breaker_state", Help: "Breaker of a provider account: 0 closed, 1 half open, 2 open.", Labels: []string{"provider", "account"}, Gauge: true}
	MetricBreakerMoves = &Metric{Name: "aivedio_provider_breaker_transitions_total", Help: "Changes of a provider account's breaker by new state.", Labels: []string{"provider", "account", "to"}}
	MetricConcurrency  = &Metric{Name: "aivedio_provider_concurrency_limit", Help: "Calls at once that all processes together may make with a provider account; 0 for no limit.", Labels: []string{"provider", "account"}, Gauge: true}
	MetricQuarantined  = &Metric{Name: "aivedio_provider_quarantined", Help: "1 while a provider account's answers are not understood.", Labels: []string{"provider", "account"}, Gauge: true}
	MetricThrottles    = &Metric{Name: "aivedio_provider_throttles_total", Help: "Calls that a vendor refused as too many.", Labels: []string{"provider", "account"}}
	MetricPutOff       = &Metric{Name: "aivedio_provider_calls_put_off_total", Help: "Calls not made because the provider account was shut or fully used.", Labels: []string{"verb", "provider"}}
)
