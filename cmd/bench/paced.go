package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
)

// steadyFigures: all roles at once at a rate that should leave room.
type steadyFigures struct {
	Rate         figure `json:"rate_per_s"`
	Seconds      figure `json:"seconds"`
	Acknowledged figure `json:"acknowledged_per_s"`
	Refused      int    `json:"refused"`
	Converged    figure `json:"converged_per_s"`
	// Backlog is how many deliveries waited when the load ended.
	Backlog int `json:"backlog"`
	// Answer is from the moment due to the 2xx; Committed from the 2xx to the commit
	// of the transition, which may have come first: then it counts as 0.
	Answer    quantiles          `json:"answer_ms"`
	Committed quantiles          `json:"ack_to_commit_ms"`
	CPU       map[string]cpuTime `json:"cpu_s"`
}

// String is a sentence.
func (s steadyFigures) String() string {
	return fmt.Sprintf("%v/s for %v s: %v/s acknowledged, %v/s converged, backlog %d at the end, %d refused; answer %v ms, 2xx to committed transition %v ms",
		s.Rate, s.Seconds, s.Acknowledged, s.Converged, s.Backlog, s.Refused, s.Answer, s.Committed)
}

// steady paces deliveries through all roles, which have been at it for a while.
func (b *bed) steady(ctx context.Context, rate float64, d time.Duration) (out steadyFigures, err error) {
	d = min(d, time.Duration(float64(len(b.people.tasks))/rate*float64(time.Second)))
	warm, err := b.volley(ctx)
	if err != nil {
		return out, err
	}
	v, err := b.volley(ctx)
	if err != nil {
		return out, errors.Join(err, warm.drop())
	}
	if err := b.startAll(ctx); err != nil {
		return out, errors.Join(err, warm.drop(), v.drop())
	}
	began, err := b.warmSteadily(ctx, warm, rate)
	if err != nil {
		return out, errors.Join(err, v.drop())
	}
	cpu := startCPU(b.system.parts(b.cluster.PID()))
	f, err := v.fire(ctx, order{Conns: b.conns, For: d, Rate: rate})
	if err != nil {
		return out, err
	}
	b.note(f)
	backlog, err := b.observer.waiting(ctx)
	if err != nil {
		return out, err
	}
	if err := errors.Join(b.observer.awaitDrained(ctx), b.observer.awaitPublished(ctx)); err != nil {
		return out, err
	}
	used := cpu.stop()
	used["load"] = figure(f.CPU)
	done, err := b.observer.since(ctx, began)
	if err != nil {
		return out, err
	}
	delays, err := b.observer.committedAfter(ctx, f)
	if err != nil {
		return out, err
	}
	n := f.count(acknowledged)
	out = steadyFigures{
		Rate: figure(rate), Seconds: figure(f.Lasted.Seconds()), Acknowledged: perSecond(n, f.Lasted), Refused: len(f.Status) - n,
		Converged: perSecond(done.count, done.last.Sub(began)), Backlog: backlog,
		Answer: quantilesOf(f.times(acknowledged, f.Waited)), Committed: quantilesOf(delays), CPU: used,
	}
	return out, errors.Join(b.stopAll(), b.allApplied(ctx))
}

// steadyWarmUp: processes that have just started fill their pools and plans, and after
// a checkpoint the first change of each page is written whole.
const steadyWarmUp = 5 * time.Second

// warmSteadily runs the load until nothing is new to the processes, and returns the
// server's time when all of it is digested.
func (b *bed) warmSteadily(ctx context.Context, v *volley, rate float64) (time.Time, error) {
	f, err := v.fire(ctx, order{Conns: b.conns, For: steadyWarmUp, Rate: rate})
	if err != nil {
		return time.Time{}, err
	}
	b.note(f)
	if err := b.observer.awaitDrained(ctx); err != nil {
		return time.Time{}, err
	}
	return b.observer.clock(ctx)
}

// waiting is how many deliveries wait for the processing role.
func (o *observer) waiting(ctx context.Context) (n int, err error) {
	if err := o.conn.QueryRow(ctx, "SELECT count(*) FROM inbox_queue").Scan(&n); err != nil {
		return 0, fmt.Errorf("count what waits: %w", err)
	}
	return n, nil
}

// committedAfter joins what the load saw with what the database knows: for each
// delivery that got a 2xx, the time from its answer (the load's clock) to the commit
// of its transition (the same machine's clock). The commit is that of the transaction
// that wrote the delivery's verdict, which is the one that wrote the state and the
// event; the server notes it as the last thing before it writes the commit record
// (track_commit_timestamp). In ms; what was committed before the answer counts as 0.
func (o *observer) committedAfter(ctx context.Context, f *fired) ([]figure, error) {
	answers := map[string]time.Time{}
	f.acknowledged(func(id string, _ int, _, answered time.Time) { answers[id] = answered })
	ids := make([]string, 0, len(answers))
	for id := range answers {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	rows, err := o.conn.Query(ctx, `SELECT i.provider_event_id, pg_xact_commit_timestamp(v.xmin)
		FROM unnest($1::text[]) AS sent (id) JOIN provider_callback_inbox i ON i.provider_event_id = sent.id JOIN inbox_outcomes v ON v.inbox_id = i.id`, ids)
	if err != nil {
		return nil, fmt.Errorf("look for commits: %w", err)
	}
	var delays []figure
	var id string
	var at time.Time
	if _, err := pgx.ForEachRow(rows, []any{&id, &at}, func() error {
		delays = append(delays, max(milliseconds(at.Sub(answers[id])), 0))
		return nil
	}); err != nil {
		return nil, fmt.Errorf("look for commits: %w", err)
	}
	if len(delays) != len(answers) {
		return nil, invalid("%d of %d acknowledged deliveries have a committed verdict", len(delays), len(answers))
	}
	return delays, nil
}
