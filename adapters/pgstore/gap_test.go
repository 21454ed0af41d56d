package pgstore_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/ports/porttest"
)

// TestGapFreeUnderSixteenProcesses is I5 between real processes.
func TestGapFreeUnderSixteenProcesses(t *testing.T) {
	t.Parallel()
	db := database(t)
	store := open(t, pgstore.Config{URL: db.URL})
	plan := porttest.NewGapPlan(t, store, 3, 12)
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	porttest.GapFree(t, porttest.Gap{
		Writers: 16, Streams: len(plan.Projects), Readers: 2, Follow: plan.Follow(store),
		Command: func(writer int) *exec.Cmd {
			return childCommand("gap writer", "URL="+db.URL, "PLAN="+string(text), "WRITER="+strconv.Itoa(writer))
		},
	})
}

// TestGapTestSeesAnIdentityColumn shows what the test above is worth: numbers that
// are drawn at insert and seen at commit, as the specification has it, lose events
// for a reader with a cursor.
func TestGapTestSeesAnIdentityColumn(t *testing.T) {
	t.Parallel()
	db := database(t)
	pool, err := pgxpool.New(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	if _, err := pool.Exec(t.Context(), "CREATE TABLE identity_events (id BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name TEXT NOT NULL)"); err != nil {
		t.Fatal(err)
	}
	report, err := porttest.RunGap(t.Context(), porttest.Gap{
		Writers: 16, Streams: 1, Readers: 2,
		Command: func(writer int) *exec.Cmd {
			return childCommand("identity writer", "URL="+db.URL, "WRITER="+strconv.Itoa(writer))
		},
		Follow: func(int) func(context.Context) ([]porttest.GapEvent, error) { return followIdentity(pool) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events: %d lost, %d gaps", report.Committed, report.Lost, report.Gaps)
	if report.Lost == 0 || report.Gaps == 0 {
		t.Errorf("an identity column passed the test: %+v", report)
	}
}

func followIdentity(pool *pgxpool.Pool) func(context.Context) ([]porttest.GapEvent, error) {
	last := int64(0)
	return func(ctx context.Context) ([]porttest.GapEvent, error) {
		rows, err := pool.Query(ctx, "SELECT id, name FROM identity_events WHERE id > $1 ORDER BY id LIMIT 100", last)
		if err != nil {
			return nil, err
		}
		events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[porttest.GapEvent])
		if n := len(events); n > 0 {
			last = events[n-1].Number
		}
		return events, err
	}
}

// identityWriter inserts with the same delays and rollbacks as the gap writer.
func identityWriter(ctx context.Context) error {
	writer, err := strconv.ParseUint(os.Getenv("WRITER"), 10, 64)
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, os.Getenv("URL"))
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	rng := rand.New(rand.NewPCG(writer, 3))
	for i := range 40 {
		if err := insertIdentity(ctx, conn, rng, fmt.Sprintf("%d/%d", writer, i)); err != nil {
			return err
		}
	}
	return nil
}

func insertIdentity(ctx context.Context, conn *pgx.Conn, rng *rand.Rand, name string) error {
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback(context.WithoutCancel(ctx))
	event := porttest.GapEvent{Name: name}
	if err := tx.QueryRow(ctx, "INSERT INTO identity_events (name) VALUES ($1) RETURNING id", name).Scan(&event.Number); err != nil {
		return err
	}
	if delayOrFail(ctx, pgstore.PointWritten, rng) != nil {
		return nil // rolled back
	}
	if err := tx.Commit(ctx); err != nil {
		return err
	}
	_, err = os.Stdout.WriteString(porttest.GapLine(0, event))
	return err
}
