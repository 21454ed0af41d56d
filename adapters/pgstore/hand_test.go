package pgstore_test

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/ports"
)

// TestEmptyHandsInASmallPool: workers that fail together on all connections of the
// pool still say that they have nothing in hand, or their shards would be held.
func TestEmptyHandsInASmallPool(t *testing.T) {
	t.Parallel()
	const workers = 2
	db := database(t)
	s := openShop(t, pgstore.Config{URL: db.URL})
	p := s.submitted(t)
	var rows []ports.InboxRow
	for i := range 16 {
		row := s.delivery(p, strconv.Itoa(i))
		row.ProviderTaskID = row.DedupKey // one shard each
		rows = append(rows, row)
	}
	if _, err := s.Receive(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	var together sync.WaitGroup
	together.Add(workers)
	fault := errors.New("injected")
	small := open(t, pgstore.Config{URL: db.URL, Conns: workers, Failpoint: func(_ context.Context, point pgstore.Point) error {
		if point == pgstore.PointClaimed {
			together.Done()
			together.Wait()
			return fault
		}
		return nil
	}})
	var ended sync.WaitGroup
	for w := range workers {
		ended.Go(func() {
			if _, err := small.Process(t.Context(), ports.ProcessParams{Worker: w, Workers: workers, Limit: 4, Now: time.Now()}, decodeRunning); !errors.Is(err, fault) {
				t.Errorf("worker %d: %v", w, err)
			}
		})
	}
	ended.Wait()
	var held int
	if err := connect(t, db.URL).QueryRow(t.Context(), "SELECT count(*) FROM inbox_workers WHERE inbox_ids <> '{}'").Scan(&held); err != nil || held != 0 {
		t.Errorf("%d hands are not empty, %v", held, err)
	}
}
