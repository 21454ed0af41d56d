package pgstore_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/internal/e2e/backlog"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// TestOutboxStaysFlat sends and cleans the same number of rows again and again, with
// the vacuum that the tables' own thresholds bring: after the first rounds nothing
// grows, indexes included.
func TestOutboxStaysFlat(t *testing.T) {
	t.Parallel()
	const rounds, rows, settled = 14, 4000, 7
	db := database(t)
	store := open(t, pgstore.Config{URL: db.URL, NewID: wire.NewID})
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // every statement has been answered
	owner := wire.NewID()
	var written []time.Time
	var sizes [][2]int64
	for round := range rounds {
		if _, err := backlog.Fill(t.Context(), conn, backlog.Shape{Projects: 50, Rows: rows}); err != nil {
			t.Fatal(err)
		}
		var now time.Time
		if err := conn.QueryRow(t.Context(), "SELECT clock_timestamp()").Scan(&now); err != nil {
			t.Fatal(err)
		}
		written = append(written, now)
		if n := sendEverything(t, store, owner, now); n != rows {
			t.Fatalf("round %d: %d rows were sent, want %d", round, n, rows)
		}
		if round >= 2 { // two rounds are kept
			n, err := store.Clean(t.Context(), written[round-2], 2*rows)
			if err != nil || n != rows {
				t.Fatalf("round %d: %d rows were cleaned, %v", round, n, err)
			}
		}
		if _, err := conn.Exec(t.Context(), "VACUUM outbox_events, outbox_queue"); err != nil {
			t.Fatal(err)
		}
		var size [2]int64
		err := conn.QueryRow(t.Context(), "SELECT pg_total_relation_size('outbox_events'), pg_total_relation_size('outbox_queue')").Scan(&size[0], &size[1])
		if err != nil {
			t.Fatal(err)
		}
		sizes = append(sizes, size)
	}
	t.Logf("bytes of outbox_events and outbox_queue after each round: %v", sizes)
	for table := range 2 {
		var most [2]int64 // before and after the tables have settled
		for round, size := range sizes {
			half := min(round/settled, 1)
			most[half] = max(most[half], size[table])
		}
		if most[1] > most[0]+most[0]/20 {
			t.Errorf("table %d grew from %d to %d bytes", table, most[0], most[1])
		}
	}
}

// sendEverything is a relay whose bus takes everything.
func sendEverything(t *testing.T, store *pgstore.Store, owner [16]byte, now time.Time) (sent int) {
	t.Helper()
	shards, err := store.LeaseShards(t.Context(), ports.ShardParams{Owner: owner, Now: now, For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	for {
		batch, err := store.Pending(t.Context(), ports.PendingParams{Shards: shards, Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(batch) == 0 {
			return sent
		}
		ids := make([]int64, len(batch))
		for i, row := range batch {
			ids[i] = row.ID
		}
		if err := store.MarkPublished(t.Context(), shards, ids); err != nil {
			t.Fatal(err)
		}
		sent += len(batch)
	}
}
