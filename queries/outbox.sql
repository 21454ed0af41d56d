-- name: OutboxPending :many
-- The oldest rows of the shards, without projects that wait for a retry, are parked
-- or are to be skipped. The caller sorts them: here it was half of the cost.
SELECT o.id, o.shard, o.project_id, o.event_id, o.aggregate_id, o.aggregate_version, o.event_type, o.payload, o.created_at,
    coalesce(h.retry_count, 0)::int AS tries
FROM (
    SELECT q.outbox_id FROM outbox_queue q
    WHERE q.shard = ANY(@shards::smallint[]) AND NOT (q.project_id = ANY(@skip::uuid[]))
      AND NOT EXISTS (SELECT 1 FROM outbox_holds b WHERE b.project_id = q.project_id AND (b.parked_at IS NOT NULL OR b.next_retry_at > @now))
    ORDER BY q.outbox_id LIMIT @max_rows
) w
CROSS JOIN LATERAL (
    -- LIMIT keeps the planner from joining by a walk over all of outbox_events,
    -- which it prefers while it has no statistics.
    SELECT * FROM outbox_events e WHERE e.id = w.outbox_id LIMIT 1
) o
LEFT JOIN outbox_holds h ON h.project_id = o.project_id;

-- name: OutboxMarkPublished :exec
-- Only rows of shards whose fencing token still stands.
WITH fenced AS (
    SELECT s.shard FROM (SELECT unnest(@shards::smallint[]) AS shard, unnest(@tokens::bigint[]) AS token) w
    JOIN relay_shards s ON s.shard = w.shard AND s.token = w.token
), published AS (
    DELETE FROM outbox_queue q WHERE q.outbox_id = ANY(@ids::bigint[]) AND q.shard IN (SELECT fenced.shard FROM fenced)
    RETURNING q.project_id
)
DELETE FROM outbox_holds h WHERE h.parked_at IS NULL AND h.project_id IN (SELECT published.project_id FROM published);

-- name: OutboxHoldRaise :one
-- Counts a refusal of a project whose shard's fencing token still stands, and
-- reports whether it is the one that parks.
INSERT INTO outbox_holds AS h (project_id, retry_count, next_retry_at, parked_at, last_error_code, updated_at)
SELECT @project_id, 1, @next_retry_at, CASE WHEN @max_tries::int <= 1 THEN @now::timestamptz END, @last_error_code, @now::timestamptz
WHERE EXISTS (SELECT 1 FROM relay_shards s WHERE s.shard = @shard AND s.token = @token)
ON CONFLICT (project_id) DO UPDATE SET retry_count = h.retry_count + 1, next_retry_at = excluded.next_retry_at,
    parked_at = CASE WHEN h.retry_count + 1 >= @max_tries::int THEN coalesce(h.parked_at, @now::timestamptz) ELSE h.parked_at END,
    last_error_code = excluded.last_error_code, updated_at = excluded.updated_at
RETURNING coalesce(h.parked_at = @now::timestamptz, false)::bool AS parked;

-- name: OutboxSetAside :exec
-- Moves the rows of parked projects out of the queue. The holds are locked, so that
-- an end of the parking does not leave rows behind here.
WITH parked AS (
    SELECT h.project_id FROM outbox_holds h WHERE h.parked_at IS NOT NULL ORDER BY h.project_id FOR UPDATE
), moved AS (
    DELETE FROM outbox_queue q WHERE q.project_id IN (SELECT parked.project_id FROM parked)
    RETURNING q.outbox_id, q.shard, q.project_id
)
INSERT INTO outbox_parked (outbox_id, shard, project_id) SELECT m.outbox_id, m.shard, m.project_id FROM moved m;

-- name: OutboxAnyParked :one
SELECT EXISTS (SELECT 1 FROM outbox_holds WHERE parked_at IS NOT NULL)::bool AS parked;

-- name: OutboxParked :many
SELECT h.project_id, h.retry_count, h.last_error_code, h.parked_at::timestamptz AS since,
    ((SELECT count(*) FROM outbox_parked p WHERE p.project_id = h.project_id)
        + (SELECT count(*) FROM outbox_queue q WHERE q.project_id = h.project_id))::bigint AS row_count
FROM outbox_holds h
WHERE h.parked_at IS NOT NULL AND (@project_id::uuid IS NULL OR h.project_id = @project_id::uuid)
ORDER BY h.parked_at, h.project_id LIMIT @max_rows;

-- name: OutboxUnhold :execrows
DELETE FROM outbox_holds WHERE project_id = @project_id AND parked_at IS NOT NULL;

-- name: OutboxTakeBack :exec
WITH moved AS (
    DELETE FROM outbox_parked p WHERE p.project_id = @project_id RETURNING p.outbox_id, p.shard, p.project_id
)
INSERT INTO outbox_queue (outbox_id, shard, project_id) SELECT m.outbox_id, m.shard, m.project_id FROM moved m ORDER BY m.outbox_id;

-- name: OutboxBacklog :one
-- What waits, and the age of its oldest row; parked projects are counted apart.
SELECT q.row_count::bigint AS row_count, o.created_at, (SELECT count(*) FROM outbox_holds WHERE parked_at IS NOT NULL)::bigint AS parked
FROM (SELECT count(*) AS row_count, min(outbox_id) AS oldest FROM outbox_queue w
    WHERE NOT EXISTS (SELECT 1 FROM outbox_holds h WHERE h.project_id = w.project_id AND h.parked_at IS NOT NULL)) q
LEFT JOIN outbox_events o ON o.id = q.oldest;

-- name: OutboxClean :execrows
-- The oldest rows first, which fill whole pages: vacuum gives those back to the
-- next inserts.
DELETE FROM outbox_events WHERE id = ANY(ARRAY(
    SELECT o.id FROM outbox_events o
    WHERE o.created_at < @before
      AND NOT EXISTS (SELECT 1 FROM outbox_queue q WHERE q.outbox_id = o.id)
      AND NOT EXISTS (SELECT 1 FROM outbox_parked p WHERE p.outbox_id = o.id)
      AND NOT EXISTS (SELECT 1 FROM bus_retry r WHERE r.outbox_id = o.id)
    ORDER BY o.id LIMIT @max_rows FOR UPDATE SKIP LOCKED
));

-- name: RelayLock :exec
-- One owner arranges its shards at a time; held to the end of the transaction.
SELECT pg_advisory_xact_lock(hashtext('aivedio_relay_shards'));

-- name: RelayOwnerBeat :exec
INSERT INTO relay_owners (owner, live_until) VALUES (@owner, @live_until)
ON CONFLICT (owner) DO UPDATE SET live_until = excluded.live_until;

-- name: RelayOwnersLive :one
SELECT count(*) FROM relay_owners WHERE live_until > @now;

-- name: RelayOwnersClean :exec
DELETE FROM relay_owners WHERE live_until < @before;

-- name: RelayOwnerDrop :exec
DELETE FROM relay_owners WHERE owner = @owner;

-- name: RelayShards :many
SELECT * FROM relay_shards ORDER BY shard FOR NO KEY UPDATE;

-- name: RelayShardsTake :exec
UPDATE relay_shards SET token = token + CASE WHEN owner IS NOT DISTINCT FROM @owner::uuid THEN 0 ELSE 1 END,
    owner = @owner::uuid, lease_until = @lease_until
WHERE shard = ANY(@shards::smallint[]);

-- name: RelayShardsFree :exec
-- The token rises at the next taking.
UPDATE relay_shards SET owner = NULL, lease_until = 'epoch' WHERE shard = ANY(@shards::smallint[]) AND owner = @owner::uuid;

-- name: BusRetryAdd :exec
INSERT INTO bus_retry (group_name, outbox_id, project_id, event_id, next_at)
SELECT @group_name::text, o.id, o.project_id, o.event_id, @next_at::timestamptz
FROM outbox_events o WHERE o.id = ANY(@outbox_ids::bigint[]) ORDER BY o.id
ON CONFLICT (group_name, outbox_id) DO NOTHING;

-- name: BusRetryDue :many
-- Owed events in order. One that waits holds back the later ones of its project.
SELECT o.id, o.shard, o.payload, r.attempts
FROM bus_retry r JOIN outbox_events o ON o.id = r.outbox_id
WHERE r.group_name = @group_name AND r.next_at <= @now
  AND NOT EXISTS (
    SELECT 1 FROM bus_retry e
    WHERE e.group_name = r.group_name AND e.project_id = r.project_id AND e.event_id < r.event_id AND e.next_at > @now)
ORDER BY r.project_id, r.event_id LIMIT @max_rows;

-- name: BusRetrySettle :exec
WITH gone AS (
    DELETE FROM bus_retry r WHERE r.group_name = @group_name AND r.outbox_id = ANY(@delivered::bigint[]) RETURNING 1
)
UPDATE bus_retry f SET next_at = @next_at, attempts = f.attempts + 1
WHERE f.group_name = @group_name AND f.outbox_id = ANY(@failed::bigint[]);
