-- The sweep's own books and the retention of what nothing removed before.
CREATE TABLE sweep_runs (
    chore        TEXT        PRIMARY KEY,
    last_at      TIMESTAMPTZ NOT NULL,
    last_rows    BIGINT      NOT NULL,
    last_took_ms BIGINT      NOT NULL,
    failed_at    TIMESTAMPTZ,
    runs         BIGINT      NOT NULL,
    rows         BIGINT      NOT NULL,
    errors       BIGINT      NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);

CREATE TABLE sweep_marks (
    name  TEXT   PRIMARY KEY,
    value BIGINT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);

INSERT INTO sweep_marks (name, value) VALUES ('payloads', 0);

CREATE INDEX idx_callback_inbox_dead ON provider_callback_inbox (processed_at) WHERE process_status = 'dead';
CREATE INDEX idx_conflicts_closed ON conflicts (closed_at) WHERE closed_at IS NOT NULL;
CREATE INDEX idx_cases_closed ON cases (closed_at) WHERE closed_at IS NOT NULL;

ALTER TABLE provider_callback_inbox SET (autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE inbox_outcomes SET (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);
ALTER TABLE stream_tickets SET (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);
ALTER TABLE idempotency_keys SET (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05);
