package memory

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// caseOwner is who has to look at a new case.
const caseOwner = "operations"

// noteConflict keeps the contradiction of a decision, if there is one.
func (x *tx) noteConflict(d *domain.Decision) {
	if d.Conflict == nil {
		return
	}
	x.openConflict(ports.ConflictRow{
		Kind: d.Conflict.Kind, TaskID: d.Task.ID, AttemptID: d.Attempt.ID,
		Have: d.Conflict.Have, Got: d.Conflict.Got, Outputs: slices.Clone(d.Conflict.Outputs),
	})
}

func (x *tx) openConflict(row ports.ConflictRow) {
	row.ID, row.OpenedAt = x.next(), x.at
	put(x, x.conflicts, row.ID, row)
	if row.TaskID.IsZero() {
		return
	}
	x.remember(row.TaskID, ports.TimelineEntry{
		At: x.at, Kind: "conflict", AttemptNo: x.attempts[row.AttemptID].No,
		Status: string(row.Got), Detail: string(row.Kind),
	})
}

// moveCases opens and closes the cases of a decision. An attempt has one open
// case of a kind.
func (x *tx) moveCases(d *domain.Decision) {
	for _, kind := range d.CloseCases {
		if c, ok := x.openCase(d.Attempt.ID, kind); ok {
			c.ClosedAt = &x.at
			put(x, x.cases, c.ID, c)
		}
	}
	for _, kind := range d.OpenCases {
		if _, ok := x.openCase(d.Attempt.ID, kind); !ok {
			c := ports.Case{ID: x.next(), Kind: kind, TaskID: d.Task.ID, AttemptID: d.Attempt.ID, Owner: caseOwner, OpenedAt: x.at}
			put(x, x.cases, c.ID, c)
		}
	}
}

func (s *Store) openCase(attempt domain.AttemptID, kind domain.CaseKind) (ports.Case, bool) {
	for _, c := range s.cases {
		if c.AttemptID == attempt && c.Kind == kind && c.ClosedAt == nil {
			return c, true
		}
	}
	return ports.Case{}, false
}

// Cases implements ports.Desk.
func (s *Store) Cases(ctx context.Context, kind domain.CaseKind, limit int) ([]ports.Case, error) {
	var open []ports.Case
	err := s.read(ctx, func() error {
		for _, c := range s.cases {
			if c.ClosedAt == nil && (kind == "" || c.Kind == kind) {
				open = append(open, c)
			}
		}
		return nil
	})
	slices.SortFunc(open, func(a, b ports.Case) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.ID, b.ID))
	})
	return open[:min(max(limit, 0), len(open))], err
}

// Case implements ports.Desk.
func (s *Store) Case(ctx context.Context, id int64) (ports.Case, error) {
	var found ports.Case
	err := s.read(ctx, func() error {
		c, ok := s.cases[id]
		if !ok {
			return fmt.Errorf("case: %w", ports.ErrNotFound)
		}
		found = c
		return nil
	})
	return found, err
}

// Conflicts implements ports.Desk.
func (s *Store) Conflicts(ctx context.Context, limit int) ([]ports.ConflictRow, error) {
	var open []ports.ConflictRow
	err := s.read(ctx, func() error {
		for _, row := range s.conflicts {
			if row.ClosedAt == nil {
				open = append(open, copyConflict(row))
			}
		}
		return nil
	})
	slices.SortFunc(open, func(a, b ports.ConflictRow) int {
		return cmp.Or(a.OpenedAt.Compare(b.OpenedAt), cmp.Compare(a.ID, b.ID))
	})
	return open[:min(max(limit, 0), len(open))], err
}

// Conflict implements ports.Desk.
func (s *Store) Conflict(ctx context.Context, id int64) (ports.ConflictRow, error) {
	var found ports.ConflictRow
	err := s.read(ctx, func() error {
		row, ok := s.conflicts[id]
		if !ok {
			return fmt.Errorf("conflict: %w", ports.ErrNotFound)
		}
		found = copyConflict(row)
		return nil
	})
	return found, err
}

func copyConflict(row ports.ConflictRow) ports.ConflictRow {
	row.Outputs = slices.Clone(row.Outputs)
	return row
}

// CloseConflict implements ports.Desk.
func (s *Store) CloseConflict(ctx context.Context, id int64, resolution string, audit ports.Audit) error {
	return s.write(ctx, func(x *tx) error {
		row, ok := s.conflicts[id]
		if !ok || row.ClosedAt != nil {
			return fmt.Errorf("open conflict: %w", ports.ErrNotFound)
		}
		row.ClosedAt, row.Resolution = &x.at, resolution
		put(x, s.conflicts, id, row)
		if !row.TaskID.IsZero() {
			x.rememberAudit(row.TaskID, audit)
		}
		return checkText(resolution)
	})
}

// RepairHeads implements ports.Desk.
func (s *Store) RepairHeads(ctx context.Context, limit int) ([]domain.ProjectID, error) {
	var repaired []domain.ProjectID
	err := s.write(ctx, func(x *tx) error {
		for project, st := range s.streams {
			n := len(st.events)
			if len(repaired) == limit || n == 0 || st.events[n-1].EventID <= st.last {
				continue
			}
			st.last, st.lastAt = st.events[n-1].EventID, st.events[n-1].CreatedAt
			put(x, s.streams, project, st)
			repaired = append(repaired, project)
		}
		return nil
	})
	return repaired, err
}

// CleanExpired implements ports.Desk. There are no partitions to make.
func (s *Store) CleanExpired(ctx context.Context, now time.Time, limit int) (map[string]int, error) {
	removed := map[string]int{}
	err := s.write(ctx, func(x *tx) error {
		clear(removed)
		for key, row := range s.requests {
			if removed["idempotency_keys"] < limit && !row.expiresAt.After(now) {
				remove(x, s.requests, key)
				removed["idempotency_keys"]++
			}
		}
		return nil
	})
	return removed, err
}
