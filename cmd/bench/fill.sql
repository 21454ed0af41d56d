-- A delivery for each of the first $1 tasks, in the order of our side's load.
WITH stored AS (
    INSERT INTO provider_callback_inbox (provider, account_id, dedup_key, trust, provider_event_id, provider_task_id, token_hash,
        provider_occurred_at, received_at, signature_key_version, payload_hash, payload, payload_key_version, trace_id, shard)
    SELECT 'replicate', 'main', $2 || m.id, 'authentic', m.id, b.provider_task_id, b.token_hash,
        now(), now(), $5, decode($3, 'hex'), decode($4, 'hex'), $6, gen_random_uuid(), b.n % 64
    FROM bench.task b, LATERAL (SELECT 'msg_' || left(replace(gen_random_uuid()::text, '-', ''), 24) AS id WHERE b.n >= 0) AS m -- the condition makes it one id per row
    WHERE b.n < $1
    ORDER BY b.n
    RETURNING id, shard
)
INSERT INTO inbox_queue (inbox_id, shard) SELECT id, shard FROM stored
