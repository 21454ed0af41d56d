package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// modelKey names a vendor's model.
type modelKey struct{ provider, model string }

// order settles whether somebody will wait for the attempt's next query.
func (x *tx) order(a domain.Attempt, now time.Time) {
	if x.watched[x.tasks[a.TaskID].ProjectID].After(now) || x.nearDone(a, now) {
		put(x, x.first, a.ID, struct{}{})
	} else {
		remove(x, x.first, a.ID)
	}
}

func (x *tx) nearDone(a domain.Attempt, now time.Time) bool {
	return a.SubmittedAt != nil && x.durations[modelKey{a.Provider, a.Model}].NearDone(now.Sub(*a.SubmittedAt))
}

// Watch implements ports.Watches.
func (s *Store) Watch(ctx context.Context, params ports.WatchParams) error {
	return s.write(ctx, func(x *tx) error {
		for _, project := range params.Projects {
			known := x.watched[project]
			if params.Until.After(known) {
				put(x, x.watched, project, params.Until)
			}
			if known.After(params.Now) {
				continue
			}
			for id := range x.waiting {
				if a := x.attempts[id]; a.NextPollAt != nil && x.tasks[a.TaskID].ProjectID == project {
					put(x, x.first, id, struct{}{})
				}
			}
		}
		return nil
	})
}

// LearnDurations implements ports.Durations.
func (s *Store) LearnDurations(ctx context.Context, now time.Time, sample int) (int, error) {
	learned := 0
	err := s.write(ctx, func(x *tx) error {
		for key, ended := range x.successes() {
			slices.SortFunc(ended, func(a, b domain.Attempt) int { return b.TerminalAt.Compare(*a.TerminalAt) })
			took := make([]time.Duration, min(len(ended), max(sample, 0)))
			for i := range took {
				took[i] = max(ended[i].TerminalAt.Sub(*ended[i].SubmittedAt), 0)
			}
			if len(took) == 0 {
				continue
			}
			slices.Sort(took)
			put(x, x.durations, key, ports.ModelDuration{
				Provider: key.provider, Model: key.model, Samples: len(took), UpdatedAt: now,
				Typical: domain.Typical{P50: quantile(took, 0.5), P95: quantile(took, 0.95)},
			})
			learned++
		}
		return nil
	})
	return learned, err
}

func (x *tx) successes() map[modelKey][]domain.Attempt {
	found := map[modelKey][]domain.Attempt{}
	for _, a := range x.attempts {
		if a.Status == domain.AttemptSucceeded && a.SubmittedAt != nil && a.TerminalAt != nil {
			key := modelKey{a.Provider, a.Model}
			found[key] = append(found[key], a.Attempt)
		}
	}
	return found
}

// quantile interpolates between the two nearest of sorted values, in whole
// milliseconds.
func quantile(sorted []time.Duration, q float64) time.Duration {
	place := q * float64(len(sorted)-1)
	low := int(place)
	high := min(low+1, len(sorted)-1)
	d := float64(sorted[low]) + (place-float64(low))*float64(sorted[high]-sorted[low])
	return time.Duration(d).Round(time.Millisecond)
}

// Durations implements ports.Durations.
func (s *Store) Durations(ctx context.Context) ([]ports.ModelDuration, error) {
	var list []ports.ModelDuration
	err := s.read(ctx, func() error {
		for _, d := range s.durations {
			list = append(list, d)
		}
		return nil
	})
	slices.SortFunc(list, func(a, b ports.ModelDuration) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Model, b.Model))
	})
	return list, err
}
