-- The unique key forbids a second one; a result that nobody fetches is the other
-- half.
SELECT format('task %s waits in %s and nobody fetches its output', t.id, t.phase) AS violation
FROM generation_tasks t
WHERE t.phase IN ('provider_succeeded', 'processing_media')
  AND NOT EXISTS (SELECT FROM operations o WHERE o.task_id = t.id AND o.attempt_id = t.current_attempt_id AND o.operation_type = 'fetch_output' AND o.status = 'pending')
UNION ALL
SELECT format('task %s has %s operations %s of one attempt', task_id, count(*), operation_type)
FROM operations GROUP BY task_id, attempt_id, operation_type HAVING count(*) > 1
