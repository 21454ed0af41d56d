// Command riverbench measures the job queue River in the two ways of River's own
// benchmark: for some time, while as many jobs are inserted as are worked off; or a
// number of jobs that are inserted first, then worked off. A job counts once its
// completion is committed. The settings that River's benchmark chose for throughput
// are used here, too: 2,000 workers, a fetch cooldown of 2 ms, a poll interval of
// 20 ms, inserts of 5,000, and 75,000 jobs kept waiting. It is a module of its own,
// so that the product does not depend on River.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

const (
	workers       = 2000
	fetchCooldown = 2 * time.Millisecond
	pollInterval  = 20 * time.Millisecond
	insertBatch   = 5000
	waitingJobs   = 75_000
	insertEvery   = 250 * time.Millisecond
)

func main() {
	database := flag.String("database-url", "", "PostgreSQL database that River may change")
	jobs := flag.Int("jobs", 0, "insert so many jobs, then work them off; 0 inserts and works for a time")
	duration := flag.Duration("duration", 10*time.Second, "the time")
	flag.Parse()
	result, err := run(context.Background(), *database, *jobs, *duration)
	if err != nil {
		fmt.Fprintln(os.Stderr, "riverbench:", err)
		os.Exit(1)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		fmt.Fprintln(os.Stderr, "riverbench:", err)
		os.Exit(1)
	}
}

// result is what is printed.
type result struct {
	Jobs    int     `json:"jobs"`
	Seconds float64 `json:"seconds"`
	PerSec  float64 `json:"jobs_per_s"`
}

// nothing is a job without work: only the queue is measured.
type nothing struct {
	Number int `json:"number"`
}

// Kind names the job.
func (nothing) Kind() string { return "nothing" }

func run(ctx context.Context, database string, jobs int, duration time.Duration) (result, error) {
	pool, err := pgxpool.New(ctx, database)
	if err != nil {
		return result{}, err
	}
	defer pool.Close()
	driver := riverpgxv5.New(pool)
	quiet := slog.New(slog.NewTextHandler(io.Discard, nil))
	migrator, err := rivermigrate.New(driver, &rivermigrate.Config{Logger: quiet})
	if err != nil {
		return result{}, err
	}
	if _, err := migrator.Migrate(ctx, rivermigrate.DirectionUp, nil); err != nil {
		return result{}, fmt.Errorf("migrate: %w", err)
	}
	for _, statement := range []string{"TRUNCATE river_job", "VACUUM FULL river_job"} {
		if _, err := pool.Exec(ctx, statement); err != nil {
			return result{}, fmt.Errorf("%s: %w", statement, err)
		}
	}
	registry := river.NewWorkers()
	river.AddWorker(registry, river.WorkFunc(func(context.Context, *river.Job[nothing]) error { return nil }))
	client, err := river.NewClient(driver, &river.Config{
		FetchCooldown: fetchCooldown, FetchPollInterval: pollInterval, Logger: quiet, Workers: registry,
		Queues: map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
	})
	if err != nil {
		return result{}, err
	}
	first := jobs
	if first == 0 {
		first = waitingJobs
	}
	if err := insert(ctx, client, first); err != nil {
		return result{}, err
	}
	if jobs == 0 {
		return workFor(ctx, client, duration)
	}
	return work(ctx, client, jobs)
}

// insert adds so many jobs.
func insert[T any](ctx context.Context, client *river.Client[T], jobs int) error {
	for done := 0; done < jobs; {
		batch := make([]river.InsertManyParams, min(insertBatch, jobs-done))
		for i := range batch {
			batch[i].Args = nothing{done + i}
		}
		if _, err := client.InsertMany(ctx, batch); err != nil {
			return fmt.Errorf("insert jobs: %w", err)
		}
		done += len(batch)
	}
	return nil
}

// completed counts the jobs that are done until the context ends or a job was not
// completed.
func completed(ctx context.Context, events <-chan *river.Event, count *atomic.Int64) error {
	for {
		select {
		case event := <-events:
			if event == nil || event.Kind != river.EventKindJobCompleted {
				return fmt.Errorf("a job was not completed: %+v", event)
			}
			count.Add(1)
		case <-ctx.Done():
			return nil
		}
	}
}

// workFor runs the client for the time and keeps enough jobs waiting.
func workFor[T any](ctx context.Context, client *river.Client[T], duration time.Duration) (result, error) {
	events, cancel := subscribe(client, 4*waitingJobs)
	defer cancel()
	timed, stop := context.WithTimeout(ctx, duration)
	defer stop()
	var count atomic.Int64
	inserted := int64(waitingJobs)
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return result{}, err
	}
	failed := make(chan error, 1)
	go func() { failed <- completed(timed, events, &count) }()
	tick := time.NewTicker(insertEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			for timed.Err() == nil && inserted-count.Load() < waitingJobs {
				if err := insert(ctx, client, insertBatch); err != nil {
					return result{}, err
				}
				inserted += insertBatch
			}
		case err := <-failed:
			if err != nil {
				return result{}, err
			}
			n, took := int(count.Load()), time.Since(began).Seconds()
			halt, cancel := context.WithTimeout(ctx, 10*time.Second)
			defer cancel()
			return result{Jobs: n, Seconds: took, PerSec: float64(n) / took}, client.StopAndCancel(halt)
		}
	}
}

func subscribe[T any](client *river.Client[T], size int) (<-chan *river.Event, func()) {
	return client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: size, // a dropped event would never be counted
		Kinds:    []river.EventKind{river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed},
	})
}

// work runs the client until every job is completed.
func work[T any](ctx context.Context, client *river.Client[T], jobs int) (result, error) {
	events, cancel := subscribe(client, jobs+1)
	defer cancel()
	began := time.Now()
	if err := client.Start(ctx); err != nil {
		return result{}, err
	}
	for range jobs {
		event := <-events
		if event == nil || event.Kind != river.EventKindJobCompleted {
			return result{}, fmt.Errorf("a job was not completed: %+v", event)
		}
	}
	took := time.Since(began).Seconds()
	return result{Jobs: jobs, Seconds: took, PerSec: float64(jobs) / took}, client.Stop(ctx)
}
