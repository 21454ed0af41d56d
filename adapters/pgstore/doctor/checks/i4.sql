-- Within what retention has left, versions follow each other, and the task has
-- the newest.
SELECT format('task %s is at version %s; its %s events go from %s to %s', t.id, t.version, e.n, e.first, e.last) AS violation
FROM generation_tasks t
JOIN (SELECT task_id, count(*) AS n, min(task_version) AS first, max(task_version) AS last FROM task_events GROUP BY task_id) AS e ON e.task_id = t.id
WHERE e.last <> t.version OR e.last - e.first + 1 <> e.n
UNION ALL
SELECT format('task %s does not exist and has %s events', e.task_id, count(*))
FROM task_events e
WHERE NOT EXISTS (SELECT FROM generation_tasks t WHERE t.id = e.task_id)
GROUP BY e.task_id
