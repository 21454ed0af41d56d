package testenv

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash/fnv"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv/services"
	"github.com/jackc/pgx/v5"
)

// PG is a database of its own for one test.
type PG struct {
	// URL connects to the database as a superuser.
	URL string
	// AdminURL connects to the maintenance database of the same cluster.
	AdminURL string
	// Name of the database.
	Name string
}

var postgresCluster shared[string] // admin URL

// PostgresWith returns a database cloned from a template that migrate filled
// once. key names the template: equal keys must mean equal migrations, so a
// hash of the migration files is a good key. migrate gets the URL of an empty
// database and must have closed its connections when it returns.
//
// The cluster is shared and runs without fsync; use PostgresServer for crash
// tests. The database is dropped when the test ends.
func PostgresWith(t testing.TB, migrate func(ctx context.Context, url string) error, key string) *PG {
	t.Helper()
	Short(t)
	admin := adminURL(t)
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	template := "tpl_" + digest(key)
	if err := ensureTemplate(ctx, admin, template, migrate); err != nil {
		t.Fatalf("make the template database: %v", err)
	}
	return cloneDatabase(t, admin, template)
}

// EmptyPostgres returns an empty database in the shared cluster, for tests of
// migrations. It is dropped when the test ends.
func EmptyPostgres(t testing.TB) *PG {
	t.Helper()
	Short(t)
	return cloneDatabase(t, adminURL(t), "template0")
}

func adminURL(t testing.TB) string {
	t.Helper()
	admin, err := postgresCluster.get(startCluster)
	if err != nil {
		unavailable(t, "PostgreSQL", err)
	}
	return admin
}

func startCluster(ctx context.Context) (string, func() error, error) {
	if given := os.Getenv("AIVEDIO_TEST_POSTGRES_URL"); given != "" {
		return given, nil, nil
	}
	if pool := docker(); pool != nil {
		return dockerPostgres(pool)
	}
	server, err := services.StartPostgres(ctx, services.PostgresOptions{NoSync: true, Settings: testSettings()})
	if err != nil {
		return "", nil, err
	}
	return server.URL(""), server.Stop, nil
}

// testSettings leaves room for many pools; synchronous_commit stays on, since
// the store refuses to work without it.
func testSettings() map[string]string {
	return map[string]string{"max_connections": "400", "shared_buffers": "128MB", "max_wal_size": "1GB"}
}

// ensureTemplate makes the template unless it exists. Processes that share a
// cluster take turns, and an unfinished template never gets its name.
func ensureTemplate(ctx context.Context, admin, template string, migrate func(context.Context, string) error) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) // gives the lock up
	if _, err := conn.Exec(ctx, "SELECT pg_advisory_lock($1)", lockKey(template)); err != nil {
		return err
	}
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", template).Scan(&exists); err != nil || exists {
		return err
	}
	draft := template + "_draft"
	for _, sql := range []string{"DROP DATABASE IF EXISTS " + draft + " (FORCE)", "CREATE DATABASE " + draft + " TEMPLATE template0"} {
		if _, err := conn.Exec(ctx, sql); err != nil {
			return err
		}
	}
	draftURL, err := withDatabase(admin, draft)
	if err != nil {
		return err
	}
	if err := migrate(ctx, draftURL); err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	// A template with a connection cannot be renamed or cloned; a pool may
	// still be closing its last one.
	if _, err := conn.Exec(ctx, "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = $1", draft); err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "ALTER DATABASE "+draft+" RENAME TO "+template)
	return err
}

var databases atomic.Int64

func cloneDatabase(t testing.TB, admin, template string) *PG {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	name := fmt.Sprintf("t%d_%d_%d", os.Getpid(), databases.Add(1), time.Now().UnixNano())
	if err := execAdmin(ctx, admin, "CREATE DATABASE "+name+" TEMPLATE "+template); err != nil {
		t.Fatalf("create a database: %v", err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := execAdmin(ctx, admin, "DROP DATABASE IF EXISTS "+name+" (FORCE)"); err != nil {
			t.Errorf("drop database %s: %v", name, err)
		}
	})
	u, err := withDatabase(admin, name)
	if err != nil {
		t.Fatal(err)
	}
	return &PG{URL: u, AdminURL: admin, Name: name}
}

func execAdmin(ctx context.Context, admin, sql string) error {
	conn, err := pgx.Connect(ctx, admin)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	_, err = conn.Exec(ctx, sql)
	return err
}

func withDatabase(admin, name string) (string, error) {
	u, err := url.Parse(admin)
	if err != nil || !strings.HasPrefix(u.Scheme, "postgres") {
		return "", fmt.Errorf("AIVEDIO_TEST_POSTGRES_URL must be a postgres:// URL: %w", err)
	}
	u.Path = "/" + name
	return u.String(), nil
}

func digest(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:8])
}

func lockKey(name string) int64 {
	h := fnv.New64a()
	h.Write([]byte(name))
	return int64(h.Sum64())
}
