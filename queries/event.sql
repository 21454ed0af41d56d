-- name: StreamLock :exec
-- Always ordered: without it sixteen writers deadlocked.
SELECT project_id FROM project_streams WHERE project_id = ANY(@project_ids::uuid[]) ORDER BY project_id FOR NO KEY UPDATE;

-- name: StreamInsert :exec
INSERT INTO project_streams (project_id) VALUES (@project_id) ON CONFLICT DO NOTHING;

-- name: StreamHead :one
SELECT * FROM project_streams WHERE project_id = @project_id;

-- name: StreamHeads :many
SELECT project_id, last_event_id FROM project_streams WHERE project_id = ANY(@project_ids::uuid[]) AND last_event_id > 0;

-- name: EventAppend :many
-- The only statement that writes events. It advances the counters of the locked
-- streams, numbers the events of each project in the order of the input, inserts
-- them with their outbox rows and brings the tasks to their new values. Any count
-- that is not what it has to be ends the transaction.
--
-- Each row is an event with the task behind it; the newest one of a task is final
-- and carries the version that the task had when it was locked. The message lacks
-- its number, its time and its closing brace, which are put behind it.
WITH input AS (
    SELECT unnest(@ords::int[]) AS ord, unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@project_ids::uuid[]) AS project_id,
        unnest(@user_ids::uuid[]) AS user_id, unnest(@task_ids::uuid[]) AS task_id, unnest(@attempt_ids::uuid[]) AS attempt_id,
        unnest(@versions::bigint[]) AS version, unnest(@event_types::text[]) AS event_type, unnest(@payloads::text[]) AS payload,
        unnest(@messages::text[]) AS message, unnest(@sources::text[]) AS source, unnest(@trace_ids::uuid[]) AS trace_id,
        unnest(@shards::smallint[]) AS shard,
        unnest(@finals::bool[]) AS final, unnest(@versions_before::bigint[]) AS version_before,
        unnest(@statuses::text[]) AS status, unnest(@phases::text[]) AS phase, unnest(@cancels::text[]) AS cancel,
        unnest(@unknown_sinces::timestamptz[]) AS unknown_since, unnest(@stages::text[]) AS stage,
        unnest(@progresses::smallint[]) AS progress, unnest(@current_attempt_ids::uuid[]) AS current_attempt_id,
        unnest(@attempt_counts::int[]) AS attempt_count, unnest(@asset_ids::uuid[]) AS asset_id,
        unnest(@error_codes::text[]) AS error_code, unnest(@error_retryables::bool[]) AS error_retryable,
        unnest(@error_trace_ids::uuid[]) AS error_trace_id,
        unnest(@updated_ats::timestamptz[]) AS updated_at, unnest(@terminal_ats::timestamptz[]) AS terminal_at
), counted AS (
    SELECT input.project_id, count(*) AS n, max(input.ord) AS ord FROM input GROUP BY input.project_id
), advanced AS (
    UPDATE project_streams s SET
        last_event_id = s.last_event_id + c.n,
        last_at = greatest(s.last_at, aivedio_clock(@now::timestamptz)),
        last_task_id = i.task_id, last_task_version = i.version
    FROM counted c JOIN input i ON i.ord = c.ord
    WHERE s.project_id = c.project_id
    RETURNING s.project_id, s.last_event_id - c.n AS base, s.last_at AS at
), numbered AS (
    SELECT i.*, a.at, (a.base + row_number() OVER (PARTITION BY i.project_id ORDER BY i.ord))::bigint AS event_id
    FROM input i JOIN advanced a ON a.project_id = i.project_id
), events AS (
    INSERT INTO task_events (event_id, tenant_id, project_id, user_id, task_id, attempt_id, task_version, event_type,
        public_payload, source, trace_id, occurred_at, created_at)
    SELECT n.event_id, n.tenant_id, n.project_id, n.user_id, n.task_id, n.attempt_id, n.version, n.event_type,
        n.payload::jsonb, n.source, n.trace_id, @now::timestamptz, n.at
    FROM numbered n
    RETURNING 1
), outbox AS (
    INSERT INTO outbox_events (shard, project_id, event_id, aggregate_type, aggregate_id, aggregate_version, event_type, payload, created_at)
    SELECT o.shard, o.project_id, o.event_id, 'task', o.task_id, o.version, o.event_type,
        concat(o.message, ',"event_id":', o.event_id, ',"occurred_at":"',
            to_char(o.at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'), '"}')::json,
        o.at
    FROM numbered o
    ORDER BY o.ord
    RETURNING outbox_events.id, outbox_events.shard, outbox_events.project_id
), waiting AS (
    INSERT INTO outbox_queue (outbox_id, shard, project_id) SELECT w.id, w.shard, w.project_id FROM outbox w
    RETURNING 1
), tasks AS (
    UPDATE generation_tasks t SET
        version = c.version, last_event_id = c.event_id, status = c.status, phase = c.phase, cancel = c.cancel,
        unknown_since = c.unknown_since, stage = c.stage, progress = NULLIF(c.progress, '-1'::smallint),
        current_attempt_id = c.current_attempt_id, attempt_count = c.attempt_count, asset_id = c.asset_id,
        error_code = NULLIF(c.error_code, ''),
        error_retryable = CASE WHEN c.error_code = '' THEN NULL ELSE c.error_retryable END,
        error_trace_id = c.error_trace_id, updated_at = c.updated_at, terminal_at = c.terminal_at
    FROM numbered c
    WHERE c.final AND t.id = c.task_id AND t.version = c.version_before
    RETURNING 1
), checked AS (
    SELECT aivedio_expect('streams', (SELECT count(*) FROM counted), (SELECT count(*) FROM advanced))
       AND aivedio_expect('events', (SELECT count(*) FROM input), (SELECT count(*) FROM events))
       AND aivedio_expect('outbox', (SELECT count(*) FROM input), (SELECT count(*) FROM waiting))
       AND aivedio_expect('tasks', (SELECT count(*) FROM input WHERE input.final), (SELECT count(*) FROM tasks)) AS ok
)
SELECT n.ord::int AS ord, n.event_id::bigint AS event_id, n.at::timestamptz AS at
FROM checked LEFT JOIN numbered n ON checked.ok
ORDER BY n.ord;

-- name: EventsFrom :many
-- Events at and after a number. The bound on created_at lets whole days be
-- skipped; the caller widens it when the first row is not the one it asked for.
SELECT * FROM task_events
WHERE project_id = @project_id AND event_id >= @event_id AND created_at >= @since
ORDER BY event_id LIMIT @max_rows;

-- name: EventsSince :many
SELECT * FROM task_events WHERE created_at >= @since ORDER BY created_at, project_id, event_id LIMIT @max_rows;

-- name: StreamRepair :many
-- Raises counters that are behind their newest event, as after a partial restore:
-- one look into an index for each project.
WITH behind AS (
    SELECT s.project_id, n.event_id, n.task_id, n.task_version, n.created_at
    FROM project_streams s
    CROSS JOIN LATERAL (
        SELECT e.event_id, e.task_id, e.task_version, e.created_at FROM task_events e
        WHERE e.project_id = s.project_id AND e.event_id > s.last_event_id
        ORDER BY e.event_id DESC LIMIT 1
    ) n
    ORDER BY s.project_id LIMIT @max_rows FOR NO KEY UPDATE OF s
)
UPDATE project_streams s SET last_event_id = b.event_id, last_at = greatest(s.last_at, b.created_at),
    last_task_id = b.task_id, last_task_version = b.task_version
FROM behind b
WHERE s.project_id = b.project_id AND s.last_event_id < b.event_id
RETURNING s.project_id;

-- name: PartitionsMake :one
SELECT aivedio_make_partitions(@days_ahead::int)::int AS made;

-- name: PartitionsDrop :one
SELECT aivedio_drop_partitions(@days_kept::int)::int AS dropped;

-- name: PartitionDaysAhead :one
SELECT aivedio_partition_days_ahead()::int AS days;

-- name: EventsOfTask :many
SELECT * FROM task_events WHERE task_id = @task_id ORDER BY task_version;
