-- Who is polled first, and how long jobs take.

ALTER TABLE task_attempts ADD COLUMN poll_first BOOLEAN NOT NULL DEFAULT false;

DROP INDEX idx_attempts_poll;

CREATE INDEX idx_attempts_poll_first ON task_attempts (next_poll_at) WHERE next_poll_at IS NOT NULL AND (poll_first OR poll_hint_at IS NOT NULL);

CREATE INDEX idx_attempts_poll_rest ON task_attempts (next_poll_at) WHERE next_poll_at IS NOT NULL AND NOT (poll_first OR poll_hint_at IS NOT NULL);

CREATE INDEX idx_attempts_succeeded ON task_attempts (provider, model, terminal_at) WHERE status = 'succeeded' AND submitted_at IS NOT NULL;

CREATE TABLE model_durations (
    provider   TEXT        NOT NULL,
    model      TEXT        NOT NULL,
    p50_ms     BIGINT      NOT NULL CHECK (p50_ms >= 0),
    p95_ms     BIGINT      NOT NULL CHECK (p95_ms >= p50_ms),
    samples    INTEGER     NOT NULL CHECK (samples > 0),
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (provider, model)
);

CREATE UNLOGGED TABLE watched_projects (
    project_id UUID        PRIMARY KEY,
    until      TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);
