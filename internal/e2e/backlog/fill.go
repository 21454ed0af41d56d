package backlog

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// Shape is a backlog: Rows events, of Projects projects in turn.
type Shape struct{ Projects, Rows int }

// Of is how many events the n-th project has.
func (s Shape) Of(n int) int {
	have := s.Rows / s.Projects
	if n < s.Rows%s.Projects {
		have++
	}
	return have
}

// The marks of a message that the database replaces.
const (
	markID      = 987_654_321
	markVersion = 987_654_322
)

// Fill writes the backlog in one transaction, set by set, and returns how many
// events each project has. A project has one task, whose every version is an event.
func Fill(ctx context.Context, conn *pgx.Conn, shape Shape) (map[domain.ProjectID]int64, error) {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("fill the outbox: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // after a commit there is nothing to roll back
	if _, err := tx.Exec(ctx, `CREATE TEMP TABLE backlog_project (n INT PRIMARY KEY, project_id UUID NOT NULL, task_id UUID NOT NULL, before TEXT NOT NULL, between TEXT NOT NULL, behind TEXT NOT NULL) ON COMMIT DROP`); err != nil {
		return nil, fmt.Errorf("fill the outbox: %w", err)
	}
	want := map[domain.ProjectID]int64{}
	columns := []string{"n", "project_id", "task_id", "before", "between", "behind"}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{"backlog_project"}, columns, pgx.CopyFromSlice(shape.Projects, func(n int) ([]any, error) {
		project, task := domain.ProjectID{ID: wire.NewID()}, domain.TaskID{ID: wire.NewID()}
		want[project] = int64(shape.Of(n))
		before, between, behind, err := message(project, task)
		return []any{n, [16]byte(project.ID), [16]byte(task.ID), before, between, behind}, err
	}))
	if err != nil {
		return nil, fmt.Errorf("fill the outbox: projects: %w", err)
	}
	_, err = tx.Exec(ctx, `WITH o AS (
			INSERT INTO outbox_events (shard, project_id, event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, created_at)
			SELECT (p.n % 64)::smallint, p.project_id, r / $1 + 1, 'task', p.task_id, r / $1 + 1, $3::text,
				(p.before || (r / $1 + 1) || p.between || (r / $1 + 1) || p.behind)::json, now()
			FROM generate_series(0, $2::bigint - 1) AS r JOIN backlog_project p ON p.n = r % $1
			ORDER BY r
			RETURNING id, shard, project_id
		)
		INSERT INTO outbox_queue (outbox_id, shard, project_id) SELECT id, shard, project_id FROM o`,
		int64(shape.Projects), int64(shape.Rows), domain.EventTaskStatusChanged)
	if err != nil {
		return nil, fmt.Errorf("fill the outbox: rows: %w", err)
	}
	if err := tx.Commit(ctx); err != nil {
		return nil, fmt.Errorf("fill the outbox: %w", err)
	}
	return want, nil
}

// message is an event of the size that a running task's has, in three parts: the
// event's number stands between the first two, the version between the last two.
func message(project domain.ProjectID, task domain.TaskID) (before, between, behind string, err error) {
	progress := 50
	text, err := json.Marshal(wire.MessageOf(ports.StoredEvent{EventID: markID, CreatedAt: time.Now().UTC(), Event: domain.Event{
		TenantID: domain.TenantID{ID: wire.NewID()}, ProjectID: project, TaskID: task, AttemptID: domain.AttemptID{ID: wire.NewID()},
		Version: markVersion, Type: domain.EventTaskStatusChanged, Status: domain.Status(domain.PhaseRunning), Phase: domain.PhaseRunning, Cancel: domain.CancelNone,
		Stage: domain.StageGenerating, Progress: &progress, Source: domain.SourceWebhook, TraceID: domain.TraceID{ID: wire.NewID()},
	}}))
	if err != nil {
		return "", "", "", err
	}
	before, rest, first := strings.Cut(string(text), fmt.Sprint(markID))
	between, behind, second := strings.Cut(rest, fmt.Sprint(markVersion))
	if !first || !second {
		return "", "", "", fmt.Errorf("the message has no number and version in this order: %s", text)
	}
	return before, between, behind, nil
}

// Left is how many rows still wait.
func Left(ctx context.Context, conn *pgx.Conn) (n int, err error) {
	if err := conn.QueryRow(ctx, "SELECT count(*) FROM outbox_queue").Scan(&n); err != nil {
		return 0, fmt.Errorf("count what waits: %w", err)
	}
	return n, nil
}
