package schema_test

import (
	"io/fs"
	"testing"

	"ariga.io/atlas/sql/migrate"

	"github.com/aivedio/aivedio/schema"
)

func TestSumMatchesMigrations(t *testing.T) {
	t.Parallel()
	dir, err := migrate.NewLocalDir("migrations")
	if err != nil {
		t.Fatal(err)
	}
	if err := migrate.Validate(dir); err != nil {
		t.Errorf("atlas.sum is stale, run: go run ./schema/internal/sum: %v", err)
	}
}

func TestMigrationsAreEmbedded(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(schema.Migrations, "*.sql")
	if err != nil || len(names) == 0 {
		t.Fatalf("embedded migrations: %v, %v", names, err)
	}
	if len(schema.Hash()) != 64 {
		t.Errorf("Hash() = %q, want 64 hex digits", schema.Hash())
	}
}
