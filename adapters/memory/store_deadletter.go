package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// troubled reports whether a delivery was given up or waits for another try.
func troubled(s ports.InboxStatus) bool {
	return s == ports.InboxDead || s == ports.InboxRetry || s == ports.InboxOrphan
}

// chosen lists the rows that a filter leaves, the oldest first.
func (s *Store) chosen(f ports.TroubledFilter) []ports.InboxRow {
	var rows []ports.InboxRow
	for _, row := range s.inbox {
		if troubled(row.Status) &&
			(f.Status == "" || f.Status == row.Status) && (f.Provider == "" || f.Provider == row.Provider) &&
			(f.Code == "" || f.Code == row.LastError) && (f.ReceivedBefore.IsZero() || row.ReceivedAt.Before(f.ReceivedBefore)) &&
			row.ID > f.AfterID && (f.BeforeID == 0 || row.ID < f.BeforeID) {
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b ports.InboxRow) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

// Troubled implements ports.DeadLetters.
func (s *Store) Troubled(ctx context.Context, filter ports.TroubledFilter) ([]ports.InboxRow, error) {
	var rows []ports.InboxRow
	err := s.read(ctx, func() error {
		rows = s.chosen(filter)
		slices.Reverse(rows)
		rows = rows[:min(max(filter.Limit, 0), len(rows))]
		for i := range rows {
			rows[i] = copyRow(rows[i])
			rows[i].Payload = nil
		}
		return nil
	})
	return rows, err
}

// TroubledGroups implements ports.DeadLetters.
func (s *Store) TroubledGroups(ctx context.Context, filter ports.TroubledFilter) ([]ports.TroubledGroup, error) {
	type key struct {
		provider, code string
		status         ports.InboxStatus
	}
	groups := map[key]ports.TroubledGroup{}
	err := s.read(ctx, func() error {
		rows := s.chosen(filter)
		for _, row := range rows[:min(max(filter.Limit, 0), len(rows))] {
			k := key{row.Provider, row.LastError, row.Status}
			g, known := groups[k]
			if !known {
				g = ports.TroubledGroup{Provider: row.Provider, Status: row.Status, Code: row.LastError, Oldest: row.ReceivedAt, Newest: row.ReceivedAt}
			}
			g.Rows++
			g.Oldest, g.Newest = earliest(g.Oldest, row.ReceivedAt), latest(g.Newest, row.ReceivedAt)
			groups[k] = g
		}
		return nil
	})
	var sums []ports.TroubledGroup
	for _, g := range groups {
		sums = append(sums, g)
	}
	slices.SortFunc(sums, func(a, b ports.TroubledGroup) int {
		return cmp.Or(cmp.Compare(b.Rows, a.Rows), cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.Status, b.Status), cmp.Compare(a.Code, b.Code))
	})
	return sums, err
}

func earliest(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// InboxRow implements ports.DeadLetters.
func (s *Store) InboxRow(ctx context.Context, id int64) (ports.InboxRow, error) {
	var found ports.InboxRow
	err := s.read(ctx, func() error {
		row, ok := s.inbox[id]
		if !ok {
			return fmt.Errorf("inbox row: %w", ports.ErrNotFound)
		}
		found = copyRow(row)
		return nil
	})
	return found, err
}

// ReadPayload implements ports.DeadLetters. The audit has no reader here and is
// dropped, as in the two methods below.
func (s *Store) ReadPayload(ctx context.Context, id int64, _ ports.Audit) (ports.InboxRow, error) {
	return s.InboxRow(ctx, id)
}

// Requeue implements ports.DeadLetters.
func (s *Store) Requeue(ctx context.Context, id int64, _ ports.Audit) error {
	return s.write(ctx, func(x *tx) error {
		row, ok := s.inbox[id]
		if !ok || !troubled(row.Status) {
			return fmt.Errorf("inbox row to requeue: %w", ports.ErrNotFound)
		}
		row.ErrorCount = 0
		x.requeue(row)
		return nil
	})
}

// RequeueMany implements ports.DeadLetters.
func (s *Store) RequeueMany(ctx context.Context, params ports.RequeueParams) (report ports.RequeueReport, err error) {
	err = s.write(ctx, func(x *tx) error {
		rows := s.chosen(params.Filter)
		due := params.Start
		for _, row := range rows[:min(max(params.Filter.Limit, 0), len(rows))] {
			row.Status, row.ErrorCount, row.NextRetryAt = ports.InboxRetry, 0, due
			put(x, x.inbox, row.ID, row)
			report.Rows, report.LastID = report.Rows+1, row.ID
			due = due.Add(params.Step)
		}
		return nil
	})
	if err != nil {
		return ports.RequeueReport{}, err
	}
	return report, nil
}
