-- What waits for a relay moves from the wide outbox row into a narrow one.
CREATE TABLE outbox_queue (
    outbox_id  BIGINT   PRIMARY KEY,
    shard      SMALLINT NOT NULL,
    project_id UUID     NOT NULL
) WITH (fillfactor = 90, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_cost_delay = 0, autovacuum_analyze_threshold = 5000);

CREATE TABLE outbox_parked (
    outbox_id  BIGINT   PRIMARY KEY,
    shard      SMALLINT NOT NULL,
    project_id UUID     NOT NULL
);

CREATE INDEX idx_outbox_parked_project ON outbox_parked (project_id, outbox_id);

-- Nobody may write events between the copy and the end of the old columns.
LOCK TABLE outbox_events IN ACCESS EXCLUSIVE MODE;

INSERT INTO outbox_queue (outbox_id, shard, project_id)
SELECT id, shard, project_id FROM outbox_events WHERE publish_status = 'pending' ORDER BY id;

DROP INDEX idx_outbox_pending, idx_outbox_published;

ALTER TABLE outbox_events DROP CONSTRAINT ck_outbox_published_at, DROP COLUMN publish_status, DROP COLUMN retry_count, DROP COLUMN published_at;
ALTER TABLE outbox_events RESET (fillfactor, autovacuum_vacuum_threshold, autovacuum_vacuum_scale_factor, autovacuum_analyze_scale_factor);
ALTER TABLE outbox_events SET (autovacuum_vacuum_threshold = 5000, autovacuum_vacuum_scale_factor = 0.01, autovacuum_analyze_scale_factor = 0.05);
