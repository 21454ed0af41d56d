-- A delivery that waits must be in the queue, have its outcome, or a time at
-- which it comes back.
SELECT format('inbox row %s is %s since %s and nobody will take it', i.id, i.process_status, i.received_at) AS violation
FROM provider_callback_inbox i
WHERE i.process_status = 'pending'
  AND i.received_at < now() - interval '5 minutes'
  AND NOT EXISTS (SELECT FROM inbox_queue q WHERE q.inbox_id = i.id)
  AND NOT EXISTS (SELECT FROM inbox_outcomes o WHERE o.inbox_id = i.id)
UNION ALL
-- A payload is removed only when its delivery is done.
SELECT format('inbox row %s is %s and its payload is gone', i.id, i.process_status)
FROM provider_callback_inbox i
WHERE i.process_status IN ('retry', 'orphan', 'dead') AND i.payload IS NULL
