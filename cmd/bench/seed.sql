-- Copies the only task of the database for every row of bench.task. A column that
-- is not named here is copied as it is, so that a new one needs no change.
-- The copies' events are as old as the original's first one: older events need no
-- outbox row, and the streams stay monotone in time.
CREATE TABLE bench.original AS
SELECT t.id AS task_id, t.project_id, t.tenant_id, t.version, (SELECT min(created_at) FROM task_events) AS at
FROM generation_tasks t;

INSERT INTO projects (id, tenant_id, name, on_late_success, created_at)
SELECT b.project_id, p.tenant_id, 'bench ' || b.n, p.on_late_success, p.created_at
FROM bench.project b, bench.original o JOIN projects p ON p.id = o.project_id;

INSERT INTO generation_tasks
SELECT c.* FROM bench.task b JOIN bench.project p ON p.n = b.project, bench.original o JOIN generation_tasks t ON t.id = o.task_id,
LATERAL jsonb_populate_record(t, jsonb_build_object('id', b.task_id, 'project_id', p.project_id, 'current_attempt_id', b.attempt_id,
    'last_event_id', (b.place + 1) * t.version)) AS c;

INSERT INTO task_inputs
SELECT c.* FROM bench.task b, bench.original o JOIN task_inputs i ON i.task_id = o.task_id,
LATERAL jsonb_populate_record(i, jsonb_build_object('task_id', b.task_id)) AS c;

INSERT INTO task_attempts
SELECT c.* FROM bench.task b, bench.original o JOIN task_attempts a ON a.task_id = o.task_id,
LATERAL jsonb_populate_record(a, jsonb_build_object('id', b.attempt_id, 'task_id', b.task_id, 'provider_task_id', b.provider_task_id,
    'client_request_id', b.attempt_id, 'token_hash', b.token_hash, 'next_poll_at', now() + interval '6 hours')) AS c;

INSERT INTO task_events
SELECT c.* FROM bench.task b JOIN bench.project p ON p.n = b.project, bench.original o JOIN task_events e ON e.task_id = o.task_id,
LATERAL jsonb_populate_record(e, jsonb_build_object('event_id', b.place * o.version + e.task_version, 'project_id', p.project_id,
    'task_id', b.task_id, 'attempt_id', b.attempt_id, 'created_at', o.at, 'occurred_at', o.at)) AS c;

INSERT INTO project_streams (project_id, last_event_id, last_at, last_task_id, last_task_version)
SELECT DISTINCT ON (b.project) p.project_id, (b.place + 1) * o.version, o.at, b.task_id, o.version
FROM bench.task b JOIN bench.project p ON p.n = b.project, bench.original o
ORDER BY b.project, b.place DESC;

INSERT INTO credit_ledger (tenant_id, task_id, attempt_id, ledger_type, credits, granted_delta, available_delta, reserved_delta, spent_delta, created_at)
SELECT l.tenant_id, b.task_id, b.attempt_id, l.ledger_type, l.credits, l.granted_delta, l.available_delta, l.reserved_delta, l.spent_delta, l.created_at
FROM bench.task b, bench.original o JOIN credit_ledger l ON l.task_id = o.task_id;

UPDATE ledger_accounts a SET available = s.available, reserved = s.reserved, spent = s.spent
FROM (SELECT tenant_id, sum(available_delta) AS available, sum(reserved_delta) AS reserved, sum(spent_delta) AS spent FROM credit_ledger GROUP BY tenant_id) AS s
WHERE s.tenant_id = a.tenant_id;
