-- name: TaskLock :many
SELECT * FROM generation_tasks WHERE id = ANY(@ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;

-- name: TaskGet :one
SELECT * FROM generation_tasks WHERE id = @id;

-- name: TaskInsert :exec
-- The row starts at version 0; EventAppend brings it to 1 with its first event.
INSERT INTO generation_tasks (
    id, tenant_id, project_id, user_id, status, phase, cancel, stage, version, last_event_id,
    current_attempt_id, attempt_count, on_late_success, trace_id, created_at, updated_at
) VALUES (
    @id, @tenant_id, @project_id, @user_id, 'queued', 'queued', 'none', @stage, 0, 0,
    @current_attempt_id, @attempt_count, @on_late_success, @trace_id, @created_at, @updated_at
);

-- name: TaskInputInsert :exec
INSERT INTO task_inputs (task_id, prompt, image_url, duration_seconds, aspect_ratio, resolution, seed, extra, metadata)
VALUES (@task_id, @prompt, @image_url, @duration_seconds, @aspect_ratio, @resolution, @seed, @extra, @metadata);

-- name: TaskView :one
-- The snapshot and the head of the stream in one statement (I7).
SELECT sqlc.embed(t), sqlc.embed(a), sqlc.embed(s), i.metadata
FROM generation_tasks t
JOIN task_attempts a ON a.id = t.current_attempt_id
JOIN project_streams s ON s.project_id = t.project_id
LEFT JOIN task_inputs i ON i.task_id = t.id
WHERE t.id = @id;

-- name: TaskList :many
SELECT sqlc.embed(t), sqlc.embed(a), sqlc.embed(s), i.metadata
FROM project_streams s
JOIN generation_tasks t ON t.project_id = s.project_id
JOIN task_attempts a ON a.id = t.current_attempt_id
LEFT JOIN task_inputs i ON i.task_id = t.id
WHERE s.project_id = @project_id
  AND (@status::text = '' OR t.status = @status)
  AND (sqlc.narg(after_id)::uuid IS NULL OR (t.created_at, t.id) < (sqlc.narg(after_at)::timestamptz, sqlc.narg(after_id)::uuid))
ORDER BY t.created_at DESC, t.id DESC
LIMIT @max_rows;

-- name: TaskListOpen :many
-- TaskList for a status that is not terminal: the partial index of open tasks.
SELECT sqlc.embed(t), sqlc.embed(a), sqlc.embed(s), i.metadata
FROM project_streams s
JOIN generation_tasks t ON t.project_id = s.project_id
JOIN task_attempts a ON a.id = t.current_attempt_id
LEFT JOIN task_inputs i ON i.task_id = t.id
WHERE s.project_id = @project_id AND t.terminal_at IS NULL AND t.status = @status
  AND (sqlc.narg(after_id)::uuid IS NULL OR (t.created_at, t.id) < (sqlc.narg(after_at)::timestamptz, sqlc.narg(after_id)::uuid))
ORDER BY t.created_at DESC, t.id DESC
LIMIT @max_rows;

-- name: TaskCreatedAt :one
SELECT created_at FROM generation_tasks WHERE id = @id AND project_id = @project_id;
