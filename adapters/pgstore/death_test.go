package pgstore_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/ports"
)

// TestDeadWorkers: a delivery that kills its worker is taken alone the next time,
// and is a dead letter after three deaths; its neighbours are applied.
func TestDeadWorkers(t *testing.T) {
	t.Parallel()
	db := database(t)
	s := openShop(t, pgstore.Config{URL: db.URL})
	admin := connect(t, db.URL)
	good, bad := s.submitted(t), s.submitted(t)
	before := s.version(t, good)
	if _, err := s.Receive(t.Context(), []ports.InboxRow{s.delivery(good, "good"), s.delivery(bad, "deadly")}); err != nil {
		t.Fatal(err)
	}
	deaths := 0
	for range 50 {
		cmd := childCommand("dying worker", "URL="+db.URL)
		out, err := cmd.CombinedOutput()
		if err == nil { // unless the server has not yet noticed the last death
			var left int
			if err := admin.QueryRow(t.Context(), "SELECT count(*) FROM inbox_queue").Scan(&left); err != nil {
				t.Fatal(err)
			}
			if left == 0 {
				break
			}
			continue
		}
		if cmd.ProcessState.ExitCode() != deadlyExit {
			t.Fatalf("worker: %v\n%s", err, out)
		}
		deaths++
		if _, err := admin.Exec(t.Context(), "UPDATE inbox_workers SET taken_at = taken_at - interval '1 minute'"); err != nil {
			t.Fatal(err)
		}
	}
	if deaths != 3 {
		t.Errorf("%d workers died, want 3", deaths)
	}
	if got := s.version(t, good); got != before+1 {
		t.Errorf("the neighbour is at version %d, want %d", got, before+1)
	}
	dead, err := s.Troubled(t.Context(), ports.TroubledFilter{Limit: 10})
	if err != nil || len(dead) != 1 || dead[0].DedupKey != "deadly" || dead[0].LastError != "worker_died" {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

const deadlyExit = 7

// dyingWorker processes until nothing is due, and dies of one payload.
func dyingWorker(ctx context.Context) error {
	store, err := pgstore.Open(ctx, pgstore.Config{URL: os.Getenv("URL"), Keyring: keyring})
	if err != nil {
		return err
	}
	for {
		report, err := store.Process(ctx, ports.ProcessParams{Limit: 10, Now: time.Now()}, func(row ports.InboxRow) ports.Decoded {
			if string(row.Payload) == "deadly" {
				os.Exit(deadlyExit)
			}
			return decodeRunning(row)
		})
		if err != nil {
			return err
		}
		if report.Taken == 0 {
			return nil
		}
	}
}
