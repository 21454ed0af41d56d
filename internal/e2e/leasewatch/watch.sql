-- Writes down who leased what, for which timer, and what lease it had before.
CREATE SCHEMA leasewatch;

CREATE UNLOGGED TABLE leasewatch.claim (
    attempt_id UUID NOT NULL, lease UUID NOT NULL, due TIMESTAMPTZ, until TIMESTAMPTZ NOT NULL,
    left_until TIMESTAMPTZ, at TIMESTAMPTZ NOT NULL
);

CREATE FUNCTION leasewatch.note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO leasewatch.claim VALUES (NEW.id, NEW.poll_lease, coalesce(OLD.next_poll_at, OLD.next_reconcile_at), NEW.poll_lease_until,
        CASE WHEN OLD.poll_lease IS NOT NULL THEN OLD.poll_lease_until END, clock_timestamp());
    RETURN NULL;
END $$;

CREATE TRIGGER leasewatch_claim AFTER UPDATE ON task_attempts FOR EACH ROW
WHEN (NEW.poll_lease IS NOT NULL AND NEW.poll_lease IS DISTINCT FROM OLD.poll_lease) EXECUTE FUNCTION leasewatch.note();
