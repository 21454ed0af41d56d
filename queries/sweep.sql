-- name: StreamTicketClean :execrows
DELETE FROM stream_tickets WHERE ctid = ANY(ARRAY(SELECT t.ctid FROM stream_tickets t WHERE t.expires_at <= @now LIMIT @max_rows FOR UPDATE SKIP LOCKED));

-- name: RevocationClean :execrows
DELETE FROM revocations WHERE id = ANY(ARRAY(SELECT r.id FROM revocations r WHERE r.expires_at <= @now ORDER BY r.id LIMIT @max_rows FOR UPDATE SKIP LOCKED));

-- name: ServerSettings :one
SELECT current_setting('synchronous_commit')::text AS synchronous_commit, current_setting('fsync')::text AS fsync, current_setting('server_version_num')::int AS version;
