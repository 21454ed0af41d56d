SELECT format('task %s is %s, %s, %s; its last event says %s, %s, %s', t.id, t.status, t.stage, t.progress,
    e.public_payload ->> 'status', e.public_payload ->> 'stage', e.public_payload ->> 'progress') AS violation
FROM generation_tasks t
JOIN task_events e ON e.task_id = t.id AND e.task_version = t.version
WHERE e.event_id <> t.last_event_id
   OR (e.public_payload ->> 'status') IS DISTINCT FROM t.status
   OR (e.public_payload ->> 'stage') IS DISTINCT FROM t.stage
   OR (e.public_payload ->> 'progress') IS DISTINCT FROM t.progress::text
