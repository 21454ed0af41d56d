ALTER TABLE provider_accounts ADD COLUMN webhook_silent_since TIMESTAMPTZ;

CREATE TABLE webhook_health (
    provider   TEXT        NOT NULL,
    account_id TEXT        NOT NULL,
    slice      TIMESTAMPTZ NOT NULL,
    by_webhook BIGINT      NOT NULL DEFAULT 0,
    by_poll    BIGINT      NOT NULL DEFAULT 0,
    late       BIGINT      NOT NULL DEFAULT 0,
    hinted     BIGINT      NOT NULL DEFAULT 0,
    PRIMARY KEY (provider, account_id, slice)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.05);

CREATE INDEX idx_webhook_health_slice ON webhook_health (slice);
