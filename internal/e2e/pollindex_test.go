package e2e

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/redis/go-redis/v9"

	"github.com/aivedio/aivedio/internal/simulator"
)

// The index of due times is emptied again and again, with everything else that is
// in Redis, while two workers poll by it: every task comes to its end all the same,
// and nothing is asked for twice under one lease.
func TestPollIndexFlushedUnderLoad(t *testing.T) {
	const tasks = 300
	f, watch := newAskingFleet(t, "AIVEDIO_POLL_INDEX=true")
	ctx, cancel := context.WithTimeout(t.Context(), askedPatience)
	defer cancel()
	db, err := pgx.Connect(ctx, f.deployment.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	rdb := redis.NewClient(&redis.Options{Addr: f.redis.Addr})
	defer rdb.Close() //nolint:errcheck // nothing is written through it
	f.mustPostAll(ctx, t, tasks)
	flushes, used := 0, int64(0)
	err = await(ctx, "every task to be terminal", func() (bool, error) {
		n, err := rdb.ZCard(ctx, f.deployment.RedisPrefix+":due").Result()
		if err != nil {
			return false, err
		}
		used = max(used, n)
		if err := rdb.FlushAll(ctx).Err(); err != nil {
			return false, err
		}
		flushes++
		var open, made int
		err = db.QueryRow(ctx, "SELECT count(*) FILTER (WHERE terminal_at IS NULL), count(*) FROM generation_tasks").Scan(&open, &made)
		return open == 0 && made == tasks, err
	})
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	f.stopAll()
	if flushes < 10 || used == 0 {
		t.Errorf("%d flushes of an index with at most %d moments: it was not used", flushes, used)
	}
	t.Logf("%d flushes, at most %d moments between two, stopped in %v", flushes, used, time.Since(began).Round(time.Millisecond))

	var log struct{ Queries []simulator.QueryEntry }
	if err := f.ask(ctx, "/_sim/queries", &log); err != nil {
		t.Fatal(err)
	}
	leases, err := watch.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if found := leases.Match(log.Queries); found.Repeated+found.Stolen+found.Unclaimed > 0 {
		t.Errorf("leases were broken: %v", found)
	}
	(&run{fleet: f}).auditDoctor(t)
	f.noErrorLogged()
}
