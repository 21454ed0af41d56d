-- Public events hold words of our own: no address, and no error that is not on
-- the list.
SELECT format('event %s of project %s holds an address', event_id, project_id) AS violation
FROM task_events WHERE public_payload::text ~* 'https?:'
UNION ALL
SELECT format('event %s of project %s holds keys that are not public: %s', event_id, project_id, extra)
FROM (
    SELECT event_id, project_id, (SELECT string_agg(k, ', ') FROM jsonb_object_keys(public_payload) AS k
        WHERE k NOT IN ('status', 'phase', 'cancel', 'stage', 'progress', 'asset_id', 'error')) AS extra
    FROM task_events
) AS keys
WHERE extra IS NOT NULL
