-- The wanted state of the database. migrations/ brings a database here step by
-- step; a test proves that both give the same catalog.
--
-- Conventions
--   * Statuses are text with a CHECK that repeats the list of the domain, so that
--     a new status is one ALTER TABLE and never an ALTER TYPE.
--   * Hot tables (generation_tasks, task_attempts, task_events, observations, the
--     inbox, the outbox) carry no foreign keys: three of them cost 23 % of the
--     transition rate when measured, each takes a row lock on its parent, and all
--     of these rows are written by one statement set that locks the parents
--     anyway. `aivedio doctor` looks for orphans instead.
--   * Hot tables have their own fillfactor and autovacuum thresholds: the default
--     of a fifth of the table comes far too late for a queue.

-- ---------------------------------------------------------------- access

CREATE TABLE tenants (
    id         UUID        PRIMARY KEY,
    name       TEXT        NOT NULL,
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT uq_tenant_name UNIQUE (name)
);

CREATE TABLE projects (
    id              UUID        PRIMARY KEY,
    tenant_id       UUID        NOT NULL REFERENCES tenants (id),
    name            TEXT        NOT NULL,
    on_late_success TEXT        NOT NULL DEFAULT 'keep' CHECK (on_late_success IN ('keep', 'discard')),
    created_at      TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT uq_project_name UNIQUE (tenant_id, name)
);

CREATE TABLE members (
    project_id UUID        NOT NULL REFERENCES projects (id),
    user_id    UUID        NOT NULL,
    role       TEXT        NOT NULL CHECK (role IN ('viewer', 'editor', 'owner')),
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    PRIMARY KEY (project_id, user_id)
);

CREATE INDEX idx_members_user ON members (user_id);

-- Only the SHA-256 of a key is kept: whoever reads this table can use nothing.
CREATE TABLE api_keys (
    id         UUID        PRIMARY KEY,
    tenant_id  UUID        NOT NULL REFERENCES tenants (id),
    project_id UUID        REFERENCES projects (id),
    name       TEXT        NOT NULL,
    prefix     TEXT        NOT NULL,
    key_hash   BYTEA       NOT NULL,
    scopes     TEXT[]      NOT NULL CHECK (scopes <@ ARRAY['read', 'write', 'operator', 'platform']),
    created_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    revoked_at TIMESTAMPTZ,
    CONSTRAINT uq_api_key_hash UNIQUE (key_hash)
);

CREATE INDEX idx_api_keys_tenant ON api_keys (tenant_id, created_at DESC);

CREATE TABLE stream_tickets (
    ticket_hash BYTEA       PRIMARY KEY,
    tenant_id   UUID        NOT NULL,
    project_id  UUID        NOT NULL,
    user_id     UUID,
    created_at  TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at  TIMESTAMPTZ NOT NULL,
    used_at     TIMESTAMPTZ
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05); -- every row is dead within minutes

CREATE INDEX idx_stream_tickets_expiry ON stream_tickets (expires_at);

-- What was taken away: gateways read the newest rows and end live connections.
CREATE TABLE revocations (
    id         BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       TEXT        NOT NULL CHECK (kind IN ('api_key', 'user', 'session', 'project', 'tenant')),
    subject    TEXT        NOT NULL,
    tenant_id  UUID,
    revoked_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    expires_at TIMESTAMPTZ
);

CREATE INDEX idx_revocations_time ON revocations (revoked_at);

CREATE TABLE audit_log (
    id         BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    action_id  UUID        NOT NULL,
    actor      TEXT        NOT NULL,
    action     TEXT        NOT NULL,
    reason     TEXT        NOT NULL DEFAULT '',
    task_id    UUID,
    attempt_id UUID,
    subject    TEXT        NOT NULL DEFAULT '',
    created_at TIMESTAMPTZ NOT NULL DEFAULT now()
);

CREATE INDEX idx_audit_log_task ON audit_log (task_id, id) WHERE task_id IS NOT NULL;
CREATE INDEX idx_audit_log_time ON audit_log (created_at);

-- ---------------------------------------------------------------- tasks

-- No index holds a column that changes with every transition, so that most
-- updates stay on their page (HOT); the partial index of open tasks changes once.
CREATE TABLE generation_tasks (
    id                 UUID        PRIMARY KEY,
    tenant_id          UUID        NOT NULL,
    project_id         UUID        NOT NULL,
    user_id            UUID,
    status             TEXT        NOT NULL CHECK (status IN ('queued', 'running', 'provider_succeeded', 'processing_media', 'ready', 'failed', 'canceled', 'cancel_requested', 'provider_status_unknown')),
    phase              TEXT        NOT NULL CHECK (phase IN ('queued', 'running', 'provider_succeeded', 'processing_media', 'ready', 'failed', 'canceled')),
    cancel             TEXT        NOT NULL CHECK (cancel IN ('none', 'requested', 'sent', 'refused', 'confirmed')),
    unknown_since      TIMESTAMPTZ,
    stage              TEXT        NOT NULL CHECK (stage IN ('submitting', 'waiting', 'generating', 'fetching', 'validating', 'transcoding', 'publishing', 'done')),
    progress           SMALLINT    CHECK (progress BETWEEN 0 AND 100),
    version            BIGINT      NOT NULL CHECK (version >= 0),
    last_event_id      BIGINT      NOT NULL,
    current_attempt_id UUID        NOT NULL,
    attempt_count      INTEGER     NOT NULL CHECK (attempt_count >= 1),
    on_late_success    TEXT        NOT NULL CHECK (on_late_success IN ('keep', 'discard')),
    asset_id           UUID,
    error_code         TEXT        CHECK (error_code IN ('moderation_input', 'moderation_output', 'invalid_input', 'quota_exceeded', 'provider_unavailable', 'provider_error', 'output_missing', 'output_expired', 'expired', 'media_error', 'canceled', 'not_created', 'abandoned')),
    error_retryable    BOOLEAN,
    error_trace_id     UUID,
    trace_id           UUID,
    created_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    terminal_at        TIMESTAMPTZ,
    CONSTRAINT ck_task_facts CHECK (
        (unknown_since IS NULL OR phase IN ('queued', 'running'))
        AND CASE
            WHEN phase = 'canceled' THEN cancel IN ('none', 'confirmed')
            WHEN phase IN ('ready', 'failed') THEN cancel IN ('none', 'refused')
            ELSE cancel <> 'confirmed'
        END),
    CONSTRAINT ck_task_status CHECK (status = CASE
            WHEN phase IN ('ready', 'failed', 'canceled') THEN phase
            WHEN cancel IN ('requested', 'sent') THEN 'cancel_requested'
            WHEN unknown_since IS NOT NULL THEN 'provider_status_unknown'
            ELSE phase
        END),
    CONSTRAINT ck_task_terminal_at CHECK ((terminal_at IS NOT NULL) = (phase IN ('ready', 'failed', 'canceled')))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

CREATE INDEX idx_tasks_project ON generation_tasks (project_id, created_at DESC, id DESC);
CREATE INDEX idx_tasks_project_open ON generation_tasks (project_id, created_at DESC, id DESC) WHERE terminal_at IS NULL;

-- What the user asked for. extra and metadata are JSON, not JSONB: they go back
-- out byte for byte, and JSONB refuses the escape of NUL.
CREATE TABLE task_inputs (
    task_id          UUID    PRIMARY KEY,
    prompt           TEXT    NOT NULL,
    image_url        TEXT    NOT NULL DEFAULT '',
    duration_seconds INTEGER NOT NULL DEFAULT 0,
    aspect_ratio     TEXT    NOT NULL DEFAULT '',
    resolution       TEXT    NOT NULL DEFAULT '',
    seed             BIGINT,
    extra            JSON,
    metadata         JSON
);

CREATE TABLE task_attempts (
    id                 UUID        PRIMARY KEY,
    task_id            UUID        NOT NULL,
    attempt_no         INTEGER     NOT NULL CHECK (attempt_no >= 1),
    provider           TEXT        NOT NULL,
    model              TEXT        NOT NULL,
    account_id         TEXT        NOT NULL,
    base_url           TEXT        NOT NULL DEFAULT '',
    client_request_id  TEXT        NOT NULL,
    provider_task_id   TEXT,
    token_hash         BYTEA,
    status             TEXT        NOT NULL CHECK (status IN ('created', 'submitting', 'submit_unknown', 'submitted', 'queued', 'running', 'succeeded', 'failed', 'canceled')),
    last_provider_seq  BIGINT,
    last_provider_at   TIMESTAMPTZ,
    progress           SMALLINT    CHECK (progress BETWEEN 0 AND 100),
    progress_at        TIMESTAMPTZ,
    deferred_progress  SMALLINT    CHECK (deferred_progress BETWEEN 0 AND 100),
    deferred_until     TIMESTAMPTZ,
    outputs            JSON,
    error_class        TEXT        CHECK (error_class IN ('moderation_input', 'moderation_output', 'invalid_input', 'quota_exceeded', 'provider_unavailable', 'provider_error', 'output_missing', 'output_expired', 'expired', 'media_error', 'canceled', 'not_created', 'abandoned')),
    error_code         TEXT,
    submit_lease       UUID,
    submit_lease_until TIMESTAMPTZ,
    next_submit_at     TIMESTAMPTZ,
    submit_count       INTEGER     NOT NULL DEFAULT 0,
    submitted_at       TIMESTAMPTZ,
    poll_lease         UUID,
    poll_lease_until   TIMESTAMPTZ,
    next_poll_at       TIMESTAMPTZ,
    poll_count         INTEGER     NOT NULL DEFAULT 0,
    poll_failures      INTEGER     NOT NULL DEFAULT 0,
    poll_hint_at       TIMESTAMPTZ,
    poll_first         BOOLEAN     NOT NULL DEFAULT false,
    last_query_at      TIMESTAMPTZ,
    next_reconcile_at  TIMESTAMPTZ,
    reconcile_count    INTEGER     NOT NULL DEFAULT 0,
    overdue            BOOLEAN     NOT NULL DEFAULT false,
    conflicted         BOOLEAN     NOT NULL DEFAULT false,
    credits            BIGINT      NOT NULL DEFAULT 0 CHECK (credits >= 0),
    closing            TEXT        NOT NULL CHECK (closing IN ('open', 'settled', 'refunded')),
    adopted_by         UUID,
    created_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    updated_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    terminal_at        TIMESTAMPTZ,
    CONSTRAINT uq_task_attempt_no UNIQUE (task_id, attempt_no),
    CONSTRAINT uq_provider_task UNIQUE (provider, provider_task_id, account_id),
    CONSTRAINT uq_client_request UNIQUE (provider, client_request_id),
    CONSTRAINT uq_attempt_token UNIQUE (token_hash),
    CONSTRAINT ck_attempt_terminal_at CHECK ((terminal_at IS NOT NULL) = (status IN ('succeeded', 'failed', 'canceled')))
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.02, autovacuum_analyze_scale_factor = 0.05);

-- Due work, one partial index per timer.
CREATE INDEX idx_attempts_submit ON task_attempts (next_submit_at) WHERE status = 'created' AND next_submit_at IS NOT NULL;
CREATE INDEX idx_attempts_submit_expired ON task_attempts (submit_lease_until) WHERE status = 'submitting';
-- Polls have two queues: what somebody waits for, and the rest. Claims take from
-- both, each in the order of its due times.
CREATE INDEX idx_attempts_poll_first ON task_attempts (next_poll_at) WHERE next_poll_at IS NOT NULL AND (poll_first OR poll_hint_at IS NOT NULL);
CREATE INDEX idx_attempts_poll_rest ON task_attempts (next_poll_at) WHERE next_poll_at IS NOT NULL AND NOT (poll_first OR poll_hint_at IS NOT NULL);
CREATE INDEX idx_attempts_reconcile ON task_attempts (next_reconcile_at) WHERE next_reconcile_at IS NOT NULL;
CREATE INDEX idx_attempts_progress ON task_attempts (deferred_until) WHERE deferred_until IS NOT NULL;
CREATE INDEX idx_attempts_succeeded ON task_attempts (provider, model, terminal_at) WHERE status = 'succeeded' AND submitted_at IS NOT NULL;
CREATE INDEX idx_attempts_overdue ON task_attempts (COALESCE(submitted_at, created_at)) WHERE NOT overdue AND terminal_at IS NULL;

-- ---------------------------------------------------------------- events

-- The counter of a project's stream, taken last in a transaction: event numbers
-- are gap-free and in commit order. The newest event is described here as well,
-- so that a snapshot's cursor is one row away.
CREATE TABLE project_streams (
    project_id        UUID        PRIMARY KEY,
    last_event_id     BIGINT      NOT NULL DEFAULT 0,
    last_at           TIMESTAMPTZ NOT NULL DEFAULT 'epoch',
    last_task_id      UUID,
    last_task_version BIGINT
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);

-- Unique indexes live on the partitions (aivedio_make_partitions): they cannot
-- span days, and the locked counters already rule a repetition out.
CREATE TABLE task_events (
    event_id       BIGINT      NOT NULL,
    tenant_id      UUID        NOT NULL,
    project_id     UUID        NOT NULL,
    user_id        UUID,
    task_id        UUID        NOT NULL,
    attempt_id     UUID,
    task_version   BIGINT      NOT NULL,
    event_type     TEXT        NOT NULL,
    public_payload JSONB       NOT NULL,
    source         TEXT        NOT NULL CHECK (source IN ('webhook', 'poll', 'reconcile', 'correction', 'submit', 'media', 'user', 'operator', 'system')),
    trace_id       UUID,
    occurred_at    TIMESTAMPTZ,
    created_at     TIMESTAMPTZ NOT NULL
) PARTITION BY RANGE (created_at);

CREATE SEQUENCE observations_id_seq;

-- Each input that changed something or was refused: the timeline of a task. A
-- sequence instead of an identity column, which partitions have only from
-- PostgreSQL 17 on.
CREATE TABLE observations (
    id                   BIGINT      NOT NULL DEFAULT nextval('observations_id_seq'),
    task_id              UUID,
    attempt_id           UUID,
    inbox_id             BIGINT,
    kind                 TEXT        NOT NULL CHECK (kind IN ('observation', 'poll_failed', 'submit_started', 'submit_accepted', 'submit_not_sent', 'submit_rejected', 'submit_unknown', 'submit_replayed', 'lookup_failed', 'cancel_requested', 'cancel_accepted', 'cancel_refused', 'retry_requested', 'progress_due', 'overdue', 'media_stage', 'media_ready', 'media_failed', 'resolution')),
    source               TEXT        NOT NULL CHECK (source IN ('webhook', 'poll', 'reconcile', 'correction', 'submit', 'media', 'user', 'operator', 'system')),
    trust                TEXT        CHECK (trust IN ('authentic', 'replayable', 'envelope', 'bearer')),
    provider             TEXT,
    provider_event_id    TEXT,
    dedup_key            TEXT,
    provider_task_id     TEXT,
    client_request_id    TEXT,
    provider_sequence    BIGINT,
    provider_occurred_at TIMESTAMPTZ,
    received_at          TIMESTAMPTZ NOT NULL,
    status               TEXT,
    stage                TEXT,
    progress             SMALLINT,
    error_class          TEXT,
    error_code           TEXT,
    error_message        TEXT        CHECK (octet_length(error_message) <= 500),
    next_at              TIMESTAMPTZ,
    outputs              JSON,
    payload_hash         TEXT,
    trace_id             UUID,
    verdict              TEXT        NOT NULL CHECK (verdict IN ('applied', 'unchanged', 'needs_query', 'ignored', 'conflict')),
    reason               TEXT        CHECK (reason IN ('stale_attempt', 'stale_sequence', 'stale_lease', 'regressive_status', 'regressive_stage', 'regressive_progress', 'throttled_progress', 'terminal_absorbing', 'duplicate', 'not_trusted', 'thin_event', 'output_missing', 'unknown_status', 'identity_mismatch', 'orphan', 'foreign_event', 'not_submittable', 'contradicting_terminal', 'late_success', 'payload_differs')),
    version_before       BIGINT      NOT NULL,
    version_after        BIGINT      NOT NULL,
    created_at           TIMESTAMPTZ NOT NULL
) PARTITION BY RANGE (created_at);

-- What is not worth a row of its own.
CREATE TABLE observation_counters (
    task_id UUID        NOT NULL,
    verdict TEXT        NOT NULL CHECK (verdict IN ('applied', 'unchanged', 'needs_query', 'ignored', 'conflict')),
    reason  TEXT        NOT NULL DEFAULT '',
    count   BIGINT      NOT NULL,
    last_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (task_id, verdict, reason)
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- ---------------------------------------------------------------- outbox

-- The messages of the bus. A row is written once and removed when it is old: what
-- has still to be sent is a narrow row of outbox_queue, since rewriting the wide
-- row to mark it as published cost 48 us and 1.6 KB of WAL when measured, and
-- deleting the narrow one 3 us and 0.1 KB.
--
-- payload is JSON, not JSONB: it is written once and read once, and taking it apart
-- cost a fifth of the statement that writes events.
CREATE TABLE outbox_events (
    id                BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    shard             SMALLINT    NOT NULL CHECK (shard BETWEEN 0 AND 63),
    project_id        UUID        NOT NULL,
    event_id          BIGINT      NOT NULL,
    aggregate_type    TEXT        NOT NULL,
    aggregate_id      UUID        NOT NULL,
    aggregate_version BIGINT      NOT NULL,
    event_type        TEXT        NOT NULL,
    payload           JSON        NOT NULL,
    created_at        TIMESTAMPTZ NOT NULL,
    CONSTRAINT uq_outbox_aggregate_version UNIQUE (aggregate_id, aggregate_version, event_type, aggregate_type)
) WITH (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.05);

-- What waits for a relay, by id: the ids of one project rise with its event
-- numbers, since they are drawn under the stream's lock, and no project starves
-- another.
CREATE TABLE outbox_queue (
    outbox_id  BIGINT   PRIMARY KEY,
    shard      SMALLINT NOT NULL,
    project_id UUID     NOT NULL
) WITH (fillfactor = 90, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000);

-- The queue's rows of parked projects, out of the way of those that move.
CREATE TABLE outbox_parked (
    outbox_id  BIGINT   PRIMARY KEY,
    shard      SMALLINT NOT NULL,
    project_id UUID     NOT NULL
);

CREATE INDEX idx_outbox_parked_project ON outbox_parked (project_id, outbox_id);

-- A project whose rows the bus refused: due again at next_retry_at, or parked
-- for a person. Per project, since its rows must not overtake each other.
CREATE TABLE outbox_holds (
    project_id      UUID        PRIMARY KEY,
    retry_count     INTEGER     NOT NULL,
    next_retry_at   TIMESTAMPTZ NOT NULL,
    parked_at       TIMESTAMPTZ,
    last_error_code TEXT        NOT NULL DEFAULT '',
    updated_at      TIMESTAMPTZ NOT NULL DEFAULT now()
);

-- The token rises with every change of owner, so that a relay that lost its
-- lease cannot mark anything.
CREATE TABLE relay_shards (
    shard       SMALLINT    PRIMARY KEY CHECK (shard BETWEEN 0 AND 63),
    owner       UUID,
    token       BIGINT      NOT NULL DEFAULT 0,
    lease_until TIMESTAMPTZ NOT NULL DEFAULT 'epoch'
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);

-- Who is alive, to compute a fair share.
CREATE TABLE relay_owners (
    owner      UUID        PRIMARY KEY,
    live_until TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);

-- Which subscriber group still has to see which event, for a bus without broker.
CREATE TABLE bus_retry (
    group_name TEXT        NOT NULL,
    outbox_id  BIGINT      NOT NULL,
    project_id UUID        NOT NULL,
    event_id   BIGINT      NOT NULL,
    next_at    TIMESTAMPTZ NOT NULL,
    attempts   INTEGER     NOT NULL DEFAULT 0,
    PRIMARY KEY (group_name, outbox_id)
);

CREATE INDEX idx_bus_retry_due ON bus_retry (group_name, project_id, event_id);
CREATE INDEX idx_bus_retry_outbox ON bus_retry (outbox_id);

-- ---------------------------------------------------------------- inbox

-- Verified deliveries. process_status stays pending when a delivery is done or
-- ignored: its narrow row in inbox_outcomes says so, and this wide row is written
-- once. Only the rare ways (retry, orphan, dead) rewrite it.
CREATE TABLE provider_callback_inbox (
    id                    BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    provider              TEXT        NOT NULL,
    account_id            TEXT        NOT NULL DEFAULT '',
    dedup_key             TEXT        NOT NULL,
    trust                 TEXT        NOT NULL CHECK (trust IN ('authentic', 'replayable', 'envelope', 'bearer')),
    provider_event_id     TEXT,
    provider_task_id      TEXT,
    client_request_id     TEXT,
    token_hash            BYTEA,
    provider_occurred_at  TIMESTAMPTZ,
    received_at           TIMESTAMPTZ NOT NULL DEFAULT now(),
    signature_key_version TEXT,
    payload_hash          BYTEA       NOT NULL,
    payload               BYTEA,
    payload_key_version   TEXT,
    trace_id              UUID,
    shard                 SMALLINT    NOT NULL,
    process_status        TEXT        NOT NULL DEFAULT 'pending' CHECK (process_status IN ('pending', 'retry', 'orphan', 'done', 'ignored', 'dead')),
    claim_count           INTEGER     NOT NULL DEFAULT 0,
    error_count           INTEGER     NOT NULL DEFAULT 0,
    next_retry_at         TIMESTAMPTZ NOT NULL DEFAULT now(),
    last_error_code       TEXT,
    processed_at          TIMESTAMPTZ,
    CONSTRAINT uq_provider_callback_dedup UNIQUE (provider, dedup_key)
) WITH (autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05, autovacuum_vacuum_scale_factor = 0.05, toast.autovacuum_vacuum_scale_factor = 0.05);

-- Each row is rewritten once, narrow, when its payload is removed, and deleted when
-- its key is not needed any more: about as many dead rows a day as new ones. A fifth
-- of a week's rows would be a day and a half of them, so vacuum comes at a twentieth,
-- and what it frees takes in the coming rows.

CREATE INDEX idx_callback_inbox_waiting ON provider_callback_inbox (next_retry_at, id) WHERE process_status IN ('retry', 'orphan');
CREATE INDEX idx_callback_inbox_troubled ON provider_callback_inbox (id) WHERE process_status IN ('dead', 'retry', 'orphan');
CREATE INDEX idx_callback_inbox_dead ON provider_callback_inbox (processed_at) WHERE process_status = 'dead';
CREATE INDEX idx_callback_inbox_received ON provider_callback_inbox USING brin (received_at);

-- The work queue beside the inbox. shard brings the rows of one job to one
-- worker; deaths counts workers that died with the row in hand.
CREATE TABLE inbox_queue (
    inbox_id BIGINT   PRIMARY KEY,
    shard    SMALLINT NOT NULL,
    deaths   SMALLINT NOT NULL DEFAULT 0
) WITH (fillfactor = 90, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000);

CREATE INDEX idx_inbox_queue_suspect ON inbox_queue (inbox_id) WHERE deaths > 0;

CREATE TABLE inbox_outcomes (
    inbox_id     BIGINT      PRIMARY KEY,
    verdict      TEXT        NOT NULL CHECK (verdict IN ('applied', 'unchanged', 'needs_query', 'ignored', 'conflict')),
    reason       TEXT        NOT NULL DEFAULT '',
    processed_at TIMESTAMPTZ NOT NULL
) WITH (autovacuum_vacuum_scale_factor = 0.05, autovacuum_vacuum_insert_scale_factor = 0.05, autovacuum_analyze_scale_factor = 0.05);

-- What each worker has in hand, written before the transaction that applies it:
-- after a death this is how the rows are known that may have caused it.
CREATE TABLE inbox_workers (
    worker_id     UUID        PRIMARY KEY,
    backend_pid   INTEGER     NOT NULL,
    backend_start TIMESTAMPTZ NOT NULL,
    shards        SMALLINT[]  NOT NULL,
    inbox_ids     BIGINT[]    NOT NULL,
    taken_at      TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200);

-- ---------------------------------------------------------------- follow-up

CREATE TABLE operations (
    id             UUID        PRIMARY KEY,
    task_id        UUID        NOT NULL,
    attempt_id     UUID        NOT NULL,
    operation_type TEXT        NOT NULL CHECK (operation_type IN ('fetch_output', 'cancel_provider')),
    status         TEXT        NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'done', 'failed')),
    tries          INTEGER     NOT NULL DEFAULT 0,
    next_at        TIMESTAMPTZ NOT NULL,
    lease          UUID,
    lease_until    TIMESTAMPTZ,
    error_code     TEXT,
    created_at     TIMESTAMPTZ NOT NULL,
    failed_at      TIMESTAMPTZ,
    failed_tries   INTEGER     NOT NULL DEFAULT 0,
    finished_at    TIMESTAMPTZ,
    CONSTRAINT uq_operation UNIQUE (task_id, attempt_id, operation_type),
    CONSTRAINT ck_operation_finished_at CHECK ((finished_at IS NOT NULL) = (status IN ('done', 'failed')))
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.02);

CREATE INDEX idx_operations_due ON operations (operation_type, next_at) WHERE status = 'pending';

CREATE TABLE conflicts (
    id         BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       TEXT        NOT NULL CHECK (kind IN ('contradicting_terminal', 'late_success', 'payload_differs', 'identity_mismatch')),
    subject    TEXT        NOT NULL,
    task_id    UUID,
    attempt_id UUID,
    have       TEXT        CHECK (have IN ('created', 'submitting', 'submit_unknown', 'submitted', 'queued', 'running', 'succeeded', 'failed', 'canceled')),
    got        TEXT        NOT NULL DEFAULT '' CHECK (got IN ('', 'created', 'submitting', 'submit_unknown', 'submitted', 'queued', 'running', 'succeeded', 'failed', 'canceled')),
    outputs    JSON,
    opened_at  TIMESTAMPTZ NOT NULL,
    closed_at  TIMESTAMPTZ,
    resolution TEXT        NOT NULL DEFAULT ''
);

-- subject is the attempt, or the delivery where the attempt is not known.
CREATE UNIQUE INDEX uq_conflict_open ON conflicts (subject, kind, got) WHERE closed_at IS NULL;
CREATE INDEX idx_conflicts_task ON conflicts (task_id) WHERE task_id IS NOT NULL;
CREATE INDEX idx_conflicts_open ON conflicts (opened_at) WHERE closed_at IS NULL;
CREATE INDEX idx_conflicts_closed ON conflicts (closed_at) WHERE closed_at IS NOT NULL;

CREATE TABLE cases (
    id         BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    kind       TEXT        NOT NULL CHECK (kind IN ('submit_unknown', 'lost', 'overdue', 'conflict', 'superseded_cost')),
    task_id    UUID        NOT NULL,
    attempt_id UUID        NOT NULL,
    owner      TEXT        NOT NULL DEFAULT '',
    opened_at  TIMESTAMPTZ NOT NULL,
    closed_at  TIMESTAMPTZ
);

CREATE UNIQUE INDEX uq_case_open ON cases (attempt_id, kind) WHERE closed_at IS NULL;
CREATE INDEX idx_cases_open ON cases (opened_at) WHERE closed_at IS NULL;
CREATE INDEX idx_cases_closed ON cases (closed_at) WHERE closed_at IS NOT NULL;

CREATE TABLE assets (
    id           UUID        PRIMARY KEY,
    tenant_id    UUID        NOT NULL,
    project_id   UUID        NOT NULL,
    task_id      UUID        NOT NULL,
    attempt_id   UUID        NOT NULL,
    kind         TEXT        NOT NULL,
    content_type TEXT        NOT NULL,
    storage_key  TEXT        NOT NULL,
    size_bytes   BIGINT      NOT NULL CHECK (size_bytes >= 0),
    sha256       BYTEA       NOT NULL,
    created_at   TIMESTAMPTZ NOT NULL
);

CREATE INDEX idx_assets_task ON assets (task_id);
CREATE INDEX idx_assets_project ON assets (project_id, created_at DESC);

CREATE TABLE idempotency_keys (
    tenant_id  UUID        NOT NULL,
    scope      TEXT        NOT NULL,
    key        TEXT        NOT NULL,
    body_hash  BYTEA       NOT NULL,
    task_id    UUID        NOT NULL,
    created_at TIMESTAMPTZ NOT NULL,
    expires_at TIMESTAMPTZ NOT NULL,
    CONSTRAINT pk_idempotency PRIMARY KEY (tenant_id, scope, key)
) WITH (autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.05); -- a day's rows go as a day's rows come

CREATE INDEX idx_idempotency_expiry ON idempotency_keys (expires_at);

-- ---------------------------------------------------------------- money

-- Derived balances in the platform's unit. granted is what the tenant ever got,
-- as a negative number, so that the four always add up to zero.
CREATE TABLE ledger_accounts (
    tenant_id  UUID        PRIMARY KEY,
    granted    BIGINT      NOT NULL DEFAULT 0,
    available  BIGINT      NOT NULL DEFAULT 0,
    reserved   BIGINT      NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    spent      BIGINT      NOT NULL DEFAULT 0,
    updated_at TIMESTAMPTZ NOT NULL DEFAULT now(),
    CONSTRAINT ck_account_balanced CHECK (granted + available + reserved + spent = 0)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 200, autovacuum_vacuum_scale_factor = 0.01);

-- Double entry in one row: the four legs of an entry add up to zero, so a wrong
-- entry cannot be written. Balances are the sums of the legs.
CREATE TABLE credit_ledger (
    id              BIGINT      GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant_id       UUID        NOT NULL,
    task_id         UUID,
    attempt_id      UUID,
    ledger_type     TEXT        NOT NULL CHECK (ledger_type IN ('reserve', 'settle', 'refund', 'adjust', 'grant')),
    action_id       UUID,
    credits         BIGINT      NOT NULL CHECK (credits >= 0),
    granted_delta   BIGINT      NOT NULL DEFAULT 0,
    available_delta BIGINT      NOT NULL,
    reserved_delta  BIGINT      NOT NULL,
    spent_delta     BIGINT      NOT NULL,
    created_at      TIMESTAMPTZ NOT NULL,
    CONSTRAINT ck_ledger_balanced CHECK (granted_delta + available_delta + reserved_delta + spent_delta = 0),
    CONSTRAINT ck_ledger_subject CHECK (
        (ledger_type = 'grant' AND task_id IS NULL)
        OR (ledger_type <> 'grant' AND task_id IS NOT NULL AND attempt_id IS NOT NULL
            AND (ledger_type <> 'adjust' OR action_id IS NOT NULL)))
);

-- One row per attempt and type, and exactly one way to close an attempt (I9).
CREATE UNIQUE INDEX uq_ledger_entry ON credit_ledger (task_id, attempt_id, ledger_type) WHERE ledger_type IN ('reserve', 'settle', 'refund');
CREATE UNIQUE INDEX uq_ledger_closing ON credit_ledger (attempt_id) WHERE ledger_type IN ('settle', 'refund');
CREATE UNIQUE INDEX uq_ledger_adjust ON credit_ledger (action_id) WHERE ledger_type = 'adjust';
CREATE UNIQUE INDEX uq_ledger_grant ON credit_ledger (action_id) WHERE ledger_type = 'grant';
CREATE INDEX idx_ledger_tenant ON credit_ledger (tenant_id, id);

-- ---------------------------------------------------------------- vendors

-- Health of each credential, shared by all processes. A change is stored by whoever
-- read the row's version last; a wait that only a person ends has no time.
CREATE TABLE provider_accounts (
    provider          TEXT        NOT NULL,
    account_id        TEXT        NOT NULL,
    breaker           TEXT        NOT NULL DEFAULT 'closed' CHECK (breaker IN ('closed', 'half_open', 'open')),
    breaker_until     TIMESTAMPTZ,
    breaker_reason    TEXT        NOT NULL DEFAULT '',
    failures          INTEGER     NOT NULL DEFAULT 0,
    concurrency_limit INTEGER,
    throttled_until   TIMESTAMPTZ,
    malformed_count   INTEGER     NOT NULL DEFAULT 0,
    quarantined_at    TIMESTAMPTZ,
    last_callback_at  TIMESTAMPTZ,
    updated_at        TIMESTAMPTZ NOT NULL DEFAULT now(),
    version           BIGINT      NOT NULL DEFAULT 0,
    probe_until       TIMESTAMPTZ,
    halved_at         TIMESTAMPTZ,
    grown_at          TIMESTAMPTZ,
    quarantine_until  TIMESTAMPTZ,
    malformed_sample  TEXT        NOT NULL DEFAULT '',
    webhook_silent_since TIMESTAMPTZ,
    PRIMARY KEY (provider, account_id),
    CONSTRAINT ck_provider_accounts_reason CHECK (breaker_reason IN ('', 'transport', 'auth', 'operator'))
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);

-- The processes that call vendors: they share the accounts' limits of calls at once.
CREATE TABLE provider_callers (
    id      UUID        PRIMARY KEY,
    seen_at TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);

-- How long jobs of a model take, from its newest successes.
CREATE TABLE model_durations (
    provider   TEXT        NOT NULL,
    model      TEXT        NOT NULL,
    p50_ms     BIGINT      NOT NULL CHECK (p50_ms >= 0),
    p95_ms     BIGINT      NOT NULL CHECK (p95_ms >= p50_ms),
    samples    INTEGER     NOT NULL CHECK (samples > 0),
    updated_at TIMESTAMPTZ NOT NULL,
    PRIMARY KEY (provider, model)
);

-- Projects that somebody looks at. Only an order of work hangs on it, so it is
-- not logged: after a crash the gateways fill it again.
CREATE UNLOGGED TABLE watched_projects (
    project_id UUID        PRIMARY KEY,
    until      TIMESTAMPTZ NOT NULL
) WITH (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.05);

-- How the ends of jobs were learned, in slices of ten seconds. Every process adds
-- what it has seen every few seconds, so a row is rewritten in place a few times
-- and never again: hence the free half of each page.
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

-- ---------------------------------------------------------------- sweep

-- What each chore of the sweep did last, wherever it ran, and in all.
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

-- Up to which row a chore has come that goes through a table in its order. Its row
-- is the lock that keeps two nodes from doing the same part.
CREATE TABLE sweep_marks (
    name  TEXT   PRIMARY KEY,
    value BIGINT NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 100);

-- ---------------------------------------------------------------- functions

-- Makes the daily partitions from yesterday to the given number of days ahead
-- and returns how many are new. A child is filled with its indexes first and then
-- attached, which locks the parent far less than CREATE TABLE ... PARTITION OF.
CREATE FUNCTION aivedio_make_partitions(days_ahead INTEGER) RETURNS INTEGER
LANGUAGE plpgsql AS $$
DECLARE
    parent TEXT;
    child  TEXT;
    day    DATE;
    made   INTEGER := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('aivedio_make_partitions'));
    FOREACH parent IN ARRAY ARRAY['task_events', 'observations'] LOOP
        FOR day IN SELECT (clock_timestamp() AT TIME ZONE 'UTC')::date + n FROM generate_series(-1, days_ahead) AS n LOOP
            child := parent || '_p' || to_char(day, 'YYYYMMDD');
            CONTINUE WHEN to_regclass(child) IS NOT NULL;
            EXECUTE format('CREATE TABLE %I (LIKE %I INCLUDING DEFAULTS INCLUDING CONSTRAINTS) WITH (autovacuum_vacuum_insert_scale_factor = 0.05)', child, parent);
            EXECUTE format('CREATE INDEX %I ON %I USING brin (created_at) WITH (pages_per_range = 16, autosummarize = on)', child || '_created', child);
            IF parent = 'task_events' THEN
                EXECUTE format('CREATE UNIQUE INDEX %I ON %I (project_id, event_id)', child || '_event', child);
                EXECUTE format('CREATE UNIQUE INDEX %I ON %I (task_id, task_version)', child || '_version', child);
            ELSE
                EXECUTE format('CREATE INDEX %I ON %I (task_id, id)', child || '_task', child);
            END IF;
            EXECUTE format('ALTER TABLE %I ATTACH PARTITION %I FOR VALUES FROM (%L) TO (%L)', parent, child, day || ' 00:00:00+00', day + 1 || ' 00:00:00+00');
            made := made + 1;
        END LOOP;
    END LOOP;
    RETURN made;
END
$$;

-- Drops the daily partitions that ended more than the given number of days ago and
-- returns how many. Readers whose cursor was in one get a reset.
CREATE FUNCTION aivedio_drop_partitions(days_kept INTEGER) RETURNS INTEGER
LANGUAGE plpgsql AS $$
DECLARE
    child   TEXT;
    dropped INTEGER := 0;
BEGIN
    PERFORM pg_advisory_xact_lock(hashtext('aivedio_make_partitions'));
    FOR child IN
        SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
        WHERE i.inhparent IN ('task_events'::regclass, 'observations'::regclass)
          AND to_date(right(c.relname, 8), 'YYYYMMDD') < (clock_timestamp() AT TIME ZONE 'UTC')::date - days_kept
        ORDER BY c.relname
    LOOP
        EXECUTE format('DROP TABLE %I', child);
        dropped := dropped + 1;
    END LOOP;
    RETURN dropped;
END
$$;

-- How many days from tomorrow on have their partitions in both tables; alarm below
-- three.
CREATE FUNCTION aivedio_partition_days_ahead() RETURNS INTEGER
LANGUAGE sql STABLE AS $$
    SELECT count(*)::integer FROM generate_series(1, 60) AS n
    WHERE to_regclass('task_events_p' || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + n, 'YYYYMMDD')) IS NOT NULL
      AND to_regclass('observations_p' || to_char((clock_timestamp() AT TIME ZONE 'UTC')::date + n, 'YYYYMMDD')) IS NOT NULL
$$;

-- The claimed time in whole milliseconds, kept within the days that have a
-- partition: a process whose clock is off by a week must not stop the stream.
CREATE FUNCTION aivedio_clock(claimed TIMESTAMPTZ) RETURNS TIMESTAMPTZ
LANGUAGE sql VOLATILE AS $$
    SELECT date_trunc('milliseconds', least(greatest(claimed, clock_timestamp() - interval '12 hours'), clock_timestamp() + interval '6 days'))
$$;

-- Ends the transaction when a statement did not touch what it had to: a pipeline
-- cannot look at a count before the COMMIT behind it.
CREATE FUNCTION aivedio_expect(what TEXT, want BIGINT, got BIGINT) RETURNS BOOLEAN
LANGUAGE plpgsql AS $$
BEGIN
    IF want IS DISTINCT FROM got THEN
        RAISE EXCEPTION '%: % rows instead of %', what, got, want USING ERRCODE = 'AV001';
    END IF;
    RETURN true;
END
$$;

INSERT INTO relay_shards (shard) SELECT generate_series(0, 63);
INSERT INTO sweep_marks (name, value) VALUES ('payloads', 0);
