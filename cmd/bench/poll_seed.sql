-- Gives every copied attempt a job of the vendor's, as if it had been under way for
-- two minutes and asked for a few times; the one that was copied rests.
UPDATE task_attempts a SET provider_task_id = j.provider_task_id, base_url = $1, submitted_at = now() - interval '2 minutes', poll_count = 4
FROM bench.task b JOIN bench.job j USING (n) WHERE a.id = b.attempt_id;
