SELECT format('project %s counts to %s; its %s events go from %s to %s', s.project_id, s.last_event_id, e.n, e.first, e.last) AS violation
FROM project_streams s
JOIN (SELECT project_id, count(*) AS n, min(event_id) AS first, max(event_id) AS last FROM task_events GROUP BY project_id) AS e ON e.project_id = s.project_id
WHERE e.last <> s.last_event_id OR e.last - e.first + 1 <> e.n
UNION ALL
SELECT format('project %s: event %s is older than event %s', project_id, event_id, before_id)
FROM (
    SELECT project_id, event_id, created_at, lag(event_id) OVER w AS before_id, lag(created_at) OVER w AS before_at
    FROM task_events
    WINDOW w AS (PARTITION BY project_id ORDER BY event_id)
) AS steps
WHERE created_at < before_at
UNION ALL
SELECT format('project %s has events and no counter', e.project_id)
FROM task_events e
WHERE NOT EXISTS (SELECT FROM project_streams s WHERE s.project_id = e.project_id)
GROUP BY e.project_id
