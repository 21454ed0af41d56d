package app

import (
	"context"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// The metrics of the sweep.
var (
	MetricSweepRuns     = &Metric{Name: "aivedio_sweep_runs_total", Help: "Runs of a chore by outcome.", Labels: []string{"chore", "outcome"}}
	MetricSweepTime     = &Metric{Name: "aivedio_sweep_seconds", Help: "Duration of a run of a chore.", Labels: []string{"chore"}, Buckets: seconds}
	MetricExpired       = &Metric{Name: "aivedio_expired_rows_total", Help: "Rows removed because their time was over, by kind.", Labels: []string{"kind"}}
	MetricWaitingRows   = &Metric{Name: "aivedio_waiting_rows", Help: "Rows that wait for a chore or for a person, counted up to ten thousand.", Labels: []string{"queue"}, Gauge: true}
	MetricWaitingAge    = &Metric{Name: "aivedio_waiting_oldest_seconds", Help: "How long the oldest of them waits; 0 when none does.", Labels: []string{"queue"}, Gauge: true}
	MetricPartitionDays = &Metric{Name: "aivedio_partition_days_ahead", Help: "Coming days whose partitions exist; below three no sweep is running.", Gauge: true}
)

// fewPartitionDays is where a missing sweep becomes an alarm.
const fewPartitionDays = 3

// sweepBook gathers what the chores of this process did until it is written down.
type sweepBook struct{ runs map[string]ports.SweepRun }

// note enters one run.
func (b *sweepBook) note(chore string, began time.Time, rows int, took time.Duration, err error) {
	r := b.runs[chore]
	r.Chore, r.LastAt, r.LastRows, r.LastTook = chore, began, rows, took
	r.Runs, r.Rows = r.Runs+1, r.Rows+rows
	if err != nil {
		r.FailedAt, r.Errors = &began, r.Errors+1
	}
	if b.runs == nil {
		b.runs = map[string]ports.SweepRun{}
	}
	b.runs[chore] = r
}

// take empties the book.
func (b *sweepBook) take() []ports.SweepRun {
	runs := make([]ports.SweepRun, 0, len(b.runs))
	for _, r := range b.runs {
		runs = append(runs, r)
	}
	b.runs = nil
	return runs
}

// report counts one run of a chore.
func (s *Sweep) report(c *chore, began time.Time, rows int, err error) {
	took, outcome := s.deps.Now().Sub(began), "ok"
	if err != nil {
		outcome = "failed"
	}
	s.book.note(c.name, began, rows, took, err)
	s.deps.Metrics.Add(MetricSweepRuns, 1, c.name, outcome)
	s.deps.Metrics.Observe(MetricSweepTime, took.Seconds(), c.name)
	if rows > 0 {
		s.deps.Metrics.Add(MetricSwept, float64(rows), c.name)
	}
}

// measure writes the book down and shows what waits. It takes no rows.
func (s *Sweep) measure(ctx context.Context) (int, error) {
	if runs := s.book.take(); len(runs) > 0 {
		if err := s.deps.Log.RecordSweeps(ctx, runs); err != nil {
			return 0, fmt.Errorf("record: %w", err) // these runs are missing from the books
		}
	}
	now := s.deps.Now()
	waiting, err := s.deps.Log.Waiting(ctx, now)
	if err != nil {
		return 0, err
	}
	for _, w := range waiting {
		age := 0.0
		if w.Oldest != nil {
			age = max(0, now.Sub(*w.Oldest).Seconds())
		}
		s.deps.Metrics.Set(MetricWaitingRows, float64(w.Rows), w.Name)
		s.deps.Metrics.Set(MetricWaitingAge, age, w.Name)
	}
	return 0, s.measurePartitions(ctx)
}

// measurePartitions warns before the days run out, once.
func (s *Sweep) measurePartitions(ctx context.Context) error {
	days, err := s.deps.Log.PartitionDaysAhead(ctx)
	if err != nil {
		return err
	}
	s.deps.Metrics.Set(MetricPartitionDays, float64(days))
	few := days < fewPartitionDays
	if few && !s.fewDays {
		s.deps.Logger.Error("the partitions of the coming days are not made", "days_ahead", days)
	}
	s.fewDays = few
	return nil
}
