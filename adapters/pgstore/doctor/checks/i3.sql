-- The event after a terminal one must come from a person.
SELECT format('task %s left %s by version %s from %s', task_id, status, next_version, next_source) AS violation
FROM (
    SELECT task_id, public_payload ->> 'status' AS status,
        lead(task_version) OVER w AS next_version, lead(source) OVER w AS next_source
    FROM task_events
    WINDOW w AS (PARTITION BY task_id ORDER BY task_version)
) AS steps
WHERE status IN ('ready', 'failed', 'canceled') AND next_source NOT IN ('user', 'operator')
