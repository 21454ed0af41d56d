-- name: OperationInsertMany :exec
INSERT INTO operations (id, task_id, attempt_id, operation_type, next_at, created_at)
SELECT unnest(@ids::uuid[]), unnest(@task_ids::uuid[]), unnest(@attempt_ids::uuid[]), unnest(@types::text[]), @now::timestamptz, @now::timestamptz
ON CONFLICT DO NOTHING;

-- name: OperationRestartMany :exec
-- Makes finished operations due again.
UPDATE operations o SET status = 'pending', tries = 0, next_at = @now::timestamptz, lease = NULL, lease_until = NULL,
    error_code = NULL, failed_at = NULL, failed_tries = 0, finished_at = NULL
FROM (SELECT unnest(@task_ids::uuid[]) AS task_id, unnest(@attempt_ids::uuid[]) AS attempt_id, unnest(@types::text[]) AS operation_type) i
WHERE o.task_id = i.task_id AND o.attempt_id = i.attempt_id AND o.operation_type = i.operation_type AND o.status <> 'pending';

-- name: OperationLock :many
SELECT id, lease, lease_until, status FROM operations WHERE id = ANY(@ids::uuid[]) ORDER BY id FOR NO KEY UPDATE;

-- name: OperationFinishMany :exec
UPDATE operations o SET status = i.status, error_code = NULLIF(i.error_code, ''), lease = NULL, lease_until = NULL, finished_at = @now::timestamptz
FROM (SELECT unnest(@ids::uuid[]) AS id, unnest(@statuses::text[]) AS status, unnest(@error_codes::text[]) AS error_code) i
WHERE o.id = i.id;

-- name: OperationClaim :many
WITH due AS (
    SELECT o.id, o.next_at AS due_at FROM operations o
    WHERE o.operation_type = @operation_type AND o.status = 'pending' AND o.next_at <= @now
      AND (o.lease_until IS NULL OR o.lease_until <= @now)
    ORDER BY o.next_at LIMIT @max_rows FOR NO KEY UPDATE SKIP LOCKED
), leased AS (
    UPDATE operations o SET lease = @lease::uuid, lease_until = @lease_until::timestamptz, tries = o.tries + 1
    FROM due WHERE o.id = due.id
    RETURNING o.id, o.task_id, o.attempt_id, o.tries, due.due_at
)
SELECT leased.id, leased.tries, sqlc.embed(t), sqlc.embed(a)
FROM leased
JOIN generation_tasks t ON t.id = leased.task_id
JOIN task_attempts a ON a.id = leased.attempt_id
ORDER BY leased.due_at;

-- name: OperationRelease :execrows
UPDATE operations SET lease = NULL, lease_until = NULL, next_at = @next_at, error_code = @error_code, failed_at = @now::timestamptz, failed_tries = tries,
    tries = tries - CASE WHEN @untried::boolean THEN 1 ELSE 0 END
WHERE id = @id AND lease = @lease AND status = 'pending';

-- name: OperationsOfTask :many
SELECT * FROM operations WHERE task_id = @task_id ORDER BY created_at;
