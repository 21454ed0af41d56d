package pgstore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// TestKilledConnection cuts the connection at each point of a transaction: it is
// written whole or not at all, and the next call works.
func TestKilledConnection(t *testing.T) {
	t.Parallel()
	for _, point := range []pgstore.Point{pgstore.PointClaimed, pgstore.PointLocked, pgstore.PointWritten} {
		t.Run(string(point), func(t *testing.T) {
			t.Parallel()
			db := database(t)
			killer := connect(t, db.URL)
			var armed atomic.Bool
			s := openShop(t, pgstore.Config{URL: db.URL, Failpoint: func(ctx context.Context, at pgstore.Point) error {
				if at != point || !armed.CompareAndSwap(true, false) {
					return nil
				}
				_, err := killer.Exec(ctx, `SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
					WHERE datname = current_database() AND state = 'idle in transaction'`)
				return err
			}})
			p := s.submitted(t)
			before := s.version(t, p)
			if _, err := s.Receive(t.Context(), []ports.InboxRow{s.delivery(p, "one")}); err != nil {
				t.Fatal(err)
			}
			armed.Store(true)
			report, err := s.Process(t.Context(), ports.ProcessParams{Limit: 10, Now: time.Now()}, decodeRunning)
			if err == nil {
				t.Fatalf("a transaction survived its connection: %+v", report)
			}
			if !errors.Is(err, ports.ErrUnavailable) {
				t.Errorf("error %v, want ErrUnavailable", err)
			}
			if got := s.version(t, p); got != before {
				t.Errorf("version %d after the cut, want %d", got, before)
			}
			report, err = s.Process(t.Context(), ports.ProcessParams{Limit: 10, Now: time.Now()}, decodeRunning)
			if err != nil || report.Applied != 1 {
				t.Errorf("after the cut: %+v, %v", report, err)
			}
			if got := s.version(t, p); got != before+1 {
				t.Errorf("version %d at the end, want %d", got, before+1)
			}
		})
	}
}

// TestLostCommit loses the server's answer to COMMIT. A creation proves itself:
// the task is there, once, and Create says so. Of other transactions nobody knows,
// and the caller is told.
func TestLostCommit(t *testing.T) {
	t.Parallel()
	db := database(t)
	proxy := newProxy(t, db.URL)
	s := openShop(t, pgstore.Config{URL: proxy.url, Failpoint: func(context.Context, pgstore.Point) error { return nil }})
	p := s.params()
	proxy.loseCommits.Store(1)
	result, err := s.Create(t.Context(), p)
	if err != nil || result.View.Task.ID != p.Task.ID || result.Replayed || result.View.Task.Version != 1 {
		t.Errorf("create: %+v, %v", result, err)
	}
	if got := s.version(t, p); got != 1 || proxy.loseCommits.Load() != 0 {
		t.Errorf("version %d, %d commits still to lose", got, proxy.loseCommits.Load())
	}
	q := s.submitted(t)
	before := s.version(t, q)
	proxy.loseCommits.Store(1)
	if _, err := s.Apply(t.Context(), []ports.Item{running(q)}); !errors.Is(err, ports.ErrUnavailable) {
		t.Errorf("Apply whose COMMIT was lost: %v, want ErrUnavailable", err)
	}
	if got := s.version(t, q); got != before+1 {
		t.Errorf("version %d, want %d: the server had committed", got, before+1)
	}
	results, err := s.Apply(t.Context(), []ports.Item{running(q)})
	if err != nil || results[0].Decision.Verdict.Kind != domain.VerdictUnchanged {
		t.Errorf("the same news again: %+v, %v", results, err)
	}
}
