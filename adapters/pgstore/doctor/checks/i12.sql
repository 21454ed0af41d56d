-- The event that a failed query caused may say "unknown" and nothing final.
SELECT format('task %s: %s made version %s %s', o.task_id, o.kind, o.version_after, e.public_payload ->> 'status') AS violation
FROM observations o
JOIN task_events e ON e.task_id = o.task_id AND e.task_version = o.version_after
WHERE o.kind IN ('poll_failed', 'lookup_failed') AND o.version_after > o.version_before
  AND e.public_payload ->> 'status' IN ('ready', 'failed', 'canceled')
