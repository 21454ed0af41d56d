-- Timers that are due, the longest due first. The order is by time, never by id,
-- or an old attempt would starve the others.

-- name: WorkSubmit :many
WITH due AS (
    SELECT a.id FROM task_attempts a
    WHERE a.status = 'created' AND a.next_submit_at IS NOT NULL AND a.next_submit_at <= @now
      AND (a.submit_lease_until IS NULL OR a.submit_lease_until <= @now)
      AND (@provider::text = '' OR a.provider = @provider) AND (@account_id::text = '' OR a.account_id = @account_id)
      AND NOT (a.provider || ':' || a.account_id = ANY(@left_out::text[]))
    ORDER BY a.next_submit_at LIMIT @max_rows FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE task_attempts a SET submit_lease = @lease::uuid, submit_lease_until = @lease_until::timestamptz
FROM due, generation_tasks t, task_inputs i
WHERE a.id = due.id AND t.id = a.task_id AND i.task_id = a.task_id
RETURNING sqlc.embed(t), sqlc.embed(a), sqlc.embed(i);

-- name: WorkSubmitExpired :many
SELECT id FROM task_attempts
WHERE status = 'submitting' AND submit_lease_until <= @now
  AND (@provider::text = '' OR provider = @provider) AND (@account_id::text = '' OR account_id = @account_id)
  AND NOT (provider || ':' || account_id = ANY(@left_out::text[]))
ORDER BY submit_lease_until LIMIT @max_rows;

-- name: WorkPoll :many
-- What somebody waits for comes first, up to first_rows; the others get what is
-- left. Whether the next query of an attempt comes first is settled here, in the
-- write that takes the lease: while its project is watched, and from 0.7 to twice
-- the P95 of its model. Rows are locked as they are read, so no more than max_rows.
WITH first AS (
    SELECT a.id FROM task_attempts a
    WHERE a.next_poll_at IS NOT NULL AND (a.poll_first OR a.poll_hint_at IS NOT NULL) AND a.next_poll_at <= @now
      AND (a.poll_lease_until IS NULL OR a.poll_lease_until <= @now)
      AND (@provider::text = '' OR a.provider = @provider) AND (@account_id::text = '' OR a.account_id = @account_id)
      AND NOT (a.provider || ':' || a.account_id = ANY(@left_out::text[]))
    ORDER BY a.next_poll_at LIMIT @first_rows FOR NO KEY UPDATE SKIP LOCKED
), rest AS (
    SELECT a.id FROM task_attempts a
    WHERE a.next_poll_at IS NOT NULL AND NOT (a.poll_first OR a.poll_hint_at IS NOT NULL) AND a.next_poll_at <= @now
      AND (a.poll_lease_until IS NULL OR a.poll_lease_until <= @now)
      AND (@provider::text = '' OR a.provider = @provider) AND (@account_id::text = '' OR a.account_id = @account_id)
      AND NOT (a.provider || ':' || a.account_id = ANY(@left_out::text[]))
    ORDER BY a.next_poll_at LIMIT @max_rows FOR NO KEY UPDATE SKIP LOCKED
), due AS (
    SELECT first.id FROM first UNION ALL SELECT rest.id FROM rest LIMIT @max_rows
)
UPDATE task_attempts a SET
    poll_lease = @lease::uuid, poll_lease_until = @lease_until::timestamptz,
    poll_first = EXISTS (SELECT 1 FROM watched_projects w WHERE w.project_id = t.project_id AND w.until > @now)
        OR EXISTS (SELECT 1 FROM model_durations m WHERE m.provider = a.provider AND m.model = a.model
            AND a.submitted_at + make_interval(secs => m.p95_ms * 0.0007) <= @now
            AND a.submitted_at + make_interval(secs => m.p95_ms * 0.002) > @now)
FROM due, generation_tasks t
WHERE a.id = due.id AND t.id = a.task_id
RETURNING sqlc.embed(t), sqlc.embed(a);

-- name: WorkReconcile :many
WITH due AS (
    SELECT a.id FROM task_attempts a
    WHERE a.next_reconcile_at IS NOT NULL AND a.next_reconcile_at <= @now
      AND (a.poll_lease_until IS NULL OR a.poll_lease_until <= @now)
      AND (@provider::text = '' OR a.provider = @provider) AND (@account_id::text = '' OR a.account_id = @account_id)
      AND NOT (a.provider || ':' || a.account_id = ANY(@left_out::text[]))
    ORDER BY a.next_reconcile_at LIMIT @max_rows FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE task_attempts a SET poll_lease = @lease::uuid, poll_lease_until = @lease_until::timestamptz
FROM due, generation_tasks t, task_inputs i
WHERE a.id = due.id AND t.id = a.task_id AND i.task_id = a.task_id
RETURNING sqlc.embed(t), sqlc.embed(a), sqlc.embed(i);

-- name: WorkProgress :many
SELECT id FROM task_attempts
WHERE deferred_until IS NOT NULL AND deferred_until <= @now
  AND (@provider::text = '' OR provider = @provider) AND (@account_id::text = '' OR account_id = @account_id)
  AND NOT (provider || ':' || account_id = ANY(@left_out::text[]))
ORDER BY deferred_until LIMIT @max_rows;

-- name: WorkOverdue :many
-- Measured from the submit, or from the creation where no vendor would take it
-- yet. An unknown submit has a case of its own already.
SELECT id FROM task_attempts
WHERE NOT overdue AND terminal_at IS NULL AND COALESCE(submitted_at, created_at) < @before::timestamptz
  AND status <> 'submit_unknown'
  AND (@provider::text = '' OR provider = @provider) AND (@account_id::text = '' OR account_id = @account_id)
  AND NOT (provider || ':' || account_id = ANY(@left_out::text[]))
ORDER BY COALESCE(submitted_at, created_at) LIMIT @max_rows;

-- name: WorkPutOffPolls :execrows
-- The place in the queue stays: only the lease ends at another time.
UPDATE task_attempts a SET poll_lease_until = i.due_at
FROM (SELECT unnest(@ids::uuid[]) AS id, unnest(@due_ats::timestamptz[]) AS due_at) i
WHERE a.id = i.id AND a.id = ANY(ARRAY(
    SELECT o.id FROM task_attempts o WHERE o.id = ANY(@ids::uuid[]) AND o.poll_lease = @lease::uuid ORDER BY o.id FOR NO KEY UPDATE));

-- name: WorkPutOffSubmits :execrows
UPDATE task_attempts a SET submit_lease_until = i.due_at
FROM (SELECT unnest(@ids::uuid[]) AS id, unnest(@due_ats::timestamptz[]) AS due_at) i
WHERE a.id = i.id AND a.id = ANY(ARRAY(
    SELECT o.id FROM task_attempts o WHERE o.id = ANY(@ids::uuid[]) AND o.submit_lease = @lease::uuid AND o.status = 'created'
    ORDER BY o.id FOR NO KEY UPDATE));
