-- Grouped once, not looked up per attempt: the ledger has no index by attempt that
-- covers every type.
SELECT format('attempt %s is %s; the ledger has %s reserve, %s settle, %s refund', a.id, a.closing, coalesce(l.reserves, 0), coalesce(l.settles, 0), coalesce(l.refunds, 0)) AS violation
FROM task_attempts a
LEFT JOIN (
    SELECT task_id, attempt_id, count(*) FILTER (WHERE ledger_type = 'reserve') AS reserves,
        count(*) FILTER (WHERE ledger_type = 'settle') AS settles,
        count(*) FILTER (WHERE ledger_type = 'refund') AS refunds,
        count(*) FILTER (WHERE ledger_type = 'adjust') AS adjusts,
        count(*) FILTER (WHERE ledger_type = 'settle' OR spent_delta > 0 AND ledger_type = 'adjust')
            - count(*) FILTER (WHERE ledger_type = 'adjust' AND spent_delta < 0) AS charges
    FROM credit_ledger GROUP BY task_id, attempt_id
) AS l ON l.task_id = a.task_id AND l.attempt_id = a.id
WHERE coalesce(l.reserves, 0) <> 1
   OR coalesce(l.settles, 0) + coalesce(l.refunds, 0) <> CASE WHEN a.closing = 'open' THEN 0 ELSE 1 END
   OR (a.closing = 'settled' AND coalesce(l.settles, 0) + coalesce(l.adjusts, 0) = 0)
   OR (a.closing = 'refunded' AND coalesce(l.refunds, 0) + coalesce(l.adjusts, 0) = 0)
   OR (a.closing <> 'open' AND a.credits > 0 AND coalesce(l.charges, 0) <> CASE a.closing WHEN 'settled' THEN 1 ELSE 0 END)
UNION ALL
SELECT format('task %s is %s and the money of its attempt is open', t.id, t.phase)
FROM generation_tasks t JOIN task_attempts a ON a.id = t.current_attempt_id
WHERE t.terminal_at IS NOT NULL AND a.closing = 'open'
UNION ALL
SELECT format('tenant %s: the account says available %s, reserved %s, spent %s; the ledger adds up to %s, %s, %s',
    b.tenant_id, b.available, b.reserved, b.spent, l.available, l.reserved, l.spent)
FROM ledger_accounts b
CROSS JOIN LATERAL (
    SELECT coalesce(sum(available_delta), 0) AS available, coalesce(sum(reserved_delta), 0) AS reserved, coalesce(sum(spent_delta), 0) AS spent
    FROM credit_ledger l WHERE l.tenant_id = b.tenant_id
) AS l
WHERE (b.available, b.reserved, b.spent) IS DISTINCT FROM (l.available::bigint, l.reserved::bigint, l.spent::bigint)
