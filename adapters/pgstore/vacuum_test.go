package pgstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/internal/e2e/backlog"
	"github.com/aivedio/aivedio/internal/wire"
)

// TestQueueIsVacuumed: whoever takes many rows out of a queue has its table vacuumed,
// long before the server's own vacuum comes around.
func TestQueueIsVacuumed(t *testing.T) {
	t.Parallel()
	const rows = 12_000
	db := database(t)
	store := open(t, pgstore.Config{URL: db.URL, NewID: wire.NewID})
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // every statement has been answered
	if _, err := backlog.Fill(t.Context(), conn, backlog.Shape{Projects: 50, Rows: rows}); err != nil {
		t.Fatal(err)
	}
	if n := sendEverything(t, store, wire.NewID(), time.Now()); n != rows {
		t.Fatalf("%d rows were sent, want %d", n, rows)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // the server counts late
	defer cancel()
	for by := int64(0); by == 0; {
		if err := conn.QueryRow(ctx, "SELECT vacuum_count FROM pg_sleep(0.05), pg_stat_user_tables WHERE relname = 'outbox_queue'").Scan(&by); err != nil {
			t.Fatal("the queue was not vacuumed:", err)
		}
	}
}
