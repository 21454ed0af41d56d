-- name: ConflictInsertMany :exec
INSERT INTO conflicts (kind, subject, task_id, attempt_id, have, got, outputs, opened_at)
SELECT i.kind, i.subject, i.task_id, i.attempt_id, NULLIF(i.have, ''), i.got, NULLIF(i.outputs, '')::json, @now::timestamptz
FROM (
    SELECT unnest(@kinds::text[]) AS kind, unnest(@subjects::text[]) AS subject, unnest(@task_ids::uuid[]) AS task_id,
        unnest(@attempt_ids::uuid[]) AS attempt_id, unnest(@haves::text[]) AS have, unnest(@gots::text[]) AS got,
        unnest(@outputs::text[]) AS outputs
) i
ORDER BY i.subject, i.kind, i.got
ON CONFLICT DO NOTHING;

-- name: ConflictsOpen :many
SELECT * FROM conflicts WHERE closed_at IS NULL ORDER BY opened_at, id LIMIT @max_rows;

-- name: ConflictGet :one
SELECT * FROM conflicts WHERE id = @id;

-- name: ConflictClose :one
UPDATE conflicts SET closed_at = @now::timestamptz, resolution = @resolution WHERE id = @id AND closed_at IS NULL
RETURNING task_id, attempt_id, subject;

-- name: ConflictsOfTask :many
SELECT * FROM conflicts WHERE task_id = @task_id ORDER BY opened_at, id;

-- name: CaseOpenMany :exec
INSERT INTO cases (kind, task_id, attempt_id, owner, opened_at)
SELECT i.kind, i.task_id, i.attempt_id, @owner::text, @now::timestamptz
FROM (SELECT unnest(@kinds::text[]) AS kind, unnest(@task_ids::uuid[]) AS task_id, unnest(@attempt_ids::uuid[]) AS attempt_id) i
ORDER BY i.attempt_id, i.kind
ON CONFLICT DO NOTHING;

-- name: CaseCloseMany :exec
UPDATE cases c SET closed_at = @now::timestamptz
FROM (SELECT unnest(@kinds::text[]) AS kind, unnest(@attempt_ids::uuid[]) AS attempt_id) i
WHERE c.attempt_id = i.attempt_id AND c.kind = i.kind AND c.closed_at IS NULL;

-- name: CasesOpen :many
SELECT * FROM cases WHERE closed_at IS NULL AND (@kind::text = '' OR kind = @kind) ORDER BY opened_at, id LIMIT @max_rows;

-- name: CaseGet :one
SELECT * FROM cases WHERE id = @id;

-- name: AuditInsertMany :exec
INSERT INTO audit_log (action_id, actor, action, reason, task_id, attempt_id, subject, created_at)
SELECT unnest(@action_ids::uuid[]), unnest(@actors::text[]), unnest(@actions::text[]), unnest(@reasons::text[]),
    unnest(@task_ids::uuid[]), unnest(@attempt_ids::uuid[]), unnest(@subjects::text[]), @now::timestamptz;

-- name: AuditOfTask :many
SELECT * FROM audit_log WHERE task_id = @task_id ORDER BY id;

-- name: AssetInsert :exec
INSERT INTO assets (id, tenant_id, project_id, task_id, attempt_id, kind, content_type, storage_key, size_bytes, sha256, created_at)
VALUES (@id, @tenant_id, @project_id, @task_id, @attempt_id, @kind, @content_type, @storage_key, @size_bytes, @sha256, @created_at)
ON CONFLICT (id) DO NOTHING;

-- name: AssetGet :one
SELECT * FROM assets WHERE id = @id AND project_id = @project_id;
