-- name: AccountLock :many
SELECT * FROM ledger_accounts WHERE tenant_id = ANY(@tenant_ids::uuid[]) ORDER BY tenant_id FOR NO KEY UPDATE;

-- name: AccountLockQuiet :exec
SELECT tenant_id FROM ledger_accounts WHERE tenant_id = ANY(@tenant_ids::uuid[]) ORDER BY tenant_id FOR NO KEY UPDATE;

-- name: AccountGet :one
SELECT * FROM ledger_accounts WHERE tenant_id = @tenant_id;

-- name: AccountInsert :exec
INSERT INTO ledger_accounts (tenant_id, granted, available) VALUES (@tenant_id, 0 - @credits::bigint, @credits::bigint);

-- name: AccountGrant :one
UPDATE ledger_accounts SET granted = granted - @credits::bigint, available = available + @credits::bigint, updated_at = @now::timestamptz
WHERE tenant_id = @tenant_id RETURNING *;

-- name: LedgerGrant :execrows
-- Nothing for an action that is known: the caller moves the balance only for a
-- new one.
INSERT INTO credit_ledger (tenant_id, ledger_type, action_id, credits, granted_delta, available_delta, reserved_delta, spent_delta, created_at)
VALUES (@tenant_id, 'grant', @action_id, @credits::bigint, 0 - @credits::bigint, @credits::bigint, 0, 0, @created_at)
ON CONFLICT (action_id) WHERE ledger_type = 'grant' DO NOTHING;

-- name: LedgerGrantGet :one
SELECT * FROM credit_ledger WHERE action_id = @action_id AND ledger_type = 'grant';

-- name: LedgerAppend :exec
-- Writes entries and moves the balances, but only for entries that are really
-- new: a repetition finds its row and moves nothing. reserved is what the attempt
-- holds, which settle and refund give back; direction is -1 for an adjust that gives
-- back.
WITH input AS (
    SELECT unnest(@ords::int[]) AS ord, unnest(@tenant_ids::uuid[]) AS tenant_id, unnest(@task_ids::uuid[]) AS task_id,
        unnest(@attempt_ids::uuid[]) AS attempt_id, unnest(@types::text[]) AS ledger_type,
        unnest(@action_ids::uuid[]) AS action_id, unnest(@credits::bigint[]) AS credits, unnest(@reserved::bigint[]) AS reserved,
        unnest(@directions::bigint[]) AS direction
), added AS (
    INSERT INTO credit_ledger (tenant_id, task_id, attempt_id, ledger_type, action_id, credits,
        available_delta, reserved_delta, spent_delta, created_at)
    SELECT i.tenant_id, i.task_id, i.attempt_id, i.ledger_type, i.action_id, i.credits,
        CASE i.ledger_type WHEN 'settle' THEN i.reserved - i.credits WHEN 'refund' THEN i.credits ELSE -i.credits * i.direction END,
        CASE i.ledger_type WHEN 'reserve' THEN i.credits WHEN 'adjust' THEN 0 ELSE -i.reserved END,
        CASE i.ledger_type WHEN 'settle' THEN i.credits WHEN 'adjust' THEN i.credits * i.direction WHEN 'refund' THEN i.reserved - i.credits ELSE 0 END,
        @now::timestamptz
    FROM input i ORDER BY i.ord
    ON CONFLICT DO NOTHING
    RETURNING tenant_id, available_delta, reserved_delta, spent_delta
)
UPDATE ledger_accounts a SET available = a.available + d.available, reserved = a.reserved + d.reserved,
    spent = a.spent + d.spent, updated_at = @now::timestamptz
FROM (
    SELECT added.tenant_id, sum(added.available_delta)::bigint AS available, sum(added.reserved_delta)::bigint AS reserved,
        sum(added.spent_delta)::bigint AS spent
    FROM added GROUP BY added.tenant_id
) d
WHERE a.tenant_id = d.tenant_id;

-- name: LedgerOfTask :many
SELECT * FROM credit_ledger WHERE task_id = @task_id ORDER BY id;
