-- name: WebhookCountAdd :exec
-- In the order of the keys, so that two processes meet their common rows in the
-- same order.
WITH input AS (
    SELECT unnest(@providers::text[]) AS provider, unnest(@account_ids::text[]) AS account_id, unnest(@slices::timestamptz[]) AS slice,
        unnest(@by_webhooks::bigint[]) AS by_webhook, unnest(@by_polls::bigint[]) AS by_poll,
        unnest(@lates::bigint[]) AS late, unnest(@hinteds::bigint[]) AS hinted
)
INSERT INTO webhook_health AS w (provider, account_id, slice, by_webhook, by_poll, late, hinted)
SELECT i.provider, i.account_id, i.slice, i.by_webhook, i.by_poll, i.late, i.hinted FROM input i
ORDER BY i.provider, i.account_id, i.slice
ON CONFLICT (provider, account_id, slice) DO UPDATE SET by_webhook = w.by_webhook + excluded.by_webhook,
    by_poll = w.by_poll + excluded.by_poll, late = w.late + excluded.late, hinted = w.hinted + excluded.hinted;

-- name: WebhookCallbackSeen :exec
INSERT INTO provider_accounts AS a (provider, account_id, last_callback_at)
SELECT i.provider, i.account_id, max(i.seen)
FROM (SELECT unnest(@providers::text[]) AS provider, unnest(@account_ids::text[]) AS account_id, unnest(@seen::timestamptz[]) AS seen) i
GROUP BY i.provider, i.account_id ORDER BY i.provider, i.account_id
ON CONFLICT (provider, account_id) DO UPDATE SET last_callback_at = excluded.last_callback_at
WHERE a.last_callback_at IS NULL OR a.last_callback_at < excluded.last_callback_at;

-- name: WebhookCounts :many
SELECT provider, account_id, slice, by_webhook, by_poll, late, hinted FROM webhook_health
WHERE slice >= @since ORDER BY provider, account_id, slice DESC;

-- name: WebhookSilenceBegin :execrows
INSERT INTO provider_accounts AS a (provider, account_id, webhook_silent_since) VALUES (@provider, @account_id, @since::timestamptz)
ON CONFLICT (provider, account_id) DO UPDATE SET webhook_silent_since = excluded.webhook_silent_since
WHERE a.webhook_silent_since IS NULL;

-- name: WebhookSilenceEnd :execrows
UPDATE provider_accounts SET webhook_silent_since = NULL
WHERE provider = @provider AND account_id = @account_id AND webhook_silent_since IS NOT NULL;

-- name: WebhookSilences :many
SELECT provider, account_id, webhook_silent_since FROM provider_accounts WHERE webhook_silent_since IS NOT NULL ORDER BY provider, account_id;

-- name: WebhookHealthClean :execrows
DELETE FROM webhook_health WHERE ctid = ANY(ARRAY(SELECT w.ctid FROM webhook_health w WHERE w.slice < @before ORDER BY w.slice LIMIT @max_rows FOR UPDATE SKIP LOCKED));
