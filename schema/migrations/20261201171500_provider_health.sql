-- Health of provider accounts: versioned changes, probes, the limit of calls at
-- once, quarantine with its sample, and the processes that share the limit.
ALTER TABLE provider_accounts
    ADD COLUMN version          BIGINT NOT NULL DEFAULT 0,
    ADD COLUMN probe_until      TIMESTAMPTZ,
    ADD COLUMN halved_at        TIMESTAMPTZ,
    ADD COLUMN grown_at         TIMESTAMPTZ,
    ADD COLUMN quarantine_until TIMESTAMPTZ,
    ADD COLUMN malformed_sample TEXT NOT NULL DEFAULT '',
    ADD CONSTRAINT ck_provider_accounts_reason CHECK (breaker_reason IN ('', 'transport', 'auth', 'operator'));

CREATE TABLE provider_callers (
    id      UUID        PRIMARY KEY,
    seen_at TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);
