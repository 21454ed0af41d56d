package pgstore_test

import (
	"context"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/schema"
)

// catalog is everything of the public schema that a program can notice, one line
// a thing.
const catalog = `
SELECT 'column ' || c.relname || '.' || a.attname || ' ' || format_type(a.atttypid, a.atttypmod) || CASE WHEN a.attnotnull THEN ' not null' ELSE '' END
	|| coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') || ' ' || a.attidentity::text
FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid LEFT JOIN pg_attrdef d ON d.adrelid = c.oid AND d.adnum = a.attnum
WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND a.attnum > 0 AND NOT a.attisdropped
UNION ALL SELECT 'constraint ' || c.relname || ' ' || n.conname || ' ' || pg_get_constraintdef(n.oid)
FROM pg_constraint n JOIN pg_class c ON c.oid = n.conrelid WHERE c.relnamespace = 'public'::regnamespace
UNION ALL SELECT 'index ' || pg_get_indexdef(i.indexrelid)
FROM pg_index i JOIN pg_class c ON c.oid = i.indrelid WHERE c.relnamespace = 'public'::regnamespace
UNION ALL SELECT 'function ' || pg_get_functiondef(p.oid) FROM pg_proc p WHERE p.pronamespace = 'public'::regnamespace
UNION ALL SELECT 'relation ' || c.relname || ' ' || c.relkind::text || ' ' || coalesce(c.reloptions::text, '') || ' ' || coalesce(pg_get_expr(c.relpartbound, c.oid), '')
FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace
ORDER BY 1`

func readCatalog(t *testing.T, conn *pgx.Conn) []string {
	t.Helper()
	rows, err := conn.Query(t.Context(), catalog)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	kept := lines[:0]
	for _, line := range lines {
		if !strings.Contains(line, "aivedio_schema_revisions") {
			kept = append(kept, line)
		}
	}
	return kept
}

func connect(t *testing.T, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(t.Context())) })
	return conn
}

func TestMigrationsGiveTheWantedSchema(t *testing.T) {
	t.Parallel()
	wanted, migrated := testenv.EmptyPostgres(t), testenv.EmptyPostgres(t)
	w, m := connect(t, wanted.URL), connect(t, migrated.URL)
	if _, err := w.Exec(t.Context(), schema.Schema); err != nil {
		t.Fatalf("schema.sql: %v", err)
	}
	if _, err := w.Exec(t.Context(), "SELECT aivedio_make_partitions($1)", pgstore.PartitionDays); err != nil {
		t.Fatal(err)
	}
	if _, err := pgstore.Migrate(t.Context(), migrated.URL, pgstore.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(readCatalog(t, w), readCatalog(t, m)); diff != "" {
		t.Errorf("schema.sql (-) and the migrations (+) differ:\n%s", diff)
	}
}

func TestMigrateFromSeveralProcesses(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyPostgres(t)
	dry, err := pgstore.Migrate(t.Context(), db.URL, pgstore.MigrateOptions{DryRun: true})
	if err != nil || len(dry.Files) == 0 || dry.Partitions != 0 {
		t.Fatalf("dry run: %+v, %v", dry, err)
	}
	const callers = 4
	reports, errs := make([]pgstore.MigrateReport, callers), make([]error, callers)
	var wg sync.WaitGroup
	for i := range callers {
		wg.Go(func() { reports[i], errs[i] = pgstore.Migrate(t.Context(), db.URL, pgstore.MigrateOptions{}) })
	}
	wg.Wait()
	applied, made := 0, 0
	for i := range callers {
		if errs[i] != nil {
			t.Errorf("caller %d: %v", i, errs[i])
		}
		applied += len(reports[i].Files)
		made += reports[i].Partitions
	}
	if applied != len(dry.Files) || made != 2*(pgstore.PartitionDays+2) {
		t.Errorf("applied %d files and made %d partitions, want %d and %d, each once", applied, made, len(dry.Files), 2*(pgstore.PartitionDays+2))
	}
	again, err := pgstore.Migrate(t.Context(), db.URL, pgstore.MigrateOptions{DryRun: true})
	if err != nil || len(again.Files) != 0 {
		t.Errorf("dry run after: %+v, %v", again, err)
	}
}
