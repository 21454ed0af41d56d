package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Backlog implements ports.OutboxDesk.
func (s *Store) Backlog(ctx context.Context) (ports.Backlog, error) {
	row, err := s.queries().OutboxBacklog(ctx)
	if err != nil {
		return ports.Backlog{}, outward("backlog", err)
	}
	return ports.Backlog{Rows: row.RowCount, OldestAt: timePtr(row.CreatedAt), Parked: int(row.Parked)}, nil
}

// Parked implements ports.OutboxDesk.
func (s *Store) Parked(ctx context.Context, limit int) ([]ports.ParkedProject, error) {
	return s.parked(ctx, pgtype.UUID{}, limit)
}

// ParkedProject implements ports.OutboxDesk.
func (s *Store) ParkedProject(ctx context.Context, project domain.ProjectID) (ports.ParkedProject, error) {
	found, err := s.parked(ctx, uid(project.ID), 1)
	if err == nil && len(found) == 0 {
		err = fmt.Errorf("parked project %s: %w", project, ports.ErrNotFound)
	}
	if err != nil {
		return ports.ParkedProject{}, err
	}
	return found[0], nil
}

func (s *Store) parked(ctx context.Context, project pgtype.UUID, limit int) ([]ports.ParkedProject, error) {
	rows, err := s.queries().OutboxParked(ctx, project, int32(max(limit, 0)))
	if err != nil {
		return nil, outward("parked projects", err)
	}
	parked := make([]ports.ParkedProject, len(rows))
	for i, r := range rows {
		parked[i] = ports.ParkedProject{
			ProjectID: domain.ProjectID{ID: idOf(r.ProjectID)}, ErrorCode: r.LastErrorCode, Refusals: int(r.RetryCount),
			Since: timeOf(r.Since), Rows: r.RowCount,
		}
	}
	return parked, nil
}

// Unpark implements ports.OutboxDesk. The hold goes first: its lock keeps rows from
// being set aside meanwhile.
func (s *Store) Unpark(ctx context.Context, project domain.ProjectID, audit ports.Audit) error {
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		n, err := q.OutboxUnhold(ctx, uid(project.ID))
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("parked project %s: %w", project, ports.ErrNotFound)
		}
		if err := q.OutboxTakeBack(ctx, uid(project.ID)); err != nil {
			return err
		}
		return q.AuditInsertMany(ctx, auditRows([]audited{{Audit: audit, subject: "outbox:" + project.String()}}, s.now()))
	})
	return outward("unpark", err)
}
