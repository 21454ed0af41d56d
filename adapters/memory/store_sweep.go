package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// RecordSweeps implements ports.SweepLog.
func (s *Store) RecordSweeps(ctx context.Context, runs []ports.SweepRun) error {
	return s.write(ctx, func(x *tx) error {
		for _, r := range runs {
			if have, ok := s.sweeps[r.Chore]; ok {
				r.Runs, r.Rows, r.Errors = r.Runs+have.Runs, r.Rows+have.Rows, r.Errors+have.Errors
				if r.LastAt.Before(have.LastAt) {
					r.LastAt, r.LastRows, r.LastTook = have.LastAt, have.LastRows, have.LastTook
				}
				if r.FailedAt == nil || have.FailedAt != nil && have.FailedAt.After(*r.FailedAt) {
					r.FailedAt = have.FailedAt
				}
			}
			put(x, s.sweeps, r.Chore, r)
		}
		return nil
	})
}

// Sweeps implements ports.SweepLog.
func (s *Store) Sweeps(ctx context.Context) ([]ports.SweepRun, error) {
	var runs []ports.SweepRun
	err := s.read(ctx, func() error {
		for _, r := range s.sweeps {
			runs = append(runs, r)
		}
		return nil
	})
	slices.SortFunc(runs, func(a, b ports.SweepRun) int { return cmp.Compare(a.Chore, b.Chore) })
	return runs, err
}

// Waiting implements ports.SweepLog.
func (s *Store) Waiting(ctx context.Context, now time.Time) ([]ports.Waiting, error) {
	found := map[string]ports.Waiting{}
	err := s.read(ctx, func() error {
		wait := func(name string, since time.Time) {
			b := found[name]
			if b.Rows++; b.Oldest == nil || since.Before(*b.Oldest) {
				b.Oldest = &since
			}
			found[name] = b
		}
		for _, id := range s.queue {
			wait(ports.WaitingPending, s.inbox[id].ReceivedAt)
		}
		for _, row := range s.inbox {
			if troubled(row.Status) {
				wait("deliveries_"+string(row.Status), row.ReceivedAt)
			}
		}
		for id := range s.waiting {
			if at := s.attempts[id].NextReconcileAt; at != nil && !at.After(now) {
				wait(ports.WaitingReconciliations, *at)
			}
		}
		for _, c := range s.cases {
			if c.ClosedAt == nil {
				wait(ports.WaitingCases, c.OpenedAt)
			}
		}
		for _, c := range s.conflicts {
			if c.ClosedAt == nil {
				wait(ports.WaitingConflicts, c.OpenedAt)
			}
		}
		return nil
	})
	var backlogs []ports.Waiting
	for _, name := range []string{
		ports.WaitingCases, ports.WaitingConflicts, ports.WaitingDead, ports.WaitingOrphan, ports.WaitingPending, ports.WaitingRetry, ports.WaitingReconciliations,
	} {
		b := found[name]
		b.Name, b.Rows = name, min(b.Rows, ports.WaitingMost)
		backlogs = append(backlogs, b)
	}
	return backlogs, err
}

// PartitionDaysAhead implements ports.SweepLog: there are no partitions, and so
// every day is ready.
func (s *Store) PartitionDaysAhead(context.Context) (int, error) { return 7, nil }
