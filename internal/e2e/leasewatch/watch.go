package leasewatch

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/domain"
)

//go:embed watch.sql
var watchSQL string

// Watch is a trigger in a database. It costs an insert per lease.
type Watch struct{ conn *pgx.Conn }

// Install makes the trigger in a migrated database, switched on. The connection
// stays the caller's and is used by all methods, which must not run at once.
func Install(ctx context.Context, conn *pgx.Conn) (*Watch, error) {
	if _, err := conn.Exec(ctx, watchSQL); err != nil {
		return nil, fmt.Errorf("watch leases: %w", err)
	}
	return &Watch{conn: conn}, nil
}

// Begin forgets what was written down and switches the trigger on or off. Call it
// while nobody leases anything.
func (w *Watch) Begin(ctx context.Context, on bool) error {
	word := "DISABLE"
	if on {
		word = "ENABLE"
	}
	if _, err := w.conn.Exec(ctx, "TRUNCATE leasewatch.claim; ALTER TABLE task_attempts "+word+" TRIGGER leasewatch_claim"); err != nil {
		return fmt.Errorf("watch leases: %w", err)
	}
	return nil
}

// Claim is one lease of an attempt.
type Claim struct {
	// At is when it was taken and Until when it ends unless it is given back.
	At, Until time.Time
	// Due is the timer that it was taken for.
	Due time.Time
	// Left is the end of the lease that the attempt had before, zero when that was
	// given back.
	Left time.Time

	asked int
	first time.Time
}

// stolen tells whether somebody else still held the attempt.
func (c *Claim) stolen() bool { return c.Left.After(c.At) }

// takenOver tells whether the one who held it before never gave it back.
func (c *Claim) takenOver() bool { return !c.Left.IsZero() && !c.stolen() }

// Log is what was written down.
type Log struct {
	claims map[domain.ID][]*Claim // in order of time
	jobs   map[string]domain.ID   // attempts by the vendor's id
}

// Of returns the claims of an attempt in the order of time.
func (l *Log) Of(attempt domain.ID) []*Claim { return l.claims[attempt] }

// Read returns what was written down since Begin.
func (w *Watch) Read(ctx context.Context) (*Log, error) {
	l := &Log{claims: map[domain.ID][]*Claim{}, jobs: map[string]domain.ID{}}
	var id domain.ID
	var job string
	var c Claim
	rows, err := w.conn.Query(ctx, "SELECT provider_task_id, id FROM task_attempts WHERE provider_task_id IS NOT NULL")
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{&job, (*[16]byte)(&id)}, func() error { l.jobs[job] = id; return nil })
	}
	if err != nil {
		return nil, fmt.Errorf("read the jobs of attempts: %w", err)
	}
	var left *time.Time
	rows, err = w.conn.Query(ctx, "SELECT attempt_id, at, until, due, left_until FROM leasewatch.claim ORDER BY at")
	if err == nil {
		_, err = pgx.ForEachRow(rows, []any{(*[16]byte)(&id), &c.At, &c.Until, &c.Due, &left}, func() error {
			one := c
			if left != nil {
				one.Left = *left
			}
			l.claims[id] = append(l.claims[id], &one)
			return nil
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read leases: %w", err)
	}
	return l, nil
}
