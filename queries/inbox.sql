-- name: InboxInsertMany :many
-- A group of deliveries with their queue entries. The order by key keeps
-- concurrent groups from locking each other out.
WITH input AS (
    SELECT unnest(@providers::text[]) AS provider, unnest(@account_ids::text[]) AS account_id, unnest(@dedup_keys::text[]) AS dedup_key,
        unnest(@trusts::text[]) AS trust, unnest(@provider_event_ids::text[]) AS provider_event_id,
        unnest(@provider_task_ids::text[]) AS provider_task_id, unnest(@client_request_ids::text[]) AS client_request_id,
        unnest(@token_hashes::bytea[]) AS token_hash, unnest(@provider_occurred_ats::timestamptz[]) AS provider_occurred_at,
        unnest(@received_ats::timestamptz[]) AS received_at, unnest(@signature_key_versions::text[]) AS signature_key_version,
        unnest(@payload_hashes::bytea[]) AS payload_hash, unnest(@payloads::bytea[]) AS payload,
        unnest(@payload_key_versions::text[]) AS payload_key_version, unnest(@trace_ids::uuid[]) AS trace_id,
        unnest(@shards::smallint[]) AS shard
), stored AS (
    INSERT INTO provider_callback_inbox (provider, account_id, dedup_key, trust, provider_event_id, provider_task_id,
        client_request_id, token_hash, provider_occurred_at, received_at, signature_key_version, payload_hash, payload,
        payload_key_version, trace_id, shard)
    SELECT i.provider, i.account_id, i.dedup_key, i.trust, NULLIF(i.provider_event_id, ''), NULLIF(i.provider_task_id, ''),
        NULLIF(i.client_request_id, ''), NULLIF(i.token_hash, ''::bytea), i.provider_occurred_at, i.received_at,
        NULLIF(i.signature_key_version, ''), i.payload_hash, i.payload, i.payload_key_version, i.trace_id, i.shard
    FROM input i ORDER BY i.provider, i.dedup_key
    ON CONFLICT (provider, dedup_key) DO NOTHING
    RETURNING id, provider, dedup_key, shard
), queued AS (
    INSERT INTO inbox_queue (inbox_id, shard) SELECT stored.id, stored.shard FROM stored RETURNING 1
)
SELECT stored.provider, stored.dedup_key FROM stored;

-- name: InboxHashes :many
SELECT i.id, i.provider, i.dedup_key, i.payload_hash
FROM (SELECT unnest(@providers::text[]) AS provider, unnest(@dedup_keys::text[]) AS dedup_key) w
JOIN provider_callback_inbox i ON i.provider = w.provider AND i.dedup_key = w.dedup_key;

-- name: InboxPeek :one
-- Writes into the worker's own row what it is about to take, before the
-- transaction that takes it. Rows of shards in another worker's hand are left
-- out, and a row that a worker died with comes alone. With a literal LIMIT the plan
-- is an index scan that stops early; above keeps it from walking over what was taken
-- since the last vacuum. The array of shards has it planned for each call, and must:
-- a plan that was made while the queue was empty would sort a long one. The note is
-- about deaths of workers, not of the server, so its commit waits for no disk. No row:
-- nothing is due.
WITH held AS (
    SELECT unnest(w.shards) AS shard FROM inbox_workers w WHERE w.worker_id <> @worker_id AND w.inbox_ids <> '{}'
), suspect AS (
    SELECT q.inbox_id, q.shard FROM inbox_queue q
    WHERE q.deaths > 0 AND q.shard = ANY(@shards::smallint[]) AND q.shard NOT IN (SELECT held.shard FROM held)
    ORDER BY q.inbox_id LIMIT 1
), due AS (
    SELECT q.inbox_id, q.shard FROM inbox_queue q
    WHERE q.inbox_id > @above::bigint AND q.shard = ANY(@shards::smallint[]) AND q.shard NOT IN (SELECT held.shard FROM held)
    ORDER BY q.inbox_id LIMIT 256
), picked AS (
    SELECT suspect.inbox_id, suspect.shard FROM suspect
    UNION ALL
    SELECT d.inbox_id, d.shard FROM (
        SELECT due.inbox_id, due.shard, row_number() OVER (ORDER BY due.inbox_id) AS n FROM due
    ) d
    WHERE d.n <= @max_rows::int AND NOT EXISTS (SELECT 1 FROM suspect)
), summed AS (
    SELECT array_agg(picked.inbox_id ORDER BY picked.inbox_id) AS ids, array_agg(DISTINCT picked.shard) AS shards FROM picked
)
INSERT INTO inbox_workers AS w (worker_id, backend_pid, backend_start, shards, inbox_ids, taken_at)
SELECT @worker_id, pg_backend_pid(), a.backend_start, summed.shards, summed.ids, clock_timestamp()
FROM summed, pg_stat_get_activity(pg_backend_pid()) a
WHERE summed.ids IS NOT NULL AND set_config('synchronous_commit', 'off', true) = 'off'
ON CONFLICT (worker_id) DO UPDATE SET backend_pid = excluded.backend_pid, backend_start = excluded.backend_start,
    shards = excluded.shards, inbox_ids = excluded.inbox_ids, taken_at = excluded.taken_at
RETURNING w.inbox_ids, w.shards, EXISTS (SELECT 1 FROM held WHERE held.shard = ANY(@shards::smallint[]))::boolean AS passed_over;

-- name: InboxClaim :many
-- The first statement of the transaction: a crash gives the rows back. A shard
-- that another worker holds is passed over, so that the rows of one job are taken
-- in order by one worker at a time.
WITH locked AS MATERIALIZED (
    SELECT s.shard FROM (SELECT unnest(@shards::smallint[]) AS shard) s
    WHERE pg_try_advisory_xact_lock(@lock_class::int, s.shard::int)
), taken AS (
    DELETE FROM inbox_queue d WHERE d.inbox_id = ANY(ARRAY(
        SELECT q.inbox_id FROM inbox_queue q
        WHERE q.inbox_id = ANY(@inbox_ids::bigint[]) AND q.shard IN (SELECT locked.shard FROM locked)
        ORDER BY q.inbox_id FOR UPDATE SKIP LOCKED
    ))
    RETURNING d.inbox_id, d.deaths
)
SELECT taken.deaths, sqlc.embed(i) FROM taken JOIN provider_callback_inbox i ON i.id = taken.inbox_id ORDER BY taken.inbox_id;

-- name: InboxWorkerClear :exec
UPDATE inbox_workers SET inbox_ids = '{}', shards = '{}' WHERE worker_id = @worker_id;

-- name: InboxWorkersClean :exec
DELETE FROM inbox_workers WHERE inbox_ids = '{}' AND taken_at < @before;

-- name: InboxReap :many
-- Workers whose connection is gone with rows in hand. Their rows come alone from
-- now on.
WITH dead AS (
    SELECT w.worker_id, w.inbox_ids FROM inbox_workers w
    WHERE w.inbox_ids <> '{}' AND w.taken_at < clock_timestamp() - make_interval(secs => @grace_seconds::float8)
      AND NOT EXISTS (
        SELECT 1 FROM pg_stat_get_activity(NULL) s
        WHERE s.pid = w.backend_pid AND (s.backend_start IS NULL OR s.backend_start = w.backend_start))
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM inbox_workers w USING dead WHERE w.worker_id = dead.worker_id RETURNING 1
)
UPDATE inbox_queue q SET deaths = q.deaths + 1
FROM dead WHERE q.inbox_id = ANY(dead.inbox_ids)
RETURNING q.inbox_id, q.deaths;

-- name: InboxOutcomeInsertMany :exec
-- A delivery ends once: its queue entry is gone in the same transaction.
INSERT INTO inbox_outcomes (inbox_id, verdict, reason, processed_at)
SELECT unnest(@inbox_ids::bigint[]), unnest(@verdicts::text[]), unnest(@reasons::text[]), @now::timestamptz;

-- name: InboxSetMany :exec
-- The rare ends of a delivery: retry, orphan, dead.
UPDATE provider_callback_inbox b SET process_status = i.status, claim_count = b.claim_count + 1, error_count = i.error_count,
    next_retry_at = i.next_retry_at, last_error_code = NULLIF(i.last_error_code, ''), processed_at = i.processed_at
FROM (
    SELECT unnest(@ids::bigint[]) AS id, unnest(@statuses::text[]) AS status, unnest(@error_counts::int[]) AS error_count,
        unnest(@next_retry_ats::timestamptz[]) AS next_retry_at, unnest(@last_error_codes::text[]) AS last_error_code,
        unnest(@processed_ats::timestamptz[]) AS processed_at
) i
WHERE b.id = i.id;

-- name: InboxBury :execrows
WITH lost AS (
    SELECT i.id, i.process_status FROM provider_callback_inbox i
    WHERE i.process_status IN ('retry', 'orphan') AND i.next_retry_at <= @now::timestamptz
      AND CASE i.process_status WHEN 'retry' THEN i.error_count >= @max_errors::int ELSE i.received_at < @orphans_before END
    ORDER BY i.next_retry_at, i.id LIMIT @max_rows FOR UPDATE SKIP LOCKED
)
UPDATE provider_callback_inbox b SET process_status = 'dead', processed_at = @now::timestamptz
FROM lost WHERE b.id = lost.id;

-- name: InboxRevive :one
WITH due AS (
    SELECT i.id, i.shard FROM provider_callback_inbox i
    WHERE i.process_status IN ('retry', 'orphan') AND i.next_retry_at <= @now
    ORDER BY i.next_retry_at, i.id LIMIT @max_rows FOR UPDATE SKIP LOCKED
), back AS (
    UPDATE provider_callback_inbox b SET process_status = 'pending' FROM due WHERE b.id = due.id RETURNING 1
), queued AS (
    INSERT INTO inbox_queue (inbox_id, shard) SELECT due.id, due.shard FROM due ORDER BY due.id
    ON CONFLICT (inbox_id) DO NOTHING RETURNING 1
)
SELECT count(*) FROM queued;

-- name: InboxUnstick :one
-- A pending row without a queue entry and without an outcome cannot come to be;
-- this puts one back all the same.
WITH stuck AS (
    SELECT i.id, i.shard FROM provider_callback_inbox i
    WHERE i.received_at >= @since AND i.received_at < @before AND i.process_status = 'pending'
      AND NOT EXISTS (SELECT 1 FROM inbox_queue q WHERE q.inbox_id = i.id)
      AND NOT EXISTS (SELECT 1 FROM inbox_outcomes o WHERE o.inbox_id = i.id)
    ORDER BY i.id LIMIT @max_rows
), queued AS (
    INSERT INTO inbox_queue (inbox_id, shard) SELECT stuck.id, stuck.shard FROM stuck
    ON CONFLICT (inbox_id) DO NOTHING RETURNING 1
)
SELECT count(*) FROM queued;

-- name: InboxGet :one
SELECT sqlc.embed(i), coalesce(o.verdict, '')::text AS verdict, coalesce(o.reason, '')::text AS reason
FROM provider_callback_inbox i LEFT JOIN inbox_outcomes o ON o.inbox_id = i.id
WHERE i.id = @id;

-- name: InboxRequeue :execrows
WITH back AS (
    UPDATE provider_callback_inbox SET process_status = 'pending', error_count = 0, next_retry_at = @now, processed_at = NULL
    WHERE id = @id AND process_status IN ('dead', 'retry', 'orphan')
    RETURNING id, shard
)
INSERT INTO inbox_queue (inbox_id, shard) SELECT back.id, back.shard FROM back
ON CONFLICT (inbox_id) DO UPDATE SET deaths = 0;

-- name: InboxClean :execrows
-- Deliveries that were done before the time. ids rise with time, so the oldest
-- outcomes are the first of their index.
WITH old AS (
    SELECT o.inbox_id FROM inbox_outcomes o
    WHERE o.inbox_id IN (SELECT f.inbox_id FROM inbox_outcomes f ORDER BY f.inbox_id LIMIT @max_rows) AND o.processed_at < @before
    FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM provider_callback_inbox i USING old WHERE i.id = old.inbox_id RETURNING 1
)
DELETE FROM inbox_outcomes o USING old WHERE o.inbox_id = old.inbox_id;
