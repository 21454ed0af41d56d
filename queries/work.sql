-- Timers that are due, the longest due first. The order is by time, never by id,
-- or an old attempt would starve the others.

-- name: WorkSubmit :many
SELECT id FROM task_attempts
WHERE status = 'created' AND next_submit_at IS NOT NULL AND next_submit_at <= @now
  AND (@provider::text = '' OR provider = @provider) AND (@account_id::text = '' OR account_id = @account_id)
  AND NOT (provider || ':' || account_id = ANY(@left_out::text[]))
ORDER BY next_submit_at LIMIT @max_rows;

-- name: WorkSubmitExpired :many
SELECT id FROM task_attempts
WHERE status = 'submitting' AND submit_lease_until <= @now
  AND (@provider::text = '' OR provider = @provider) AND (@account_id::text = '' OR account_id = @account_id)
  AND NOT (provider || ':' || account_id = ANY(@left_out::text[]))
ORDER BY submit_lease_until LIMIT @max_rows;

-- name: WorkPoll :many
WITH due AS (
    SELECT a.id, a.next_poll_at AS due_at FROM task_attempts a
    WHERE a.next_poll_at IS NOT NULL AND a.next_poll_at <= @now
      AND (a.poll_lease_until IS NULL OR a.poll_lease_until <= @now)
      AND (@provider::text = '' OR a.provider = @provider) AND (@account_id::text = '' OR a.account_id = @account_id)
      AND NOT (a.provider || ':' || a.account_id = ANY(@left_out::text[]))
    ORDER BY a.next_poll_at LIMIT @max_rows FOR NO KEY UPDATE SKIP LOCKED
), leased AS (
    UPDATE task_attempts a SET poll_lease = @lease::uuid, poll_lease_until = @lease_until::timestamptz
    FROM due WHERE a.id = due.id
    RETURNING a.id, due.due_at
)
SELECT leased.id FROM leased ORDER BY leased.due_at;

-- name: WorkReconcile :many
WITH due AS (
    SELECT a.id, a.next_reconcile_at AS due_at FROM task_attempts a
    WHERE a.next_reconcile_at IS NOT NULL AND a.next_reconcile_at <= @now
      AND (a.poll_lease_until IS NULL OR a.poll_lease_until <= @now)
      AND (@provider::text = '' OR a.provider = @provider) AND (@account_id::text = '' OR a.account_id = @account_id)
      AND NOT (a.provider || ':' || a.account_id = ANY(@left_out::text[]))
    ORDER BY a.next_reconcile_at LIMIT @max_rows FOR NO KEY UPDATE SKIP LOCKED
), leased AS (
    UPDATE task_attempts a SET poll_lease = @lease::uuid, poll_lease_until = @lease_until::timestamptz
    FROM due WHERE a.id = due.id
    RETURNING a.id, due.due_at
)
SELECT leased.id FROM leased ORDER BY leased.due_at;

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
