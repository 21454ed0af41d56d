-- The partial index of troubled rows is in the order of ids and small; what a
-- filter leaves of it is looked at row by row.

-- name: InboxTroubled :many
SELECT * FROM provider_callback_inbox
WHERE process_status IN ('dead', 'retry', 'orphan')
  AND (@status::text = '' OR process_status = @status) AND (@provider::text = '' OR provider = @provider)
  AND (@code::text = '' OR last_error_code = @code) AND received_at < @received_before
  AND id > @after_id AND id < @before_id
ORDER BY id DESC LIMIT @max_rows;

-- name: InboxTroubledGroups :many
SELECT t.provider, t.process_status, t.code::text AS code, count(*) AS rows, min(t.received_at)::timestamptz AS oldest, max(t.received_at)::timestamptz AS newest
FROM (
    SELECT i.provider, i.process_status, coalesce(i.last_error_code, '') AS code, i.received_at FROM provider_callback_inbox i
    WHERE i.process_status IN ('dead', 'retry', 'orphan')
      AND (@status::text = '' OR i.process_status = @status) AND (@provider::text = '' OR i.provider = @provider)
      AND (@code::text = '' OR i.last_error_code = @code) AND i.received_at < @received_before
      AND i.id > @after_id AND i.id < @before_id
    ORDER BY i.id LIMIT @max_rows
) t
GROUP BY t.provider, t.process_status, t.code ORDER BY count(*) DESC, t.provider, t.process_status, t.code;

-- name: InboxRequeueMany :one
-- A due time instead of a queue entry: the sweep brings each row to work at its
-- time, so that a hundred thousand of them are no flood.
WITH chosen AS (
    SELECT i.id, row_number() OVER (ORDER BY i.id) - 1 AS n FROM provider_callback_inbox i
    WHERE i.id = ANY(ARRAY(
        SELECT c.id FROM provider_callback_inbox c
        WHERE c.process_status IN ('dead', 'retry', 'orphan')
          AND (@status::text = '' OR c.process_status = @status) AND (@provider::text = '' OR c.provider = @provider)
          AND (@code::text = '' OR c.last_error_code = @code) AND c.received_at < @received_before
          AND c.id > @after_id AND c.id < @before_id
        ORDER BY c.id LIMIT @max_rows FOR UPDATE SKIP LOCKED))
), back AS (
    UPDATE provider_callback_inbox b SET process_status = 'retry', error_count = 0, processed_at = NULL,
        next_retry_at = sqlc.arg(start)::timestamptz + make_interval(secs => chosen.n * sqlc.arg(step_seconds)::float8)
    FROM chosen WHERE b.id = chosen.id RETURNING b.id
)
SELECT count(*) AS rows, coalesce(max(back.id), 0)::bigint AS last_id FROM back;
