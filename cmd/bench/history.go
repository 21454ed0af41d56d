package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/domain"
)

// history is what is stored of work that is done: copies of one task that failed
// after its vendor had sent some news, with its attempt, events, observations,
// deliveries and money, over projects of their own.
type history struct {
	url      string
	observer *observer
	task     domain.Task
	// perTask is how many events one copy has, tasks how many copies there are.
	perTask, tasks int
	columns        map[string][]string
}

const (
	historyProjects = 500
	// historyDeliveries is how many deliveries one copy has had.
	historyDeliveries = 3
	// historyChunk is how many copies one statement makes, historyWriters how many
	// statements run at once.
	historyChunk   = 10_000
	historyWriters = 2
)

// newHistory makes the task that is copied. The inbox must hold a delivery.
func (b *bed) newHistory(ctx context.Context) (*history, error) {
	s, err := newSeeder(ctx, b.cluster.URL(oursDatabase), b.secrets)
	if err != nil {
		return nil, err
	}
	defer s.store.Close()
	if err := s.template(ctx, "history", 1); err != nil {
		return nil, fmt.Errorf("the task that history copies: %w", err)
	}
	progress := 40
	news := func(status domain.Observed, seq int64) domain.Observation {
		return domain.Observation{
			Provider: vendor, ProviderTaskID: "history", Status: status, ProviderSequence: &seq, SequenceKind: domain.SequenceCounter,
			Source: domain.SourceWebhook, Trust: domain.TrustAuthentic, ReceivedAt: time.Now(),
		}
	}
	queued, running, failed := news(domain.ObservedQueued, 1), news(domain.ObservedRunning, 2), news(domain.ObservedFailed, 3)
	running.Progress, failed.ErrorClass = &progress, domain.ClassModerationOutput
	for _, obs := range []domain.Observation{queued, running, failed} {
		if err := s.apply(ctx, domain.Input{Kind: domain.InputObservation, Policy: s.policy, Observation: &obs}); err != nil {
			return nil, err
		}
	}
	h := &history{url: b.cluster.URL(oursDatabase), observer: b.observer, task: s.task, columns: map[string][]string{}}
	return h, h.prepare(ctx)
}

// prepare reads the columns of the tables and makes the projects.
func (h *history) prepare(ctx context.Context) error {
	for _, table := range []string{"generation_tasks", "task_inputs", "task_attempts", "task_events", "observations", "credit_ledger", "provider_callback_inbox"} {
		rows, err := h.observer.conn.Query(ctx, `SELECT attname FROM pg_attribute
			WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped AND attidentity = '' AND attgenerated = '' ORDER BY attnum`, table)
		if err != nil {
			return err
		}
		if h.columns[table], err = pgx.CollectRows(rows, pgx.RowTo[string]); err != nil {
			return err
		}
	}
	_, err := h.observer.conn.Exec(ctx, fmt.Sprintf(`
		CREATE TABLE bench.history_project AS SELECT n::int, ('00000000-0000-7000-a000-' || lpad(to_hex(n), 12, '0'))::uuid AS project_id FROM generate_series(0, %d) AS n;
		CREATE UNIQUE INDEX ON bench.history_project (n);
		INSERT INTO projects (id, tenant_id, name, on_late_success, created_at)
		SELECT h.project_id, p.tenant_id, 'history ' || h.n, p.on_late_success, p.created_at
		FROM bench.history_project h, projects p JOIN generation_tasks t ON t.project_id = p.id WHERE t.id = '%s'`, historyProjects-1, uuidText(h.task.ID.ID)))
	if err != nil {
		return fmt.Errorf("projects of the history: %w", err)
	}
	err = h.observer.conn.QueryRow(ctx, "SELECT version FROM generation_tasks WHERE id = $1 AND terminal_at IS NOT NULL", uuidText(h.task.ID.ID)).Scan(&h.perTask)
	if err != nil {
		return fmt.Errorf("the task that history copies is not done: %w", err)
	}
	return nil
}

// uuidText is the id as PostgreSQL writes it.
func uuidText(id domain.ID) string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:])
}

// grow copies until so many events are stored, and leaves the tables at rest.
func (h *history) grow(ctx context.Context, events int) error {
	first, last := h.tasks, (events+h.perTask-1)/h.perTask
	if last <= first {
		return nil
	}
	g, ctx2 := errgroup.WithContext(ctx)
	chunks := make(chan int)
	g.Go(func() error {
		defer close(chunks)
		for at := first; at < last; at += historyChunk {
			select {
			case chunks <- at:
			case <-ctx2.Done():
				return ctx2.Err()
			}
		}
		return nil
	})
	for range historyWriters {
		g.Go(func() error { return h.write(ctx2, chunks, last) })
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("copy the history: %w", err)
	}
	h.tasks = last
	for _, statement := range []string{h.streams(), "VACUUM ANALYZE", "CHECKPOINT"} {
		if _, err := h.observer.conn.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%.40s: %w", statement, err)
		}
	}
	return nil
}

// write copies chunks over a connection of its own. What it writes need not survive
// a crash of the server, so that it does not wait for the disk.
func (h *history) write(ctx context.Context, chunks <-chan int, last int) (err error) {
	conn, err := pgx.Connect(ctx, h.url)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close(context.WithoutCancel(ctx))) }()
	if _, err := conn.Exec(ctx, "SET synchronous_commit = off"); err != nil {
		return err
	}
	for at := range chunks {
		for _, statement := range h.statements(at, min(at+historyChunk, last)-1) {
			if _, err := conn.Exec(ctx, statement); err != nil {
				return fmt.Errorf("%.60s: %w", statement, err)
			}
		}
	}
	return nil
}

// The ids of copy n; a lasting order, as version 7 has.
const (
	historyTask    = "('00000000-0000-7000-8000-' || lpad(to_hex(copy.n), 12, '0'))::uuid"
	historyAttempt = "('00000000-0000-7000-9000-' || lpad(to_hex(copy.n), 12, '0'))::uuid"
	historyProject = "h.project_id"
)

// statements copy the task as numbers first to last. Copy n belongs to project n
// modulo their number and is the (n divided by it)th there.
func (h *history) statements(first, last int) []string {
	source := fmt.Sprintf("generate_series(%d, %d) AS copy (n) JOIN bench.history_project h ON h.n = copy.n %% %d", first, last, historyProjects)
	task := uuidText(h.task.ID.ID)
	of := func(table, key string, changed map[string]string) string {
		return h.copy(table, source, fmt.Sprintf("%s o WHERE o.%s = '%s'", table, key, task), changed)
	}
	identity := map[string]string{"task_id": historyTask, "attempt_id": historyAttempt}
	number := fmt.Sprintf("copy.n / %d * %d + o.task_version", historyProjects, h.perTask)
	deliveries := h.copy("provider_callback_inbox", source+fmt.Sprintf(" CROSS JOIN generate_series(1, %d) AS k", historyDeliveries),
		"(SELECT * FROM provider_callback_inbox ORDER BY id LIMIT 1) o WHERE true", map[string]string{
			"dedup_key": "'history|' || copy.n || '|' || k", "provider_event_id": "'history_' || copy.n || '_' || k",
			"provider_task_id": "'history' || copy.n", "token_hash": "sha256(('history' || copy.n)::bytea)",
		})
	return []string{
		of("generation_tasks", "id", map[string]string{
			"id": historyTask, "project_id": historyProject, "current_attempt_id": historyAttempt,
			"last_event_id": fmt.Sprintf("(copy.n / %d + 1) * %d", historyProjects, h.perTask),
		}),
		of("task_inputs", "task_id", identity),
		of("task_attempts", "task_id", map[string]string{
			"id": historyAttempt, "task_id": historyTask, "provider_task_id": "'history' || copy.n", "client_request_id": "'history' || copy.n",
			"token_hash": "sha256(('history' || copy.n)::bytea)",
		}),
		of("task_events", "task_id", with(identity, map[string]string{"project_id": historyProject, "event_id": number, "created_at": "original.at", "occurred_at": "original.at"})),
		of("observations", "task_id", with(identity, map[string]string{"id": "nextval('observations_id_seq')"})),
		of("credit_ledger", "task_id", identity),
		"WITH stored AS (" + deliveries + " RETURNING id) INSERT INTO inbox_outcomes (inbox_id, verdict, processed_at) SELECT id, 'applied', now() FROM stored",
	}
}

// copy is the statement that inserts the rows of a template for every row of the
// source. A column that is not named in changed is copied as it is, so that a new one
// needs no change here. The events of the copies are as old as the oldest event of
// all: older events need no outbox row.
func (h *history) copy(table, source, template string, changed map[string]string) string {
	var values []string
	for _, column := range h.columns[table] {
		value, ok := changed[column]
		if !ok {
			value = "o." + column
		}
		values = append(values, value)
	}
	return fmt.Sprintf("INSERT INTO %s (%s) SELECT %s FROM %s, bench.original AS original, %s",
		table, strings.Join(h.columns[table], ", "), strings.Join(values, ", "), source, template)
}

// streams sets the counters to the newest copies.
func (h *history) streams() string {
	return `INSERT INTO project_streams (project_id, last_event_id, last_at, last_task_id, last_task_version)
		SELECT DISTINCT ON (t.project_id) t.project_id, t.last_event_id, original.at, t.id, t.version
		FROM generation_tasks t JOIN bench.history_project h ON h.project_id = t.project_id, bench.original AS original
		ORDER BY t.project_id, t.last_event_id DESC
		ON CONFLICT (project_id) DO UPDATE SET last_event_id = EXCLUDED.last_event_id, last_task_id = EXCLUDED.last_task_id, last_task_version = EXCLUDED.last_task_version`
}

// with is both maps in one.
func with(a, b map[string]string) map[string]string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	return all
}

// stored counts the events that are in the database.
func (o *observer) stored(ctx context.Context) (n int, err error) {
	err = o.conn.QueryRow(ctx, "SELECT count(*) FROM task_events").Scan(&n)
	return n, err
}

// spreadOf is how far the values lie apart: the largest divided by the smallest,
// less 1.
func spreadOf(values []figure) figure {
	if len(values) == 0 || slices.Min(values) <= 0 {
		return 0
	}
	return slices.Max(values)/slices.Min(values) - 1
}
