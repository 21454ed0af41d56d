package testenv

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5"
)

// Postgres returns a database with the product's tables, cloned from a
// template that is made once per content of schema/schema.sql. Package
// schema's own test proves that the migrations give the same catalog.
func Postgres(t testing.TB) *PG {
	t.Helper()
	Short(t)
	sql, err := readSchema()
	if err != nil {
		t.Fatalf("read the schema: %v", err)
	}
	return PostgresWith(t, func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		_, err = conn.Exec(ctx, string(sql))
		return err
	}, "schema.sql\n"+string(sql))
}

// readSchema finds the file from the test's folder upwards: a test runs in
// the folder of its package.
func readSchema() ([]byte, error) {
	start, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	for dir := start; ; dir = filepath.Dir(dir) {
		sql, err := os.ReadFile(filepath.Join(dir, "schema", "schema.sql"))
		if err == nil || !errors.Is(err, fs.ErrNotExist) {
			return sql, err
		}
		if dir == filepath.Dir(dir) {
			return nil, fmt.Errorf("no schema/schema.sql in %s or above", start)
		}
	}
}
