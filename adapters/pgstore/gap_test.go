package pgstore_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

// The size of the gap tests, and what their writers suffer: a wait of up to
// gapDelay before each COMMIT, and a rollback instead of it at gapRollbacks.
const (
	gapWriters   = 16
	gapRounds    = 25
	gapStreams   = 4
	gapTasks     = 24
	gapReaders   = 2
	gapDelay     = 20 * time.Millisecond
	gapRollbacks = 0.05
)

// Environment of a writer's process.
const (
	gapWriterEnv = "AIVEDIO_GAP_WRITER"
	gapKindEnv   = "AIVEDIO_GAP_KIND"
	gapURLEnv    = "AIVEDIO_GAP_URL"
	gapPlanEnv   = "AIVEDIO_GAP_PLAN"
)

// TestEventIDsAreGapFree: 16 processes write to shared projects; who follows a
// project with a cursor sees every event, in order and without a gap (I5).
func TestEventIDsAreGapFree(t *testing.T) {
	t.Parallel()
	db := database(t)
	store := openGapStore(t, db.URL, nil)
	plan := porttest.NewGapPlan(t, store, gapStreams, gapTasks)
	text, err := json.Marshal(plan)
	if err != nil {
		t.Fatal(err)
	}
	porttest.GapFree(t, porttest.Gap{
		Writers: gapWriters, Command: gapCommand("store", db.URL, string(text)),
		Streams: gapStreams, Readers: gapReaders, Follow: plan.Follow(store),
	})
}

// TestIdentityColumnLosesEvents shows that the test above can fail, and why
// event ids are not an identity column: such a number is drawn at the insert and
// seen at the commit, so a reader passes by rows that commit late.
func TestIdentityColumnLosesEvents(t *testing.T) {
	t.Parallel()
	db := testenv.EmptyPostgres(t)
	conn := connect(t, db.URL)
	const table = `CREATE TABLE gap_events (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, stream int NOT NULL, name text NOT NULL)`
	if _, err := conn.Exec(t.Context(), table); err != nil {
		t.Fatal(err)
	}
	report, err := porttest.RunGap(t.Context(), porttest.Gap{
		Writers: gapWriters, Command: gapCommand("identity", db.URL, ""),
		Streams: 1, Readers: 1, Follow: followIdentity(conn),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events, %d of them never seen; for instance: %s", report.Committed, report.Lost, report.Example)
	if report.Lost == 0 {
		t.Errorf("no event was lost: %+v; the test would not notice an identity column", report)
	}
}

// TestGapWriter is the process of one writer; without its environment it is
// nothing.
func TestGapWriter(t *testing.T) {
	seed, err := strconv.ParseUint(os.Getenv(gapWriterEnv), 10, 64)
	if err != nil {
		t.Skip("the child process of the gap tests")
	}
	url := os.Getenv(gapURLEnv)
	if os.Getenv(gapKindEnv) == "identity" {
		if err := writeIdentity(t.Context(), connect(t, url), seed, os.Stdout); err != nil {
			t.Fatal(err)
		}
		return
	}
	var plan porttest.GapPlan
	if err := json.Unmarshal([]byte(os.Getenv(gapPlanEnv)), &plan); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(seed, 1))
	store := openGapStore(t, url, func(ctx context.Context, point pgstore.Point) error {
		if point != pgstore.PointWritten {
			return nil
		}
		return suffer(ctx, rng)
	})
	if err := plan.Write(t.Context(), store, seed, gapRounds, os.Stdout); err != nil {
		t.Fatal(err)
	}
}

// suffer waits a little and says, now and then, that all was in vain.
func suffer(ctx context.Context, rng *rand.Rand) error {
	timer := time.NewTimer(time.Duration(rng.Int64N(int64(gapDelay))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	if rng.Float64() < gapRollbacks {
		return fmt.Errorf("injected rollback: %w", ports.ErrUnavailable)
	}
	return nil
}

// writeIdentity writes events as the design without a counter would.
func writeIdentity(ctx context.Context, conn *pgx.Conn, seed uint64, out io.Writer) error {
	rng := rand.New(rand.NewPCG(seed, 1))
	for round := range gapRounds {
		e := porttest.GapEvent{Name: fmt.Sprintf("%d/%d", seed, round)}
		err := pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			if err := tx.QueryRow(ctx, "INSERT INTO gap_events (stream, name) VALUES (0, $1) RETURNING id", e.Name).Scan(&e.Number); err != nil {
				return err
			}
			return suffer(ctx, rng)
		})
		switch {
		case errors.Is(err, ports.ErrUnavailable):
			continue
		case err != nil:
			return err
		}
		if _, err := io.WriteString(out, porttest.GapLine(0, e)); err != nil {
			return err
		}
	}
	return nil
}

// followIdentity reads what is behind the highest number that was seen.
func followIdentity(conn *pgx.Conn) func(int) func(context.Context) ([]porttest.GapEvent, error) {
	return func(stream int) func(context.Context) ([]porttest.GapEvent, error) {
		var last int64
		return func(ctx context.Context) ([]porttest.GapEvent, error) {
			rows, err := conn.Query(ctx, "SELECT id, name FROM gap_events WHERE stream = $1 AND id > $2 ORDER BY id LIMIT 100", stream, last)
			if err != nil {
				return nil, err
			}
			events, err := pgx.CollectRows(rows, pgx.RowToStructByPos[porttest.GapEvent])
			if err == nil && len(events) > 0 {
				last = events[len(events)-1].Number
			}
			return events, err
		}
	}
}

// gapCommand makes this test binary the writer.
func gapCommand(kind, url, plan string) func(int) *exec.Cmd {
	return func(writer int) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestGapWriter$", "-test.count=1")
		cmd.Env = append(os.Environ(),
			gapWriterEnv+"="+strconv.Itoa(writer), gapKindEnv+"="+kind, gapURLEnv+"="+url, gapPlanEnv+"="+plan)
		return cmd
	}
}

func openGapStore(t *testing.T, url string, failpoint func(context.Context, pgstore.Point) error) *pgstore.Store {
	t.Helper()
	return open(t, pgstore.Config{URL: url, Conns: 3, CallbackConns: 1, Failpoint: failpoint})
}
