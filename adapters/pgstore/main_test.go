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
	"time"

	"go.uber.org/goleak"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

// childEnv makes the test binary one of several processes at one database.
const childEnv = "AIVEDIO_PGSTORE_CHILD"

// children are what a child process may be.
var children = map[string]func(ctx context.Context) error{
	"gap writer":      gapWriter,
	"identity writer": identityWriter,
	"dying worker":    dyingWorker,
}

func TestMain(m *testing.M) {
	child, ok := children[os.Getenv(childEnv)]
	if !ok {
		goleak.VerifyTestMain(testenv.Wrap(m))
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := child(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// childCommand is a process of the kind, not started.
func childCommand(kind string, env ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(append(os.Environ(), childEnv+"="+kind), env...)
	return cmd
}

// gapWriter applies batches with delays and rollbacks before the commit.
func gapWriter(ctx context.Context) error {
	var plan porttest.GapPlan
	if err := json.Unmarshal([]byte(os.Getenv("PLAN")), &plan); err != nil {
		return err
	}
	writer, err := strconv.ParseUint(os.Getenv("WRITER"), 10, 64)
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(writer, 2))
	store, err := pgstore.Open(ctx, pgstore.Config{
		URL: os.Getenv("URL"), Keyring: keyring, Conns: 2, CallbackConns: 1, LockTimeout: 8 * time.Second, StatementTimeout: 9 * time.Second,
		Failpoint: func(ctx context.Context, point pgstore.Point) error { return delayOrFail(ctx, point, rng) },
	})
	if err != nil {
		return err
	}
	defer store.Close()
	return plan.Write(ctx, store, writer, 12, os.Stdout)
}

// delayOrFail holds a finished transaction open for up to 4 ms, or rolls it back.
func delayOrFail(ctx context.Context, point pgstore.Point, rng *rand.Rand) error {
	if point != pgstore.PointWritten {
		return nil
	}
	if rng.IntN(20) == 0 {
		return fmt.Errorf("injected: %w", ports.ErrUnavailable)
	}
	timer := time.NewTimer(time.Duration(rng.Int64N(int64(4 * time.Millisecond))))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return nil
}
