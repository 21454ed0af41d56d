-- name: IdempotencyGet :many
SELECT w.ord::int AS ord, k.body_hash, k.task_id
FROM (SELECT unnest(@ords::int[]) AS ord, unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@scopes::text[]) AS scope, unnest(@keys::text[]) AS key) w
JOIN idempotency_keys k ON k.tenant_id = w.tenant_id AND k.scope = w.scope AND k.key = w.key
WHERE k.expires_at > @now;

-- name: IdempotencyDropExpired :exec
DELETE FROM idempotency_keys k
USING (SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@scopes::text[]) AS scope, unnest(@keys::text[]) AS key) w
WHERE k.tenant_id = w.tenant_id AND k.scope = w.scope AND k.key = w.key AND k.expires_at <= @now::timestamptz;

-- name: IdempotencyInsertMany :exec
-- No ON CONFLICT: a concurrent request with the same key fails here, and its
-- retry finds the key.
INSERT INTO idempotency_keys (tenant_id, scope, key, body_hash, task_id, created_at, expires_at)
SELECT i.tenant_id, i.scope, i.key, i.body_hash, i.task_id, @now::timestamptz, i.expires_at
FROM (
    SELECT unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@scopes::text[]) AS scope, unnest(@keys::text[]) AS key,
        unnest(@body_hashes::bytea[]) AS body_hash, unnest(@task_ids::uuid[]) AS task_id, unnest(@expires_ats::timestamptz[]) AS expires_at
) i
ORDER BY i.tenant_id, i.scope, i.key;

-- name: IdempotencyClean :execrows
DELETE FROM idempotency_keys WHERE ctid = ANY(ARRAY(SELECT k.ctid FROM idempotency_keys k WHERE k.expires_at <= @now LIMIT @max_rows FOR UPDATE SKIP LOCKED));
