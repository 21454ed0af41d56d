// Command riverbench measures the job queue River in the way of River's own
// benchmark: the jobs are inserted first, then worked off by one client, and a job
// counts once its completion is committed. The settings that River's benchmark
// chose for throughput are used here, too: 2,000 workers, a fetch cooldown of 2 ms
// and a poll interval of 20 ms. It is a module of its own, so that the product does
// not depend on River.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
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
)

func main() {
	database := flag.String("database-url", "", "PostgreSQL database that River may change")
	jobs := flag.Int("jobs", 50_000, "how many jobs are inserted and worked off")
	flag.Parse()
	result, err := run(context.Background(), *database, *jobs)
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

func run(ctx context.Context, database string, jobs int) (result, error) {
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
	for done := 0; done < jobs; {
		batch := make([]river.InsertManyParams, min(insertBatch, jobs-done))
		for i := range batch {
			batch[i].Args = nothing{done + i}
		}
		if _, err := client.InsertMany(ctx, batch); err != nil {
			return result{}, fmt.Errorf("insert jobs: %w", err)
		}
		done += len(batch)
	}
	return work(ctx, client, jobs)
}

// work runs the client until every job is completed.
func work[T any](ctx context.Context, client *river.Client[T], jobs int) (result, error) {
	events, cancel := client.SubscribeConfig(&river.SubscribeConfig{
		ChanSize: jobs + 1, // a dropped event would never be counted
		Kinds:    []river.EventKind{river.EventKindJobCompleted, river.EventKindJobCancelled, river.EventKindJobFailed},
	})
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
