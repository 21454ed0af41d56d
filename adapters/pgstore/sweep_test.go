package pgstore_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/ports"
)

const oneDay = 24 * time.Hour

// agedInbox fills a database with deliveries that were done, given up or left
// waiting so many days ago, ten of each.
func agedInbox(t *testing.T, conn *pgx.Conn) {
	t.Helper()
	for _, sql := range []string{
		`WITH d AS (
			INSERT INTO provider_callback_inbox (provider, dedup_key, trust, payload_hash, payload, payload_key_version, shard, received_at)
			SELECT 'acme', 'done ' || days || ' ' || n, 'authentic', 'h', 'x', '1', 0, now() - make_interval(days => days)
			FROM unnest(ARRAY[9, 5, 1]) AS days, generate_series(1, 10) AS n RETURNING id, received_at)
		INSERT INTO inbox_outcomes (inbox_id, verdict, processed_at) SELECT id, 'applied', received_at FROM d`,
		`INSERT INTO provider_callback_inbox (provider, dedup_key, trust, payload_hash, payload, payload_key_version, shard, received_at, process_status, processed_at, next_retry_at)
			SELECT 'acme', status || days || ' ' || n, 'authentic', 'h', 'x', '1', 0, now() - make_interval(days => days), status,
				CASE status WHEN 'dead' THEN now() - make_interval(days => days) END, now() + interval '1 hour'
			FROM unnest(ARRAY[31, 9, 1]) AS days, unnest(ARRAY['dead', 'retry']) AS status, generate_series(1, 10) AS n`,
		`INSERT INTO conflicts (kind, subject, opened_at, closed_at) SELECT 'payload_differs', n || 'old', now() - interval '400 days', now() - interval '400 days' FROM generate_series(1, 3) n`,
		`INSERT INTO conflicts (kind, subject, opened_at) SELECT 'payload_differs', n || 'open', now() - interval '400 days' FROM generate_series(1, 2) n`,
		`INSERT INTO cases (kind, task_id, attempt_id, opened_at, closed_at) SELECT 'lost', gen_random_uuid(), gen_random_uuid(), now() - interval '400 days', now() - interval '400 days' FROM generate_series(1, 3)`,
		`INSERT INTO audit_log (action_id, actor, action, created_at) SELECT gen_random_uuid(), 'ops', 'x', now() - interval '400 days' FROM generate_series(1, 3)`,
		`INSERT INTO stream_tickets (ticket_hash, tenant_id, project_id, expires_at) SELECT n::text::bytea, gen_random_uuid(), gen_random_uuid(), now() - interval '1 minute' FROM generate_series(1, 3) n`,
		`INSERT INTO webhook_health (provider, account_id, slice) VALUES ('acme', 'main', now() - interval '3 hours'), ('acme', 'main', now())`,
	} {
		if _, err := conn.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
}

// count is the answer to a question with one number.
func count(t *testing.T, conn *pgx.Conn, sql string) (n int) {
	t.Helper()
	if err := conn.QueryRow(t.Context(), sql).Scan(&n); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return n
}

// TestRetention: several nodes sweep one database at once, in small bites, and
// together remove exactly what is past its time, each row once.
func TestRetention(t *testing.T) {
	t.Parallel()
	db := database(t)
	conn := connect(t, db.URL)
	agedInbox(t, conn)
	cfg := pgstore.Config{URL: db.URL, Conns: 4, CallbackConns: 1, AuditRetention: 365 * oneDay}
	var mu sync.Mutex
	removed := map[string]int{}
	var wg sync.WaitGroup
	for range 3 {
		node := open(t, cfg)
		wg.Go(func() {
			for quiet := 0; quiet < 3; quiet++ {
				got, err := node.CleanExpired(context.WithoutCancel(t.Context()), time.Now(), 4)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				for kind, n := range got {
					removed[kind] += n
					quiet = -1
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	want := map[string]int{
		"deliveries": 10, "payloads": 20, "dead_letters": 10, "conflicts": 3, "cases": 3, "audit": 3, "stream_tickets": 3, "webhook_counts": 1,
	}
	// Payloads of rows that go in the same moment may be passed by either way.
	if p := removed["payloads"]; p >= 10 && p <= 20 {
		removed["payloads"] = 20
	}
	if fmt.Sprint(removed) != fmt.Sprint(want) {
		t.Errorf("removed %v, want %v", removed, want)
	}
	const inbox = "SELECT count(*) FROM provider_callback_inbox i LEFT JOIN inbox_outcomes o ON o.inbox_id = i.id WHERE "
	for name, tt := range map[string]struct {
		where string
		want  int
	}{
		"done, young, with payload":       {"o.inbox_id IS NOT NULL AND payload IS NOT NULL", 10},
		"done, older, without":            {"o.inbox_id IS NOT NULL AND payload IS NULL AND payload_key_version IS NULL", 10},
		"dead letters with their payload": {"process_status = 'dead' AND payload IS NOT NULL", 20},
		"waiting, of any age, untouched":  {"process_status = 'retry' AND payload IS NOT NULL", 30},
	} {
		if n := count(t, conn, inbox+tt.where); n != tt.want {
			t.Errorf("%s: %d, want %d", name, n, tt.want)
		}
	}
	if n := count(t, conn, "SELECT count(*) FROM conflicts"); n != 2 {
		t.Errorf("%d conflicts are left, want the two that are open", n)
	}
}

// TestAuditIsKept: without a retention the audit log is kept for ever.
func TestAuditIsKept(t *testing.T) {
	t.Parallel()
	db := database(t)
	conn := connect(t, db.URL)
	agedInbox(t, conn)
	if removed, err := open(t, pgstore.Config{URL: db.URL, Conns: 2, CallbackConns: 1}).CleanExpired(t.Context(), time.Now(), 100); err != nil || removed["audit"] != 0 {
		t.Fatalf("removed %v, %v", removed, err)
	}
	if n := count(t, conn, "SELECT count(*) FROM audit_log"); n != 3 {
		t.Errorf("%d audits are left", n)
	}
}

// TestSweepsShareTheInbox: two nodes revive and bury the same deliveries at once;
// each comes back or dies once.
func TestSweepsShareTheInbox(t *testing.T) {
	t.Parallel()
	db := database(t)
	conn := connect(t, db.URL)
	if _, err := conn.Exec(t.Context(), `INSERT INTO provider_callback_inbox (provider, dedup_key, trust, payload_hash, payload, payload_key_version, shard, received_at, process_status, error_count, next_retry_at)
		SELECT 'acme', n::text, 'authentic', 'h', 'x', '1', n % 64, now(), 'retry', CASE WHEN n % 2 = 0 THEN 9 ELSE 1 END, now() - interval '1 minute' FROM generate_series(1, 400) n`); err != nil {
		t.Fatal(err)
	}
	cfg := pgstore.Config{URL: db.URL, Conns: 4, CallbackConns: 1}
	var mu sync.Mutex
	var total ports.ReviveReport
	var wg sync.WaitGroup
	for range 2 {
		node := open(t, cfg)
		wg.Go(func() {
			for range 40 {
				report, err := node.Revive(context.WithoutCancel(t.Context()), ports.ReviveParams{
					Now: time.Now(), MaxErrors: 8, OrphanFor: oneDay, StuckAfter: time.Minute, Limit: 10,
				})
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				total.Revived, total.Dead = total.Revived+report.Revived, total.Dead+report.Dead
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if total != (ports.ReviveReport{Revived: 200, Dead: 200}) {
		t.Errorf("in all %+v, want 200 of each", total)
	}
	if n := count(t, conn, "SELECT count(*) FROM inbox_queue"); n != 200 {
		t.Errorf("%d rows are queued, want 200", n)
	}
}

// TestPartitionsRunOut: the days ahead are counted in both tables.
func TestPartitionsRunOut(t *testing.T) {
	t.Parallel()
	db := database(t)
	conn := connect(t, db.URL)
	s := open(t, pgstore.Config{URL: db.URL, Conns: 2, CallbackConns: 1})
	tomorrow := time.Now().UTC().Add(oneDay).Format("20060102")
	if _, err := conn.Exec(t.Context(), "DROP TABLE observations_p"+tomorrow); err != nil {
		t.Fatal(err)
	}
	if days, err := s.PartitionDaysAhead(t.Context()); err != nil || days != 6 {
		t.Errorf("%d days ahead, %v", days, err)
	}
	if _, err := s.CleanExpired(t.Context(), time.Now(), 10); err != nil {
		t.Fatal(err)
	}
	if days, err := s.PartitionDaysAhead(t.Context()); err != nil || days != 7 {
		t.Errorf("%d days ahead after a sweep, %v", days, err)
	}
}
