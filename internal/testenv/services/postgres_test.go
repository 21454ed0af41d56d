package services

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func startTestPostgres(t *testing.T, dir string) *Postgres {
	t.Helper()
	p, err := StartPostgres(t.Context(), PostgresOptions{Dir: dir, Database: "app", NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Stop(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func query[T any](t *testing.T, url, sql string) (v T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if err := conn.QueryRow(t.Context(), sql).Scan(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func exec1(t *testing.T, url, sql string) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if _, err := conn.Exec(t.Context(), sql); err != nil {
		t.Fatal(err)
	}
}

func TestPostgresKeepsDataAcrossStopKillAndStaleFiles(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PostgreSQL")
	}
	dir := filepath.Join(t.TempDir(), "pg")
	p := startTestPostgres(t, dir)
	exec1(t, p.URL(""), "CREATE TABLE kept AS SELECT 7 AS n")

	if _, err := StartPostgres(t.Context(), PostgresOptions{Dir: dir}); err == nil || !strings.Contains(err.Error(), "in use") {
		t.Fatalf("second start on the folder: %v, want an error that says it is in use", err)
	}
	if err := p.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := p.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if n := query[int](t, p.URL(""), "SELECT n FROM kept"); n != 7 {
		t.Fatalf("after a crash n = %d, want 7", n)
	}
	if err := p.Stop(); err != nil {
		t.Fatal(err)
	}

	// A pid file whose number now belongs to another program.
	stale := []byte("1\n" + p.data() + "\n")
	if err := os.WriteFile(filepath.Join(p.data(), "postmaster.pid"), stale, 0o600); err != nil {
		t.Fatal(err)
	}
	p = startTestPostgres(t, dir)
	if n := query[int](t, p.URL(""), "SELECT n FROM kept"); n != 7 {
		t.Fatalf("after a new start n = %d, want 7", n)
	}
}

// As root the data may lie below a folder that PostgreSQL's account cannot
// enter, such as root's home.
func TestPostgresBelowAClosedFolder(t *testing.T) {
	if testing.Short() {
		t.Skip("starts PostgreSQL")
	}
	if os.Geteuid() == 0 && !canEnterDirs {
		t.Skip("root cannot lend the right to enter folders on this system")
	}
	closed := filepath.Join(t.TempDir(), "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	p := startTestPostgres(t, filepath.Join(closed, "pg"))
	if n := query[int](t, p.URL(""), "SELECT 1"); n != 1 {
		t.Fatalf("got %d", n)
	}
}
