package pgstore_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
	"github.com/aivedio/aivedio/schema"
)

// keyring holds a key for tests.
var keyring = pgstore.Keyring{Current: "1", Keys: map[string][]byte{"1": []byte("0123456789abcdef0123456789abcdef")}}

// database returns a migrated database of the test's own.
func database(t testing.TB) *testenv.PG {
	t.Helper()
	migrate := func(ctx context.Context, url string) error {
		_, err := pgstore.Migrate(ctx, url, pgstore.MigrateOptions{})
		return err
	}
	return testenv.PostgresWith(t, migrate, schema.Hash()+time.Now().UTC().Format(time.DateOnly))
}

// open opens a store that ends with the test.
func open(t testing.TB, cfg pgstore.Config) *pgstore.Store {
	t.Helper()
	cfg.Keyring = keyring
	store, err := pgstore.Open(context.WithoutCancel(t.Context()), cfg)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	t.Cleanup(store.Close)
	return store
}

// rollbacks fails transactions before their COMMIT, with a probability.
type rollbacks struct{ perMille atomic.Int64 }

func (r *rollbacks) hit(_ context.Context, point pgstore.Point) error {
	if point == pgstore.PointWritten && rand.Int64N(1000) < r.perMille.Load() {
		return fmt.Errorf("injected: %w", ports.ErrUnavailable)
	}
	return nil
}

// switched is a store that can be exchanged for one with faults, so that everything
// else runs as it does in earnest: COMMIT in the pipeline.
type switched struct{ ports.Store }

func TestStore(t *testing.T) {
	t.Parallel()
	porttest.Store(t, func(t *testing.T) porttest.StoreFixture {
		db, clock, faults := database(t), porttest.NewClock(), &rollbacks{}
		cfg := pgstore.Config{URL: db.URL, Conns: 6, CallbackConns: 2, Now: clock.Now}
		whole := open(t, cfg)
		store := &switched{whole}
		exec := func(t *testing.T, sql string, args ...any) {
			t.Helper()
			if _, err := connect(t, db.URL).Exec(t.Context(), sql, args...); err != nil {
				t.Fatalf("%s: %v", sql, err)
			}
		}
		return porttest.StoreFixture{
			Store: store, Clock: clock,
			Reopen: func(t *testing.T) ports.Store { return open(t, cfg) },
			Decode: wire.ParseMessage,
			InjectRollback: func(rate float64) {
				if faults.perMille.Store(int64(rate * 1000)); rate == 0 {
					store.Store = whole
					return
				}
				broken := cfg
				broken.Failpoint = faults.hit
				store.Store = open(t, broken)
			},
			ExpireEvents: func(t *testing.T, project domain.ProjectID, upTo int64) {
				exec(t, "DELETE FROM task_events WHERE project_id = $1 AND event_id <= $2", project.String(), upTo)
			},
			SetHead: func(t *testing.T, project domain.ProjectID, last int64) {
				exec(t, "UPDATE project_streams SET last_event_id = $2 WHERE project_id = $1", project.String(), last)
			},
		}
	})
}
