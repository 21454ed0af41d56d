package testenv

import (
	"context"
	"testing"

	"github.com/aivedio/aivedio/schema"
	"github.com/jackc/pgx/v5"
)

// Postgres returns a database with the product's tables, cloned from a
// template that is made once per content of schema/schema.sql. The store's
// own tests prove that the migrations give the same catalog.
func Postgres(t testing.TB) *PG {
	t.Helper()
	return PostgresWith(t, func(ctx context.Context, url string) error {
		conn, err := pgx.Connect(ctx, url)
		if err != nil {
			return err
		}
		defer conn.Close(context.WithoutCancel(ctx))
		_, err = conn.Exec(ctx, schema.Schema)
		return err
	}, "schema.sql\n"+schema.Schema)
}
