-- Within a task the attempts of its events only rise, unless a person adopted one.
SELECT format('task %s: version %s is of attempt %s after attempt %s', task_id, task_version, attempt_no, before_no) AS violation
FROM (
    SELECT e.task_id, e.task_version, e.source, a.attempt_no, lag(a.attempt_no) OVER (PARTITION BY e.task_id ORDER BY e.task_version) AS before_no
    FROM task_events e JOIN task_attempts a ON a.id = e.attempt_id
) AS steps
WHERE attempt_no < before_no AND source <> 'operator'
UNION ALL
SELECT format('task %s: its current attempt %s is of task %s', t.id, t.current_attempt_id, a.task_id)
FROM generation_tasks t LEFT JOIN task_attempts a ON a.id = t.current_attempt_id
WHERE a.task_id IS DISTINCT FROM t.id
