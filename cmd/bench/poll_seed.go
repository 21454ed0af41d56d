package main

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// pollSeedSQL gives the copied attempts the vendor's jobs and timers of their own.
//
//go:embed poll_seed.sql
var pollSeedSQL string

// seed makes a running task for each job of the vendor.
func (p *poll) seed(ctx context.Context, jobs []string) error {
	url := p.cluster.URL(oursDatabase)
	if _, err := seed(ctx, url, p.secrets, min(pollProjects, len(jobs)), len(jobs), (*seeder).running); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // every statement has been answered
	if _, err := conn.Exec(ctx, "CREATE TABLE bench.job (n INT PRIMARY KEY, provider_task_id TEXT NOT NULL)"); err != nil {
		return err
	}
	if _, err := conn.CopyFrom(ctx, pgx.Identifier{"bench", "job"}, []string{"n", "provider_task_id"}, pgx.CopyFromSlice(len(jobs), func(n int) ([]any, error) {
		return []any{n, jobs[n]}, nil
	})); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, pollSeedSQL, p.vendor.process.URL()+"/v1"); err != nil {
		return fmt.Errorf("jobs of the tasks: %w", err)
	}
	_, err = conn.Exec(ctx, "UPDATE task_attempts SET next_poll_at = now() + interval '6 hours' WHERE provider_task_id = $1", copiedJob)
	return err
}

// running has the vendor say that the copied task's job runs.
func (s *seeder) running(ctx context.Context) error {
	now := time.Now()
	results, err := s.store.Apply(ctx, []ports.Item{{Ref: ports.Ref{TaskID: s.task.ID}, Input: domain.Input{
		Kind: domain.InputObservation, Policy: s.policy,
		Observation: &domain.Observation{
			Provider: vendor, Source: domain.SourcePoll, Trust: domain.TrustAuthentic, ProviderTaskID: s.job,
			Status: domain.ObservedRunning, ProviderOccurredAt: &now, ReceivedAt: now,
		},
	}}})
	if err == nil {
		err = results[0].Err
	}
	if err != nil {
		return fmt.Errorf("the job runs: %w", err)
	}
	if v := results[0].Decision.Verdict; v.Kind != domain.VerdictApplied {
		return fmt.Errorf("the job runs: %s(%s)", v.Kind, v.Reason)
	}
	return nil
}

// When the tasks are due: spread as after a long time of polling, each at a moment
// of its own, or all at once.
const (
	dueSpread = "now() + interval '2 seconds' + random() * interval '15 seconds'" // the workers have to start
	dueAtOnce = "now()"
)

// timers sets when the tasks are due, and ends every lease: no worker runs.
func (p *poll) timers(ctx context.Context, due string) error {
	return p.cluster.exec(ctx, oursDatabase, "VACUUM ANALYZE task_attempts", "CHECKPOINT", "UPDATE task_attempts a SET next_poll_at = "+due+`, poll_count = 4, poll_lease = NULL, poll_lease_until = NULL
		FROM bench.task b WHERE a.id = b.attempt_id AND a.next_poll_at IS NOT NULL`)
}
