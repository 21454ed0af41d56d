package doctor_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/adapters/pgstore/doctor"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/schema"
)

func TestMain(m *testing.M) { testenv.Main(m) }

// patient is a database in which one task has gone the whole way and another has
// just begun.
func patient(t *testing.T) *pgx.Conn {
	t.Helper()
	ctx := t.Context()
	migrate := func(ctx context.Context, url string) error {
		_, err := pgstore.Migrate(ctx, url, pgstore.MigrateOptions{})
		return err
	}
	db := testenv.PostgresWith(t, migrate, schema.Hash()+time.Now().UTC().Format(time.DateOnly))
	store, err := pgstore.Open(ctx, pgstore.Config{URL: db.URL, Keyring: pgstore.Keyring{Current: "1", Keys: map[string][]byte{"1": make([]byte, 32)}}})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	live(t, store)
	conn, err := pgx.Connect(ctx, db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.WithoutCancel(ctx)) })
	return conn
}

// live plays a short life on the store.
func live(t *testing.T, store ports.Store) {
	t.Helper()
	ctx, now := t.Context(), time.Now()
	tenant, err := store.CreateTenant(ctx, ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: "t", Credits: 100, CreatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	project, err := store.CreateProject(ctx, ports.Project{ID: domain.ProjectID{ID: wire.NewID()}, TenantID: tenant.ID, Name: "p", OnLateSuccess: domain.LateSuccessKeep, CreatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	grant := ports.Audit{ActionID: domain.ActionID{ID: wire.NewID()}, Actor: "test", Action: "credit.grant", Reason: "more"}
	if _, err := store.GrantCredits(ctx, tenant.ID, 50, grant); err != nil {
		t.Fatal(err)
	}
	create := func() domain.AttemptID {
		task := domain.Task{ID: domain.TaskID{ID: wire.NewID()}, TenantID: tenant.ID, ProjectID: project.ID, OnLateSuccess: domain.LateSuccessKeep, TraceID: domain.TraceID{ID: wire.NewID()}}
		a := domain.Attempt{ID: domain.AttemptID{ID: wire.NewID()}, TaskID: task.ID, Provider: "replicate", Model: "m", AccountID: "main", Credits: 2}
		a.ClientRequestID = a.ID.String()
		if _, err := store.Create(ctx, ports.CreateParams{Task: task, Attempt: a, Input: ports.TaskInput{Prompt: "x"}}); err != nil {
			t.Fatal(err)
		}
		return a.ID
	}
	id, _ := create(), create()
	lease := wire.NewID()
	running, done := 40, []domain.OutputRef{{Kind: "video", Ref: "r", URL: "https://x.example/r"}}
	for _, in := range []domain.Input{
		{Kind: domain.InputSubmitStarted, Lease: lease, LeaseUntil: now.Add(time.Minute)},
		{Kind: domain.InputSubmitAccepted, Lease: lease, ProviderTaskID: "job"},
		{Kind: domain.InputPollFailed, QueryError: &domain.QueryError{Class: domain.QueryTransport}, Policy: domain.Policy{UnknownAfter: 1}},
		{Kind: domain.InputObservation, Observation: &domain.Observation{Source: domain.SourcePoll, Status: domain.ObservedRunning, Progress: &running, ReceivedAt: now}},
		{Kind: domain.InputObservation, Observation: &domain.Observation{Source: domain.SourcePoll, Status: domain.ObservedSucceeded, Outputs: done, ReceivedAt: now}},
		{Kind: domain.InputMediaReady, AssetID: domain.AssetID{ID: wire.NewID()}},
	} {
		res, err := store.Apply(ctx, []ports.Item{{Ref: ports.Ref{AttemptID: id}, Input: in}})
		if err != nil || res[0].Err != nil {
			t.Fatalf("%s: %v %v", in.Kind, err, res)
		}
	}
}

// TestHealthy is what every other case departs from.
func TestHealthy(t *testing.T) {
	t.Parallel()
	checks, err := doctor.Examine(t.Context(), patient(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range checks {
		if len(c.Violations) > 0 {
			t.Errorf("%s (%s): %v", c.ID, c.Promise, c.Violations)
		}
	}
	if len(checks) != 16 {
		t.Errorf("%d checks, want one per invariant", len(checks))
	}
}

// TestCorruption breaks one invariant at a time with SQL that the constraints
// let pass, and wants exactly that one named (and those that follow from it).
func TestCorruption(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		id, name, sql string
		also          []string
	}{
		{id: "I1", name: "a delivery that nobody will take", sql: `INSERT INTO provider_callback_inbox (provider, dedup_key, trust, payload_hash, shard, received_at)
			VALUES ('replicate', 'k', 'authentic', 'h', 0, now() - interval '1 hour')`},
		{id: "I1", name: "a payload that was removed too early", sql: `INSERT INTO provider_callback_inbox (provider, dedup_key, trust, payload_hash, shard, process_status)
			VALUES ('replicate', 'k', 'authentic', 'h', 0, 'dead')`},
		{id: "I3", name: "a terminal that a webhook left", also: []string{"I4", "I5", "I6"}, sql: `INSERT INTO task_events (event_id, tenant_id, project_id, task_id, attempt_id, task_version, event_type, public_payload, source, created_at)
			SELECT s.last_event_id + 1, e.tenant_id, e.project_id, e.task_id, e.attempt_id, e.task_version + 1, e.event_type, '{"status":"running"}', 'webhook', e.created_at + interval '1 second'
			FROM task_events e JOIN project_streams s USING (project_id) WHERE e.public_payload ->> 'status' = 'ready'`},
		{id: "I4", name: "a version without its event", sql: `UPDATE generation_tasks SET version = version + 1 WHERE status = 'ready'`},
		{id: "I5", name: "a hole in the stream", also: []string{"I4", "I6"}, sql: `DELETE FROM task_events WHERE event_id = 4`},
		{id: "I5", name: "time that runs backwards", sql: `UPDATE task_events SET created_at = created_at - interval '1 second' WHERE event_id = (SELECT max(event_id) FROM task_events)`},
		{id: "I6", name: "a message about nothing", sql: `UPDATE outbox_events SET event_id = event_id + 1000 WHERE event_id = (SELECT max(event_id) FROM outbox_events)`},
		{id: "I7", name: "a snapshot ahead of its event", sql: `UPDATE generation_tasks SET progress = 99 WHERE status = 'ready'`},
		{id: "I8", name: "a second create", sql: `UPDATE task_attempts SET submit_count = 2 WHERE status = 'succeeded'`},
		{id: "I9", name: "a settled attempt without its entry", sql: `WITH gone AS (DELETE FROM credit_ledger WHERE ledger_type = 'settle' RETURNING tenant_id, available_delta, reserved_delta, spent_delta)
			UPDATE ledger_accounts a SET available = a.available - g.available_delta, reserved = a.reserved - g.reserved_delta, spent = a.spent - g.spent_delta FROM gone g WHERE g.tenant_id = a.tenant_id`},
		{id: "I9", name: "a refund that was never booked", sql: `UPDATE task_attempts SET closing = 'refunded' WHERE status = 'succeeded'`},
		{id: "I9", name: "a balance that nobody booked", sql: `UPDATE ledger_accounts SET available = available + 5, granted = granted - 5`},
		{id: "I10", name: "a result that nobody fetches", also: []string{"I7"}, sql: `WITH o AS (UPDATE operations SET status = 'done', finished_at = now())
			UPDATE generation_tasks SET phase = 'processing_media', status = 'processing_media', terminal_at = NULL WHERE status = 'ready'`},
		{id: "I11", name: "an event of an older attempt", sql: `WITH older AS (
				INSERT INTO task_attempts (id, task_id, attempt_no, provider, model, account_id, client_request_id, status, closing, terminal_at)
				SELECT gen_random_uuid(), task_id, 2, provider, model, account_id, 'second', 'failed', 'open', now() FROM task_attempts WHERE status = 'succeeded' RETURNING id, task_id)
			UPDATE task_events e SET attempt_id = o.id FROM older o WHERE e.task_id = o.task_id AND e.task_version = 3`, also: []string{"I9"}},
		{id: "I12", name: "a failed query that ended a task", also: []string{"I3"}, sql: `UPDATE task_events e SET public_payload = jsonb_set(public_payload, '{status}', '"failed"')
			FROM observations o WHERE o.kind = 'poll_failed' AND o.task_id = e.task_id AND o.version_after = e.task_version`},
		{id: "I14", name: "an event in another tenant", sql: `UPDATE task_events SET tenant_id = gen_random_uuid() WHERE event_id = 2`},
		{id: "I15", name: "a vendor's address in public", sql: `UPDATE task_events SET public_payload = jsonb_set(public_payload, '{stage}', '"https://vendor.example/x"') WHERE event_id = 3`},
		{id: "I15", name: "a key that is not public", sql: `UPDATE task_events SET public_payload = public_payload || '{"prompt":"x"}' WHERE event_id = 3`},
		{id: "I16", name: "an attempt that nobody looks at", sql: `UPDATE task_attempts SET next_submit_at = NULL WHERE status = 'created'`},
	} {
		t.Run(tc.id+"_"+tc.name, func(t *testing.T) {
			t.Parallel()
			conn := patient(t)
			tag, err := conn.Exec(t.Context(), tc.sql)
			if err != nil {
				t.Fatal(err)
			}
			if tag.RowsAffected() == 0 {
				t.Fatal("the corruption touched no row")
			}
			checks, err := doctor.Examine(t.Context(), conn)
			if err != nil {
				t.Fatal(err)
			}
			expected := map[string]bool{tc.id: true}
			for _, id := range tc.also {
				expected[id] = true
			}
			for _, c := range checks {
				if (len(c.Violations) > 0) != expected[c.ID] {
					t.Errorf("%s: %v", c.ID, c.Violations)
				}
			}
			if doctor.Violations(checks) == 0 {
				t.Error("nothing was counted")
			}
		})
	}
}
