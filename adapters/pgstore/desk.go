package pgstore

import (
	"context"
	"fmt"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// caseOwner is who has to look at a new case.
const caseOwner = "operations"

// Cases implements ports.Desk.
func (s *Store) Cases(ctx context.Context, kind domain.CaseKind, limit int) ([]ports.Case, error) {
	rows, err := s.queries().CasesOpen(ctx, string(kind), int32(max(limit, 0)))
	if err != nil {
		return nil, outward("cases", err)
	}
	cases := make([]ports.Case, len(rows))
	for i, r := range rows {
		cases[i] = caseOf(r)
	}
	return cases, nil
}

// Case implements ports.Desk.
func (s *Store) Case(ctx context.Context, id int64) (ports.Case, error) {
	row, err := s.queries().CaseGet(ctx, id)
	if err != nil {
		return ports.Case{}, outward("case", missing("case", err))
	}
	return caseOf(row), nil
}

func caseOf(r dbgen.Case) ports.Case {
	return ports.Case{
		ID: r.ID, Kind: domain.CaseKind(r.Kind), TaskID: domain.TaskID{ID: idOf(r.TaskID)}, AttemptID: domain.AttemptID{ID: idOf(r.AttemptID)},
		Owner: r.Owner, OpenedAt: timeOf(r.OpenedAt), ClosedAt: timePtr(r.ClosedAt),
	}
}

// Conflicts implements ports.Desk.
func (s *Store) Conflicts(ctx context.Context, limit int) ([]ports.ConflictRow, error) {
	rows, err := s.queries().ConflictsOpen(ctx, int32(max(limit, 0)))
	if err != nil {
		return nil, outward("conflicts", err)
	}
	conflicts := make([]ports.ConflictRow, len(rows))
	for i, r := range rows {
		if conflicts[i], err = conflictOf(r); err != nil {
			return nil, outward("conflicts", err)
		}
	}
	return conflicts, nil
}

// Conflict implements ports.Desk.
func (s *Store) Conflict(ctx context.Context, id int64) (ports.ConflictRow, error) {
	row, err := s.queries().ConflictGet(ctx, id)
	if err != nil {
		return ports.ConflictRow{}, outward("conflict", missing("conflict", err))
	}
	c, err := conflictOf(row)
	return c, outward("conflict", err)
}

func conflictOf(r dbgen.Conflict) (ports.ConflictRow, error) {
	outputs, err := outputsOf(r.Outputs)
	return ports.ConflictRow{
		ID: r.ID, Kind: domain.Reason(r.Kind), TaskID: domain.TaskID{ID: idOf(r.TaskID)}, AttemptID: domain.AttemptID{ID: idOf(r.AttemptID)},
		Have: domain.AttemptStatus(text(r.Have)), Got: domain.AttemptStatus(r.Got), Outputs: outputs,
		OpenedAt: timeOf(r.OpenedAt), ClosedAt: timePtr(r.ClosedAt), Resolution: r.Resolution,
	}, err
}

// CloseConflict implements ports.Desk.
func (s *Store) CloseConflict(ctx context.Context, id int64, resolution string, audit ports.Audit) error {
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		now := s.now()
		row, err := q.ConflictClose(ctx, &dbgen.ConflictCloseParams{ID: id, Resolution: resolution, Now: at(now)})
		if err != nil {
			return missing("open conflict", err)
		}
		return q.AuditInsertMany(ctx, auditRows([]audited{{
			audit, domain.TaskID{ID: idOf(row.TaskID)}, domain.AttemptID{ID: idOf(row.AttemptID)}, fmt.Sprintf("conflict:%d", id),
		}}, now))
	})
	return outward("close conflict", err)
}

// RepairHeads implements ports.Desk.
func (s *Store) RepairHeads(ctx context.Context, limit int) ([]domain.ProjectID, error) {
	rows, err := s.queries().StreamRepair(ctx, int32(max(limit, 0)))
	if err != nil {
		return nil, outward("repair heads", err)
	}
	projects := make([]domain.ProjectID, len(rows))
	for i, id := range rows {
		projects[i] = domain.ProjectID{ID: idOf(id)}
	}
	return projects, nil
}
