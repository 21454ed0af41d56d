package testenv_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/jackc/pgx/v5"
)

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close(context.Background()) })
	return conn
}

func TestPostgresClonesAreIsolatedAndMigratedOnce(t *testing.T) {
	t.Parallel()
	var migrations atomic.Int32
	migrate := func(ctx context.Context, url string) error {
		migrations.Add(1)
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(ctx)
		_, err = conn.Exec(ctx, "CREATE TABLE thing (n int)")
		return err
	}
	one := connect(t, testenv.PostgresWith(t, migrate, t.Name()).URL)
	two := connect(t, testenv.PostgresWith(t, migrate, t.Name()).URL)
	if _, err := one.Exec(t.Context(), "INSERT INTO thing VALUES (1)"); err != nil {
		t.Fatal(err)
	}
	var n int
	if err := two.QueryRow(t.Context(), "SELECT count(*) FROM thing").Scan(&n); err != nil {
		t.Fatal(err)
	}
	if n != 0 {
		t.Errorf("a row of one database shows in another: %d", n)
	}
	if got := migrations.Load(); got > 1 { // 0 when the cluster is not ours and has the template
		t.Errorf("migrated %d times, want once", got)
	}
}

func TestPostgresServerSurvivesKill(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresServer(t, testenv.PGOptions{Fsync: true, Extra: map[string]string{"max_connections": "20"}})
	url := server.Database("crash")
	conn := connect(t, url)
	for _, setting := range []struct{ name, want string }{{"fsync", "on"}, {"full_page_writes", "on"}, {"max_connections", "20"}} {
		var got string
		if err := conn.QueryRow(t.Context(), "SELECT current_setting($1)", setting.name).Scan(&got); err != nil {
			t.Fatal(err)
		}
		if got != setting.want {
			t.Errorf("%s = %s, want %s", setting.name, got, setting.want)
		}
	}
	if _, err := conn.Exec(t.Context(), "CREATE TABLE kept AS SELECT 1 AS n"); err != nil {
		t.Fatal(err)
	}
	before := server.PID()
	server.Kill()
	server.Start()
	if server.PID() == before {
		t.Error("the process id did not change")
	}
	var n int
	if err := connect(t, url).QueryRow(t.Context(), "SELECT n FROM kept").Scan(&n); err != nil || n != 1 {
		t.Errorf("after a crash: n = %d, %v", n, err)
	}
}

func TestPostgresHasTheTables(t *testing.T) {
	t.Parallel()
	conn := connect(t, testenv.Postgres(t).URL)
	var n int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM generation_tasks").Scan(&n); err != nil {
		t.Fatal(err)
	}
}

// TestPostgresServerPause: a frozen server answers nobody, and goes on where it was.
func TestPostgresServerPause(t *testing.T) {
	t.Parallel()
	server := testenv.PostgresServer(t, testenv.PGOptions{})
	conn, err := pgx.Connect(t.Context(), server.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // nothing is written
	server.Pause()
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if other, err := pgx.Connect(ctx, server.URL); err == nil {
		_ = other.Close(ctx)
		t.Error("a frozen server took a connection")
	}
	answered := make(chan error, 1)
	go func() { _, err := conn.Exec(t.Context(), "SELECT 1"); answered <- err }()
	select {
	case err := <-answered:
		t.Fatalf("a frozen server answered: %v", err)
	case <-time.After(300 * time.Millisecond):
	}
	server.Resume()
	if err := <-answered; err != nil {
		t.Fatal(err)
	}
}
