package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore/doctor"
)

// observer looks at our database from outside: what the product says of itself
// counts for nothing here.
type observer struct{ conn *pgx.Conn }

func newObserver(ctx context.Context, url string) (*observer, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", oursDatabase, err)
	}
	return &observer{conn}, nil
}

func (o *observer) close() { _ = o.conn.Close(context.Background()) } // nothing is written

// converged are the events of a phase.
type converged struct {
	count       int
	first, last time.Time
}

// clock is the server's.
func (o *observer) clock(ctx context.Context) (now time.Time, err error) {
	err = o.conn.QueryRow(ctx, "SELECT clock_timestamp()").Scan(&now)
	return now, err
}

// since counts events that were committed at or after the moment.
func (o *observer) since(ctx context.Context, at time.Time) (converged, error) {
	var c converged
	err := o.conn.QueryRow(ctx, "SELECT count(*), coalesce(min(created_at), now()), coalesce(max(created_at), now()) FROM task_events WHERE created_at >= $1", at).
		Scan(&c.count, &c.first, &c.last)
	if err != nil {
		return c, fmt.Errorf("count events: %w", err)
	}
	return c, nil
}

// awaitDrained returns when no delivery waits any more. Both questions begin at the
// newest row: from the oldest end they would walk over everything that was taken
// since the last vacuum, and that would be counted as the product's work.
func (o *observer) awaitDrained(ctx context.Context) error {
	return o.await(ctx, "deliveries wait", "SELECT EXISTS (SELECT FROM (SELECT FROM inbox_queue ORDER BY inbox_id DESC LIMIT 1) newest)")
}

// awaitPublished returns when the outbox is empty.
func (o *observer) awaitPublished(ctx context.Context) error {
	return o.await(ctx, "events wait in the outbox", "SELECT EXISTS (SELECT FROM (SELECT FROM outbox_queue ORDER BY outbox_id DESC LIMIT 1) newest)")
}

// patience bounds a wait for the product.
const patience = 3 * time.Minute

func (o *observer) await(ctx context.Context, what, query string) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for {
		var waiting bool
		if err := o.conn.QueryRow(ctx, query).Scan(&waiting); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if !waiting {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return invalid("%s after %s", what, patience)
		}
	}
}

// missing counts the message ids that the inbox does not hold.
func (o *observer) missing(ctx context.Context, ids []string) (int, error) {
	rows, err := o.conn.Query(ctx, "SELECT provider_event_id FROM provider_callback_inbox")
	if err != nil {
		return 0, fmt.Errorf("look for lost deliveries: %w", err)
	}
	stored := map[string]bool{}
	var id string
	if _, err := pgx.ForEachRow(rows, []any{&id}, func() error { stored[id] = true; return nil }); err != nil {
		return 0, fmt.Errorf("look for lost deliveries: %w", err)
	}
	missing := 0
	for _, id := range ids {
		if !stored[id] {
			missing++
		}
	}
	return missing, nil
}

// violations is doctor's count, with the first few of them. The tables have just
// grown manyfold, so the planner is told first.
func (o *observer) violations(ctx context.Context) (n int, named []string, err error) {
	if _, err := o.conn.Exec(ctx, "ANALYZE"); err != nil {
		return 0, nil, fmt.Errorf("analyze: %w", err)
	}
	checks, err := doctor.Examine(ctx, o.conn)
	if err != nil {
		return 0, nil, err
	}
	for _, c := range checks {
		for _, v := range c.Violations {
			named = append(named, c.ID+": "+v)
		}
	}
	return doctor.Violations(checks), named[:min(len(named), 10)], nil
}
