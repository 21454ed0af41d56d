-- name: ObservationInsertMany :exec
INSERT INTO observations (
    task_id, attempt_id, inbox_id, kind, source, trust, provider, provider_event_id, dedup_key, provider_task_id,
    client_request_id, provider_sequence, provider_occurred_at, received_at, status, stage, progress, error_class,
    error_code, error_message, next_at, outputs, payload_hash, trace_id, verdict, reason, version_before, version_after, created_at
)
SELECT i.task_id, i.attempt_id, NULLIF(i.inbox_id, 0), i.kind, i.source, NULLIF(i.trust, ''), NULLIF(i.provider, ''),
    NULLIF(i.provider_event_id, ''), NULLIF(i.dedup_key, ''), NULLIF(i.provider_task_id, ''), NULLIF(i.client_request_id, ''),
    NULLIF(i.provider_sequence, '-9223372036854775808'::bigint), i.provider_occurred_at, i.received_at, NULLIF(i.status, ''),
    NULLIF(i.stage, ''), NULLIF(i.progress, '-1'::smallint), NULLIF(i.error_class, ''), NULLIF(i.error_code, ''),
    NULLIF(i.error_message, ''), i.next_at,
    NULLIF(i.outputs, '')::json, NULLIF(i.payload_hash, ''), i.trace_id, i.verdict, NULLIF(i.reason, ''),
    i.version_before, i.version_after, aivedio_clock(@now::timestamptz)
FROM (
    SELECT unnest(@ords::int[]) AS ord, unnest(@task_ids::uuid[]) AS task_id, unnest(@attempt_ids::uuid[]) AS attempt_id,
        unnest(@inbox_ids::bigint[]) AS inbox_id, unnest(@kinds::text[]) AS kind, unnest(@sources::text[]) AS source,
        unnest(@trusts::text[]) AS trust, unnest(@providers::text[]) AS provider,
        unnest(@provider_event_ids::text[]) AS provider_event_id, unnest(@dedup_keys::text[]) AS dedup_key,
        unnest(@provider_task_ids::text[]) AS provider_task_id, unnest(@client_request_ids::text[]) AS client_request_id,
        unnest(@provider_sequences::bigint[]) AS provider_sequence,
        unnest(@provider_occurred_ats::timestamptz[]) AS provider_occurred_at, unnest(@received_ats::timestamptz[]) AS received_at,
        unnest(@statuses::text[]) AS status, unnest(@stages::text[]) AS stage, unnest(@progresses::smallint[]) AS progress,
        unnest(@error_classes::text[]) AS error_class, unnest(@error_codes::text[]) AS error_code,
        unnest(@error_messages::text[]) AS error_message, unnest(@next_ats::timestamptz[]) AS next_at,
        unnest(@outputs::text[]) AS outputs, unnest(@payload_hashes::text[]) AS payload_hash,
        unnest(@trace_ids::uuid[]) AS trace_id, unnest(@verdicts::text[]) AS verdict, unnest(@reasons::text[]) AS reason,
        unnest(@versions_before::bigint[]) AS version_before, unnest(@versions_after::bigint[]) AS version_after
) i
ORDER BY i.ord;

-- name: ObservationCount :exec
-- The input is aggregated and ordered by the caller, so that two batches meet
-- their common counters in the same order.
INSERT INTO observation_counters AS c (task_id, verdict, reason, count, last_at)
SELECT unnest(@task_ids::uuid[]), unnest(@verdicts::text[]), unnest(@reasons::text[]), unnest(@counts::bigint[]), @now::timestamptz
ON CONFLICT (task_id, verdict, reason) DO UPDATE SET count = c.count + excluded.count, last_at = excluded.last_at;

-- name: ObservationsOfTask :many
SELECT * FROM observations WHERE task_id = @task_id ORDER BY created_at, id;

-- name: ObservationCounters :many
SELECT verdict, reason, count FROM observation_counters WHERE task_id = @task_id;
