package app

import (
	"context"
	"time"
)

// durationSample is how many of a model's newest jobs its durations are from.
const durationSample = 500

// durations learns how long jobs of each model take, and shows it. It takes no rows.
func (s *Sweep) durations(ctx context.Context) (int, error) {
	if _, err := s.deps.Durations.LearnDurations(ctx, s.deps.Now(), durationSample); err != nil {
		return 0, err
	}
	list, err := s.deps.Durations.Durations(ctx)
	if err != nil {
		return 0, err
	}
	for _, d := range list {
		for quantile, took := range map[string]time.Duration{"0.5": d.P50, "0.95": d.P95} {
			s.deps.Metrics.Set(MetricModelDuration, took.Seconds(), d.Provider, d.Model, quantile)
		}
	}
	return 0, nil
}
