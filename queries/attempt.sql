-- name: AttemptResolve :many
-- Who is meant: each way of naming an attempt gives its own rows.
SELECT r.ord::int AS ord, r.how::text AS how, r.id, r.task_id FROM (
    SELECT w.ord, 'id' AS how, a.id, a.task_id
    FROM (SELECT unnest(@id_ords::int[]) AS ord, unnest(@ids::uuid[]) AS id) w
    JOIN task_attempts a ON a.id = w.id
    UNION ALL
    SELECT w.ord, 'token', a.id, a.task_id
    FROM (SELECT unnest(@token_ords::int[]) AS ord, unnest(@token_hashes::bytea[]) AS token_hash) w
    JOIN task_attempts a ON a.token_hash = w.token_hash
    UNION ALL
    SELECT w.ord, 'vendor', a.id, a.task_id
    FROM (SELECT unnest(@vendor_ords::int[]) AS ord, unnest(@vendor_providers::text[]) AS provider,
                 unnest(@vendor_accounts::text[]) AS account_id, unnest(@vendor_task_ids::text[]) AS provider_task_id) w
    JOIN task_attempts a ON a.provider = w.provider AND a.provider_task_id = w.provider_task_id AND a.account_id = w.account_id
    UNION ALL
    SELECT w.ord, 'client', a.id, a.task_id
    FROM (SELECT unnest(@client_ords::int[]) AS ord, unnest(@client_providers::text[]) AS provider,
                 unnest(@client_request_ids::text[]) AS client_request_id) w
    JOIN task_attempts a ON a.provider = w.provider AND a.client_request_id = w.client_request_id
) r
ORDER BY r.ord;

-- name: AttemptLock :many
-- The attempts that are meant, and the current ones of some of the locked tasks.
SELECT * FROM task_attempts WHERE id IN (
    SELECT unnest(@ids::uuid[])
    UNION
    SELECT t.current_attempt_id FROM generation_tasks t WHERE t.id = ANY(@task_ids::uuid[])
)
ORDER BY id FOR NO KEY UPDATE;

-- name: AttemptInsert :exec
INSERT INTO task_attempts (
    id, task_id, attempt_no, provider, model, account_id, base_url, client_request_id, provider_task_id, token_hash,
    status, next_submit_at, next_reconcile_at, credits, closing, created_at, updated_at
) VALUES (
    @id, @task_id, @attempt_no, @provider, @model, @account_id, @base_url, @client_request_id, @provider_task_id, @token_hash,
    @status, @next_submit_at, @next_reconcile_at, @credits, @closing, @created_at, @updated_at
);

-- name: AttemptUpdateMany :exec
UPDATE task_attempts a SET
    provider_task_id = NULLIF(i.provider_task_id, ''), status = i.status,
    last_provider_seq = NULLIF(i.last_provider_seq, '-9223372036854775808'::bigint), last_provider_at = i.last_provider_at,
    progress = NULLIF(i.progress, '-1'::smallint), progress_at = i.progress_at,
    deferred_progress = NULLIF(i.deferred_progress, '-1'::smallint), deferred_until = i.deferred_until,
    outputs = NULLIF(i.outputs, '')::json, error_class = NULLIF(i.error_class, ''), error_code = NULLIF(i.error_code, ''),
    submit_lease = i.submit_lease, submit_lease_until = i.submit_lease_until, next_submit_at = i.next_submit_at,
    submit_count = i.submit_count, submitted_at = i.submitted_at,
    poll_lease = i.poll_lease, poll_lease_until = i.poll_lease_until, next_poll_at = i.next_poll_at,
    poll_count = i.poll_count, poll_failures = i.poll_failures, poll_hint_at = i.poll_hint_at, last_query_at = i.last_query_at,
    next_reconcile_at = i.next_reconcile_at, reconcile_count = i.reconcile_count,
    overdue = i.overdue, conflicted = i.conflicted, credits = i.credits, closing = i.closing, adopted_by = i.adopted_by,
    updated_at = i.updated_at, terminal_at = i.terminal_at
FROM (
    SELECT unnest(@ids::uuid[]) AS id, unnest(@provider_task_ids::text[]) AS provider_task_id, unnest(@statuses::text[]) AS status,
        unnest(@last_provider_seqs::bigint[]) AS last_provider_seq, unnest(@last_provider_ats::timestamptz[]) AS last_provider_at,
        unnest(@progresses::smallint[]) AS progress, unnest(@progress_ats::timestamptz[]) AS progress_at,
        unnest(@deferred_progresses::smallint[]) AS deferred_progress, unnest(@deferred_untils::timestamptz[]) AS deferred_until,
        unnest(@outputs::text[]) AS outputs, unnest(@error_classes::text[]) AS error_class, unnest(@error_codes::text[]) AS error_code,
        unnest(@submit_leases::uuid[]) AS submit_lease, unnest(@submit_lease_untils::timestamptz[]) AS submit_lease_until,
        unnest(@next_submit_ats::timestamptz[]) AS next_submit_at, unnest(@submit_counts::int[]) AS submit_count,
        unnest(@submitted_ats::timestamptz[]) AS submitted_at,
        unnest(@poll_leases::uuid[]) AS poll_lease, unnest(@poll_lease_untils::timestamptz[]) AS poll_lease_until,
        unnest(@next_poll_ats::timestamptz[]) AS next_poll_at, unnest(@poll_counts::int[]) AS poll_count,
        unnest(@poll_failures::int[]) AS poll_failures, unnest(@poll_hint_ats::timestamptz[]) AS poll_hint_at,
        unnest(@last_query_ats::timestamptz[]) AS last_query_at,
        unnest(@next_reconcile_ats::timestamptz[]) AS next_reconcile_at, unnest(@reconcile_counts::int[]) AS reconcile_count,
        unnest(@overdues::bool[]) AS overdue, unnest(@conflicteds::bool[]) AS conflicted,
        unnest(@credits::bigint[]) AS credits, unnest(@closings::text[]) AS closing, unnest(@adopted_bys::uuid[]) AS adopted_by,
        unnest(@updated_ats::timestamptz[]) AS updated_at, unnest(@terminal_ats::timestamptz[]) AS terminal_at
) i
WHERE a.id = i.id;

-- name: AttemptNumbers :many
SELECT id, attempt_no FROM task_attempts WHERE task_id = @task_id;

-- name: AttemptJob :one
SELECT sqlc.embed(t), sqlc.embed(a), sqlc.embed(i)
FROM task_attempts a
JOIN generation_tasks t ON t.id = a.task_id
JOIN task_inputs i ON i.task_id = a.task_id
WHERE a.id = @id;

-- name: AttemptJobs :many
SELECT sqlc.embed(t), sqlc.embed(a), sqlc.embed(i)
FROM (SELECT unnest(@ids::uuid[]) AS id, unnest(@ords::int[]) AS ord) w
JOIN task_attempts a ON a.id = w.id
JOIN generation_tasks t ON t.id = a.task_id
JOIN task_inputs i ON i.task_id = a.task_id
ORDER BY w.ord;
