package pgstore

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Task implements ports.Reader.
func (s *Store) Task(ctx context.Context, project domain.ProjectID, task domain.TaskID) (ports.TaskView, domain.Cursor, error) {
	result, err := s.created(ctx, task)
	if err == nil && result.View.Task.ProjectID != project {
		err = fmt.Errorf("task: %w", ports.ErrNotFound)
	}
	if err != nil {
		return ports.TaskView{}, domain.Cursor{}, outward("read task", err)
	}
	return result.View, result.Cursor, nil
}

// FindTask implements ports.Reader.
func (s *Store) FindTask(ctx context.Context, task domain.TaskID) (ports.TaskView, error) {
	result, err := s.created(ctx, task)
	return result.View, outward("find task", err)
}

// Tasks implements ports.Reader. The page and its cursor are one statement; only
// an empty page reads the head for itself.
func (s *Store) Tasks(ctx context.Context, params ports.ListParams) (ports.TaskPage, error) {
	page, err := s.tasks(ctx, params)
	return page, outward("list tasks", err)
}

func (s *Store) tasks(ctx context.Context, params ports.ListParams) (ports.TaskPage, error) {
	var after pgtype.UUID
	var afterAt *time.Time
	if !params.After.IsZero() {
		created, err := s.queries().TaskCreatedAt(ctx, uid(params.After.ID), uid(params.ProjectID.ID))
		if err != nil {
			return ports.TaskPage{}, missing("the task to continue after", err)
		}
		after, afterAt = uid(params.After.ID), &created.Time
	}
	rows, err := s.taskRows(ctx, params, after, afterAt)
	if err != nil {
		return ports.TaskPage{}, err
	}
	if len(rows) == 0 {
		head, err := s.head(ctx, params.ProjectID)
		return ports.TaskPage{Cursor: head}, err
	}
	page := ports.TaskPage{Cursor: headOf(rows[0].ProjectStream)}
	if len(rows) > params.Limit {
		rows = rows[:params.Limit]
		page.Next = domain.TaskID{ID: idOf(rows[len(rows)-1].GenerationTask.ID)}
	}
	for _, r := range rows {
		view, err := viewOf(r.GenerationTask, r.TaskAttempt, r.Metadata)
		if err != nil {
			return ports.TaskPage{}, err
		}
		page.Tasks = append(page.Tasks, view)
	}
	return page, nil
}

// taskRows reads one row more than the page holds, so that the last page is known
// as such. A status that is not terminal uses the small index of open tasks.
func (s *Store) taskRows(ctx context.Context, params ports.ListParams, after pgtype.UUID, afterAt *time.Time) ([]dbgen.TaskListRow, error) {
	limit := int32(max(params.Limit, 1)) + 1
	if params.Status == "" || params.Status.Terminal() {
		return s.queries().TaskList(ctx, &dbgen.TaskListParams{
			ProjectID: uid(params.ProjectID.ID), Status: string(params.Status), AfterID: after, AfterAt: afterAt, MaxRows: limit,
		})
	}
	rows, err := s.queries().TaskListOpen(ctx, &dbgen.TaskListOpenParams{
		ProjectID: uid(params.ProjectID.ID), Status: string(params.Status), AfterID: after, AfterAt: afterAt, MaxRows: limit,
	})
	out := make([]dbgen.TaskListRow, len(rows))
	for i, r := range rows {
		out[i] = dbgen.TaskListRow(r)
	}
	return out, err
}

// Attempt implements ports.Reader.
func (s *Store) Attempt(ctx context.Context, attempt domain.AttemptID) (ports.Job, error) {
	row, err := s.queries().AttemptJob(ctx, uid(attempt.ID))
	if err != nil {
		return ports.Job{}, outward("read attempt", missing("attempt", err))
	}
	job, err := jobOf(row.GenerationTask, row.TaskAttempt, row.TaskInput)
	return job, outward("read attempt", err)
}

// Asset implements ports.Reader.
func (s *Store) Asset(ctx context.Context, project domain.ProjectID, asset domain.AssetID) (ports.Asset, error) {
	r, err := s.queries().AssetGet(ctx, uid(asset.ID), uid(project.ID))
	if err != nil {
		return ports.Asset{}, outward("read asset", missing("asset", err))
	}
	return ports.Asset{
		ID: domain.AssetID{ID: idOf(r.ID)}, TenantID: domain.TenantID{ID: idOf(r.TenantID)}, ProjectID: domain.ProjectID{ID: idOf(r.ProjectID)},
		TaskID: domain.TaskID{ID: idOf(r.TaskID)}, AttemptID: domain.AttemptID{ID: idOf(r.AttemptID)}, Kind: r.Kind,
		ContentType: r.ContentType, Key: r.StorageKey, Size: r.SizeBytes, SHA256: slices.Clone(r.Sha256), CreatedAt: timeOf(r.CreatedAt),
	}, nil
}
