-- name: OutboxPending :many
-- The oldest rows of the shards, in (project, event) order, without projects that
-- wait for a retry or are parked.
SELECT o.id, o.shard, o.payload, o.retry_count
FROM (
    SELECT e.id, e.shard, e.project_id, e.event_id, e.payload, e.retry_count FROM outbox_events e
    WHERE e.publish_status = 'pending' AND e.shard = ANY(@shards::smallint[])
      AND NOT EXISTS (SELECT 1 FROM outbox_holds h WHERE h.project_id = e.project_id AND (h.parked_at IS NOT NULL OR h.next_retry_at > @now))
    ORDER BY e.id LIMIT @max_rows
) o
ORDER BY o.project_id, o.event_id;

-- name: OutboxMarkPublished :exec
-- Only rows of shards whose fencing token still stands.
WITH fenced AS (
    SELECT s.shard FROM (SELECT unnest(@shards::smallint[]) AS shard, unnest(@tokens::bigint[]) AS token) w
    JOIN relay_shards s ON s.shard = w.shard AND s.token = w.token
), marked AS (
    UPDATE outbox_events o SET publish_status = 'published', published_at = @now::timestamptz
    WHERE o.id = ANY(@ids::bigint[]) AND o.publish_status = 'pending' AND o.shard IN (SELECT fenced.shard FROM fenced)
    RETURNING o.project_id
)
DELETE FROM outbox_holds h WHERE h.parked_at IS NULL AND h.project_id IN (SELECT marked.project_id FROM marked);

-- name: OutboxCountTry :exec
UPDATE outbox_events SET retry_count = retry_count + 1 WHERE id = ANY(@ids::bigint[]) AND publish_status = 'pending';

-- name: OutboxHoldRaise :exec
-- A failure with 0 tries at most is that of the bus and counts nothing.
INSERT INTO outbox_holds AS h (project_id, retry_count, next_retry_at, parked_at, last_error_code, updated_at)
VALUES (@project_id, sign(@max_tries::int)::int, @next_retry_at, CASE WHEN @max_tries::int = 1 THEN @now::timestamptz END, @last_error_code, @now::timestamptz)
ON CONFLICT (project_id) DO UPDATE SET retry_count = h.retry_count + excluded.retry_count, next_retry_at = excluded.next_retry_at,
    parked_at = CASE WHEN @max_tries::int > 0 AND h.retry_count + 1 >= @max_tries::int THEN coalesce(h.parked_at, @now::timestamptz) ELSE h.parked_at END,
    last_error_code = excluded.last_error_code, updated_at = excluded.updated_at;

-- name: OutboxClean :execrows
DELETE FROM outbox_events WHERE id = ANY(ARRAY(
    SELECT o.id FROM outbox_events o
    WHERE o.publish_status = 'published' AND o.published_at < @before
      AND NOT EXISTS (SELECT 1 FROM bus_retry r WHERE r.outbox_id = o.id)
    ORDER BY o.published_at LIMIT @max_rows FOR UPDATE SKIP LOCKED
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
