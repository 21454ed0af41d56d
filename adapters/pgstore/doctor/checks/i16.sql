SELECT format('attempt %s of task %s is %s with no timer and no open case', a.id, a.task_id, a.status) AS violation
FROM task_attempts a
WHERE a.terminal_at IS NULL
  AND coalesce(a.next_submit_at, a.submit_lease_until, a.next_poll_at, a.next_reconcile_at) IS NULL
  AND NOT EXISTS (SELECT FROM cases c WHERE c.attempt_id = a.id AND c.closed_at IS NULL)
