-- The message is written once and read once: as text it need not be taken apart.
-- The task comes first in the unique index, so that its text columns are compared
-- for rows of one task only.
ALTER TABLE outbox_events ALTER COLUMN payload TYPE JSON USING payload::json;
ALTER TABLE outbox_events DROP CONSTRAINT uq_outbox_aggregate_version;
ALTER TABLE outbox_events ADD CONSTRAINT uq_outbox_aggregate_version UNIQUE (aggregate_id, aggregate_version, event_type, aggregate_type);
