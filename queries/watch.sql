-- name: WatchProjects :many
-- The projects that were not watched before. A row that another gateway keeps
-- fresh is not written again.
WITH told AS (
    SELECT unnest(@project_ids::uuid[]) AS project_id
), fresh AS (
    SELECT told.project_id FROM told LEFT JOIN watched_projects w ON w.project_id = told.project_id
    WHERE w.until IS NULL OR w.until <= @now::timestamptz
), written AS (
    INSERT INTO watched_projects (project_id, until)
    SELECT told.project_id, @until FROM told ORDER BY told.project_id
    ON CONFLICT (project_id) DO UPDATE SET until = excluded.until
    WHERE watched_projects.until + (excluded.until - @now::timestamptz) / 4 < excluded.until
    RETURNING project_id
)
SELECT fresh.project_id::uuid AS project_id FROM fresh;

-- name: WatchPromote :execrows
-- Brings the attempts in flight of newly watched projects into the first queue.
-- Very many of one project come there one by one, as they are polled.
UPDATE task_attempts SET poll_first = true
WHERE id = ANY(ARRAY(
    SELECT a.id FROM generation_tasks t JOIN task_attempts a ON a.id = t.current_attempt_id
    WHERE t.project_id = ANY(@project_ids::uuid[]) AND t.terminal_at IS NULL AND a.next_poll_at IS NOT NULL AND NOT a.poll_first
    LIMIT 1000 FOR NO KEY UPDATE OF a SKIP LOCKED));

-- name: WatchClean :execrows
DELETE FROM watched_projects WHERE ctid = ANY(ARRAY(SELECT w.ctid FROM watched_projects w WHERE w.until <= @now LIMIT @max_rows FOR UPDATE SKIP LOCKED));
