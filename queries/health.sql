-- name: HealthList :many
SELECT * FROM provider_accounts ORDER BY provider, account_id;

-- name: HealthSave :execrows
-- A row of which only a callback is known has version 0, like one that is not there.
INSERT INTO provider_accounts AS p (provider, account_id, breaker, breaker_until, breaker_reason, failures, probe_until,
    concurrency_limit, halved_at, grown_at, throttled_until, malformed_count, quarantined_at, quarantine_until, malformed_sample, version, updated_at)
VALUES (@provider, @account_id, @breaker, @breaker_until, @breaker_reason, @failures, @probe_until,
    @concurrency_limit, @halved_at, @grown_at, @throttled_until, @malformed_count, @quarantined_at, @quarantine_until, @malformed_sample, 1, @now)
ON CONFLICT (provider, account_id) DO UPDATE SET breaker = EXCLUDED.breaker, breaker_until = EXCLUDED.breaker_until,
    breaker_reason = EXCLUDED.breaker_reason, failures = EXCLUDED.failures, probe_until = EXCLUDED.probe_until,
    concurrency_limit = EXCLUDED.concurrency_limit, halved_at = EXCLUDED.halved_at, grown_at = EXCLUDED.grown_at,
    throttled_until = EXCLUDED.throttled_until, malformed_count = EXCLUDED.malformed_count, quarantined_at = EXCLUDED.quarantined_at,
    quarantine_until = EXCLUDED.quarantine_until, malformed_sample = EXCLUDED.malformed_sample, version = p.version + 1, updated_at = EXCLUDED.updated_at
WHERE p.version = @version;

-- name: CallersAttend :exec
INSERT INTO provider_callers (id, seen_at) VALUES (@id, @now)
ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at;

-- name: CallersForget :exec
DELETE FROM provider_callers WHERE id IN (
    SELECT c.id FROM provider_callers c WHERE c.seen_at < @since FOR UPDATE SKIP LOCKED);

-- name: CallersCount :one
SELECT count(*) FROM provider_callers WHERE seen_at >= @since;
