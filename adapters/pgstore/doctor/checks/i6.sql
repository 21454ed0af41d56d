-- An outbox row and its event are written together.
SELECT format('outbox row %s: project %s has no event %s', o.id, o.project_id, o.event_id) AS violation
FROM outbox_events o
WHERE NOT EXISTS (SELECT FROM task_events e WHERE e.project_id = o.project_id AND e.event_id = o.event_id)
  AND o.created_at >= (SELECT min(created_at) FROM task_events)
UNION ALL
SELECT format('project %s: event %s never reached the outbox', e.project_id, e.event_id)
FROM task_events e
WHERE e.created_at > coalesce((SELECT min(created_at) FROM outbox_events), 'infinity')
  AND NOT EXISTS (SELECT FROM outbox_events o WHERE o.aggregate_type = 'task' AND o.aggregate_id = e.task_id AND o.aggregate_version = e.task_version AND o.event_type = e.event_type)
