package e2e

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/e2e/load"
	"github.com/aivedio/aivedio/internal/testenv"
)

// crashDatabase is a migrated database on a server that keeps what it commits.
func crashDatabase(t *testing.T) string {
	t.Helper()
	db := testenv.PostgresServer(t, testenv.PGOptions{Fsync: true}).Database("callbacks")
	if _, err := pgstore.Migrate(t.Context(), db, pgstore.MigrateOptions{}); err != nil {
		t.Fatal(err)
	}
	return db
}

// crash kills a receiver of callbacks again and again while deliveries come in.
// A moment is given as a number of acknowledgements, so that it means the same on
// a slow machine and always falls into the load.
type crash struct {
	process  *Process
	addr     string
	secret   string
	database string
	kills    int
	rng      *rand.Rand
}

// verdict is what a crash run found.
type verdict struct {
	sent         int      // deliveries, each with an id of its own
	acknowledged int      // of those, answered with a 2xx
	unanswered   int      // exchanges that a kill or a down time cut
	lost         []string // acknowledged, and not in the inbox with their payload
	rows         int      // in the inbox
	load         time.Duration
}

// String is a line for a log.
func (v verdict) String() string {
	return fmt.Sprintf("%d deliveries, %d acknowledged (%.0f per second, down times included), %d exchanges cut, %d rows, %d lost",
		v.sent, v.acknowledged, float64(v.acknowledged)/v.load.Seconds(), v.unanswered, v.rows, len(v.lost))
}

// crashTimeout bounds the load of one run.
const crashTimeout = 80 * time.Second

// run loads, kills and restarts, lets the vendor repeat what was not
// acknowledged, and compares with the inbox.
func (c crash) run(t *testing.T) verdict {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), crashTimeout)
	defer cancel()
	s := &crashSource{sender: load.Sender{Host: c.addr, Secret: c.secret}, acknowledged: map[string]*load.Delivery{}, moments: make(chan struct{}, 1)}
	began := time.Now()
	loading, stopLoad := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		load.Run{Addr: c.addr, Conns: 64, Rate: crashRate, Timeout: 10 * time.Second, Next: s.next, Done: s.done}.Do(loading)
	})
	err := c.killAll(ctx, s)
	stopLoad()
	wg.Wait()
	v := verdict{load: time.Since(began)}
	if err != nil {
		t.Fatal(err)
	}
	s.stopNew()
	load.Run{Addr: c.addr, Conns: 8, Timeout: 10 * time.Second, Next: s.next, Done: s.done}.Do(ctx)
	if ctx.Err() != nil {
		t.Fatalf("the last repetitions were not acknowledged within %v", crashTimeout)
	}
	v.sent, v.acknowledged, v.unanswered = s.sent, len(s.acknowledged), s.unanswered
	c.compare(t, s, &v)
	return v
}

// killAll does not use the test's own helpers: they may end the test, and the
// load must be stopped first.
func (c crash) killAll(ctx context.Context, s *crashSource) error {
	for n := range c.kills {
		s.after(1 + c.rng.IntN(1200))
		select {
		case <-s.moments:
		case <-ctx.Done():
			return fmt.Errorf("kill %d of %d did not come within %v", n+1, c.kills, crashTimeout)
		}
		p := c.process.Process
		before := p.PID()
		if err := p.Kill(); err != nil {
			return err
		}
		if err := p.Start(ctx); err != nil {
			return err
		}
		if p.PID() == before {
			return fmt.Errorf("kill %d left pid %d alive", n+1, before)
		}
	}
	return nil
}

// compare looks up every acknowledged delivery with its payload.
func (c crash) compare(t *testing.T, s *crashSource, v *verdict) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), c.database)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context())) //nolint:errcheck // nothing is written
	rows, err := conn.Query(t.Context(), "SELECT provider_event_id, payload_hash FROM provider_callback_inbox")
	if err != nil {
		t.Fatal(err)
	}
	stored := map[string][]byte{}
	for rows.Next() {
		var id string
		var hash []byte
		if err := rows.Scan(&id, &hash); err != nil {
			t.Fatal(err)
		}
		stored[id] = hash
		v.rows++
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	for id, d := range s.acknowledged {
		if !bytes.Equal(stored[id], d.BodyHash[:]) {
			v.lost = append(v.lost, id)
		}
	}
}

// crashSource is the vendor: new deliveries, and again those that were not
// acknowledged.
type crashSource struct {
	sender load.Sender
	// moments tells when the asked number of acknowledgements has come.
	moments chan struct{}

	mu           sync.Mutex
	sent         int
	unanswered   int
	acknowledged map[string]*load.Delivery
	again        []*load.Delivery
	left         int  // acknowledgements until the next moment; 0: none is asked
	closed       bool // no new deliveries
}

// after asks for a moment, n acknowledgements from now.
func (s *crashSource) after(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = n
}

func (s *crashSource) stopNew() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
}

func (s *crashSource) next(int) *load.Delivery {
	s.mu.Lock()
	if len(s.again) > 0 {
		d := s.again[0]
		s.again = s.again[1:]
		s.mu.Unlock()
		return d
	}
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	n := s.sent
	s.sent++
	s.mu.Unlock()
	now := time.Now()
	d, err := s.sender.Sign("/callbacks/replicate/a/"+launch.Account, fmt.Sprintf("msg_%08d", n), load.Job{
		ID: fmt.Sprintf("job%08d", n), Progress: 10, Began: now, Size: 600,
	}, now)
	if err != nil {
		panic(err) // the secret was drawn by us
	}
	return d
}

func (s *crashSource) done(_ int, r load.Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !r.Acknowledged() {
		s.unanswered++
		s.again = append(s.again, r.Delivery)
		return
	}
	s.acknowledged[r.Delivery.ID] = r.Delivery
	if s.left > 0 {
		if s.left--; s.left == 0 {
			s.moments <- struct{}{}
		}
	}
}
