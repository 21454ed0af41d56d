-- name: StreamTicketClean :execrows
DELETE FROM stream_tickets WHERE ctid = ANY(ARRAY(SELECT t.ctid FROM stream_tickets t WHERE t.expires_at <= @now LIMIT @max_rows FOR UPDATE SKIP LOCKED));

-- name: RevocationClean :execrows
DELETE FROM revocations WHERE id = ANY(ARRAY(SELECT r.id FROM revocations r WHERE r.expires_at <= @now ORDER BY r.id LIMIT @max_rows FOR UPDATE SKIP LOCKED));

-- name: ServerSettings :one
SELECT current_setting('synchronous_commit')::text AS synchronous_commit, current_setting('fsync')::text AS fsync, current_setting('server_version_num')::int AS version;

-- name: DeadLetterClean :execrows
DELETE FROM provider_callback_inbox WHERE id = ANY(ARRAY(
    SELECT i.id FROM provider_callback_inbox i WHERE i.process_status = 'dead' AND i.processed_at < @before
    ORDER BY i.processed_at LIMIT @max_rows FOR UPDATE SKIP LOCKED));

-- name: ConflictClean :execrows
DELETE FROM conflicts WHERE id = ANY(ARRAY(
    SELECT c.id FROM conflicts c WHERE c.closed_at < @before ORDER BY c.closed_at LIMIT @max_rows FOR UPDATE SKIP LOCKED));

-- name: CaseClean :execrows
DELETE FROM cases WHERE id = ANY(ARRAY(
    SELECT c.id FROM cases c WHERE c.closed_at < @before ORDER BY c.closed_at LIMIT @max_rows FOR UPDATE SKIP LOCKED));

-- name: AuditClean :execrows
DELETE FROM audit_log WHERE id = ANY(ARRAY(
    SELECT a.id FROM audit_log a WHERE a.created_at < @before ORDER BY a.created_at LIMIT @max_rows FOR UPDATE SKIP LOCKED));

-- name: PayloadClean :one
-- Takes the payloads out of deliveries that were done before the time, in the order
-- of their outcomes, up to the first that is younger. The mark is the lock: of two
-- nodes one finds it taken and does nothing. A delivery that is done after the mark
-- has passed keeps its payload until the row goes.
WITH mark AS (
    SELECT m.value FROM sweep_marks m WHERE m.name = 'payloads' FOR UPDATE SKIP LOCKED
), upcoming AS (
    SELECT o.inbox_id, o.processed_at FROM inbox_outcomes o
    WHERE o.inbox_id > (SELECT mark.value FROM mark) ORDER BY o.inbox_id LIMIT @max_rows
), stop AS (
    SELECT coalesce(min(u.inbox_id), 9223372036854775807) AS inbox_id FROM upcoming u WHERE u.processed_at >= @before::timestamptz
), due AS (
    SELECT u.inbox_id FROM upcoming u, stop WHERE u.inbox_id < stop.inbox_id
), emptied AS (
    UPDATE provider_callback_inbox i SET payload = NULL, payload_key_version = NULL
    FROM due WHERE i.id = due.inbox_id AND i.payload IS NOT NULL RETURNING 1
), moved AS (
    UPDATE sweep_marks SET value = (SELECT max(due.inbox_id) FROM due) WHERE name = 'payloads' AND EXISTS (SELECT 1 FROM due) RETURNING 1
)
SELECT (SELECT count(*) FROM emptied) AS emptied, (SELECT count(*) FROM due) AS passed, (SELECT count(*) FROM moved) AS moved;

-- name: SweepRecord :exec
INSERT INTO sweep_runs AS s (chore, last_at, last_rows, last_took_ms, failed_at, runs, rows, errors)
SELECT unnest(@chores::text[]), unnest(@last_ats::timestamptz[]), unnest(@last_rows::bigint[]), unnest(@last_took_ms::bigint[]),
    unnest(@failed_ats::timestamptz[]), unnest(@runs::bigint[]), unnest(@rows::bigint[]), unnest(@errors::bigint[])
ORDER BY 1
ON CONFLICT (chore) DO UPDATE SET last_at = greatest(s.last_at, excluded.last_at),
    last_rows = CASE WHEN excluded.last_at >= s.last_at THEN excluded.last_rows ELSE s.last_rows END,
    last_took_ms = CASE WHEN excluded.last_at >= s.last_at THEN excluded.last_took_ms ELSE s.last_took_ms END,
    failed_at = greatest(s.failed_at, excluded.failed_at),
    runs = s.runs + excluded.runs, rows = s.rows + excluded.rows, errors = s.errors + excluded.errors;

-- name: SweepList :many
SELECT * FROM sweep_runs ORDER BY chore;

-- name: DeskBacklog :many
-- Each count stops at ten thousand and goes through an index of what waits, so that
-- the longest backlog is no full scan.
SELECT 'deliveries_pending'::text AS name, (SELECT count(*) FROM (SELECT 1 FROM inbox_queue LIMIT 10000) n) AS rows,
    (SELECT i.received_at FROM provider_callback_inbox i WHERE i.id = (SELECT min(q.inbox_id) FROM inbox_queue q)) AS oldest
UNION ALL
SELECT 'deliveries_retry', count(*), min(r.received_at)
FROM (SELECT i.received_at FROM provider_callback_inbox i WHERE i.process_status = 'retry' LIMIT 10000) r
UNION ALL
SELECT 'deliveries_orphan', count(*), min(r.received_at)
FROM (SELECT i.received_at FROM provider_callback_inbox i WHERE i.process_status = 'orphan' LIMIT 10000) r
UNION ALL
SELECT 'deliveries_dead', count(*), min(r.received_at)
FROM (SELECT i.received_at FROM provider_callback_inbox i WHERE i.process_status = 'dead' ORDER BY i.processed_at LIMIT 10000) r
UNION ALL
SELECT 'reconciliations', count(*), min(r.next_reconcile_at)
FROM (SELECT a.next_reconcile_at FROM task_attempts a WHERE a.next_reconcile_at <= @now ORDER BY a.next_reconcile_at LIMIT 10000) r
UNION ALL
SELECT 'cases', count(*), min(c.opened_at) FROM (SELECT k.opened_at FROM cases k WHERE k.closed_at IS NULL ORDER BY k.opened_at LIMIT 10000) c
UNION ALL
SELECT 'conflicts', count(*), min(c.opened_at) FROM (SELECT k.opened_at FROM conflicts k WHERE k.closed_at IS NULL ORDER BY k.opened_at LIMIT 10000) c;
