package pgstore_test

import (
	"crypto/sha256"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
)

// seed makes tasks with a submitted attempt each, spread over projects, without
// the cost of creating them one by one.
func seed(b *testing.B, url string, projects, tasks int) {
	b.Helper()
	pool, err := pgxpool.New(b.Context(), url)
	if err != nil {
		b.Fatal(err)
	}
	defer pool.Close()
	id := func(kind byte, n string) string {
		return fmt.Sprintf("('%02x000000-0000-7000-8000-' || lpad(to_hex(%s), 12, '0'))::uuid", kind, n)
	}
	for _, sql := range []string{
		`INSERT INTO tenants (id, name) SELECT ` + id(1, "0") + `, 'bench'`,
		`INSERT INTO ledger_accounts (tenant_id) SELECT ` + id(1, "0"),
		fmt.Sprintf(`INSERT INTO projects (id, tenant_id, name) SELECT %s, %s, 'p' || n FROM generate_series(0, %d) n`, id(2, "n"), id(1, "0"), projects-1),
		`INSERT INTO project_streams (project_id) SELECT id FROM projects`,
		fmt.Sprintf(`INSERT INTO generation_tasks (id, tenant_id, project_id, user_id, status, phase, cancel, stage, version, last_event_id, current_attempt_id, attempt_count, on_late_success)
			SELECT %s, %s, %s, %s, 'queued', 'queued', 'none', 'waiting', 1, 0, %s, 1, 'keep' FROM generate_series(0, %d) n`,
			id(3, "n"), id(1, "0"), id(2, fmt.Sprintf("n %% %d", projects)), id(5, "0"), id(4, "n"), tasks-1),
		fmt.Sprintf(`INSERT INTO task_attempts (id, task_id, attempt_no, provider, model, account_id, client_request_id, provider_task_id, token_hash, status, submitted_at, next_poll_at, closing)
			SELECT %s, %s, 1, 'acme', 'video-1', 'main', 'req-' || n, 'job-' || n, sha256(('token-' || n)::bytea), 'submitted', now(), now() + interval '1 minute', 'open' FROM generate_series(0, %d) n`,
			id(4, "n"), id(3, "n"), tasks-1),
		`ANALYZE`, `CHECKPOINT`,
	} {
		if _, err := pool.Exec(b.Context(), sql); err != nil {
			b.Fatalf("%.60s: %v", sql, err)
		}
	}
}

// benchDeliveries are callbacks of 600 bytes, one for each task.
func benchDeliveries(tasks int, status domain.Observed) []ports.InboxRow {
	rows := make([]ports.InboxRow, tasks)
	for i := range rows {
		token, body := sha256.Sum256([]byte(fmt.Sprintf("token-%d", i))), make([]byte, 600)
		copy(body, status)
		hash := sha256.Sum256(body)
		rows[i] = ports.InboxRow{
			Provider: "acme", AccountID: "main", DedupKey: fmt.Sprintf("main|authentic|%s-%d", status, i), ProviderTaskID: fmt.Sprintf("job-%d", i),
			TokenHash: token[:], Trust: domain.TrustAuthentic, ReceivedAt: time.Now(), KeyVersion: "1", PayloadHash: hash[:], Payload: body,
		}
	}
	return rows
}

func benchDecode(row ports.InboxRow) ports.Decoded {
	status := domain.ObservedRunning
	if row.Payload[0] == 's' {
		status = domain.ObservedSucceeded
	}
	obs := &domain.Observation{
		Provider: row.Provider, ProviderTaskID: row.ProviderTaskID, DedupKey: row.DedupKey, ReceivedAt: row.ReceivedAt,
		Status: status, Source: domain.SourceWebhook, Trust: row.Trust,
	}
	if percent := int(row.Payload[len(domain.ObservedRunning)]); status == domain.ObservedRunning && percent > 0 {
		obs.Progress = &percent
	}
	if status == domain.ObservedSucceeded {
		obs.Outputs = []domain.OutputRef{{Kind: "video", Ref: "out", URL: "https://files.acme.example/out.mp4"}}
	}
	return ports.Decoded{Item: ports.Item{
		Ref:   ports.Ref{TokenHash: row.TokenHash, Provider: row.Provider, AccountID: row.AccountID, ProviderTaskID: row.ProviderTaskID},
		Input: domain.Input{Kind: domain.InputObservation, Observation: obs},
	}}
}

// BenchmarkIngest measures Receive in groups and Process in batches of 128, with
// fsync on, over many projects and in one hot project. One iteration is all of it,
// once: run with -benchtime 1x.
func BenchmarkIngest(b *testing.B) {
	server := testenv.PostgresServer(b, testenv.PGOptions{Fsync: true, Extra: map[string]string{"shared_buffers": "1GB", "max_wal_size": "4GB"}})
	for _, projects := range []int{500, 1} {
		b.Run(fmt.Sprintf("projects=%d", projects), func(b *testing.B) {
			for i := range b.N {
				benchIngest(b, server.Database(fmt.Sprintf("bench_%d_%d_%d", projects, b.N, i)), projects)
			}
		})
	}
}

func benchIngest(b *testing.B, url string, projects int) {
	b.Helper()
	const tasks, batch, workers = 20_000, 128, 2
	if _, err := pgstore.Migrate(b.Context(), url, pgstore.MigrateOptions{}); err != nil {
		b.Fatal(err)
	}
	seed(b, url, projects, tasks)
	store := open(b, pgstore.Config{URL: url})
	start := time.Now()
	for _, status := range []domain.Observed{domain.ObservedRunning, domain.ObservedSucceeded} {
		receiveAll(b, store, benchDeliveries(tasks, status), 256)
	}
	b.ReportMetric(2*tasks/time.Since(start).Seconds(), "acks/s")
	start = time.Now()
	applied := processAll(b, store, batch, workers)
	b.ReportMetric(float64(applied)/time.Since(start).Seconds(), "transitions/s")
	if applied != 2*tasks {
		b.Errorf("%d transitions, want %d", applied, 2*tasks)
	}
}

func receiveAll(b *testing.B, store *pgstore.Store, rows []ports.InboxRow, group int) {
	b.Helper()
	var wg sync.WaitGroup
	half := len(rows) / 2
	for _, part := range [][]ports.InboxRow{rows[:half], rows[half:]} {
		wg.Go(func() {
			for len(part) > 0 {
				n := min(group, len(part))
				if _, err := store.Receive(b.Context(), part[:n]); err != nil {
					b.Error(err)
					return
				}
				part = part[n:]
			}
		})
	}
	wg.Wait()
}

func processAll(b *testing.B, store *pgstore.Store, batch, workers int) int {
	b.Helper()
	counts := make([]int, workers)
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for {
				report, err := store.Process(b.Context(), ports.ProcessParams{Worker: w, Workers: workers, Limit: batch, Now: time.Now()}, benchDecode)
				if err != nil {
					b.Error(err)
					return
				}
				if report.Taken == 0 {
					return
				}
				counts[w] += report.Applied
			}
		})
	}
	wg.Wait()
	total := 0
	for _, n := range counts {
		total += n
	}
	return total
}
