-- A second create needs the proof that the first was not sent, or a documented
-- replay. Days whose observations are gone are left out.
SELECT format('attempt %s: create was called %s times, %s of them provably not sent or replayed', a.id, a.submit_count, coalesce(o.n, 0)) AS violation
FROM task_attempts a
LEFT JOIN (
    SELECT attempt_id, count(*) AS n FROM observations
    WHERE kind IN ('submit_not_sent', 'submit_replayed') AND verdict <> 'ignored'
    GROUP BY attempt_id
) AS o ON o.attempt_id = a.id
WHERE a.submit_count > 1 + coalesce(o.n, 0)
  AND a.created_at >= (SELECT date_trunc('day', min(created_at)) FROM observations)
