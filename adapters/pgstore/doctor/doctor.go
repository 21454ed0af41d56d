// Package doctor holds a database against the invariants of the system. Every
// check is one statement that names the rows that break it; what a database
// cannot show is said to be tested elsewhere.
package doctor

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jackc/pgx/v5"
)

//go:embed checks/*.sql
var checks embed.FS

// MaxRows is how many rows a check names; more are only counted as "and more".
const MaxRows = 20

// Check is one invariant and what the database says about it.
type Check struct {
	// ID is the invariant's name, I1 to I16.
	ID string `json:"id"`
	// Promise is the invariant in a sentence.
	Promise string `json:"promise"`
	// Elsewhere says which test shows what a database cannot; empty when SQL does.
	Elsewhere string `json:"elsewhere,omitempty"`
	// Violations name rows that break it; at most MaxRows.
	Violations []string `json:"violations"`
}

// invariants in their order. A check without a file of its id is tested
// elsewhere.
var invariants = []Check{
	{ID: "I1", Promise: "a delivery that was acknowledged is stored and on its way"},
	{ID: "I2", Promise: "one function decides every transition", Elsewhere: "the matrix and property tests of the domain, and the import rules"},
	{ID: "I3", Promise: "a terminal is left only by a command"},
	{ID: "I4", Promise: "each applied change raises task_version by exactly 1"},
	{ID: "I5", Promise: "event_id is gap-free per project and in order of time"},
	{ID: "I6", Promise: "what is published has been committed"},
	{ID: "I7", Promise: "a snapshot is what its last event says"},
	{ID: "I8", Promise: "a vendor's create is called once per attempt"},
	{ID: "I9", Promise: "each closed attempt is settled or refunded, once, and the balances add up"},
	{ID: "I10", Promise: "follow-up work exists once"},
	{ID: "I11", Promise: "an old attempt does not change its task"},
	{ID: "I12", Promise: "a failed query does not fail a task"},
	{ID: "I13", Promise: "memory per connection is bounded", Elsewhere: "the slow reader tests of the streams"},
	{ID: "I14", Promise: "no event crosses a tenant or a project"},
	{ID: "I15", Promise: "no vendor text, address or secret is public"},
	{ID: "I16", Promise: "every attempt that is open has a timer or an open case"},
}

// Examine runs every check in one read-only snapshot, so that a system at work
// shows no contradictions that are only a matter of time.
func Examine(ctx context.Context, conn *pgx.Conn) ([]Check, error) {
	tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return nil, fmt.Errorf("doctor: %w", err)
	}
	defer tx.Rollback(context.WithoutCancel(ctx)) //nolint:errcheck // read-only: nothing can be lost
	all := make([]Check, 0, len(invariants))
	for _, c := range invariants {
		c.Violations = []string{}
		if c.Elsewhere == "" {
			if c.Violations, err = examine(ctx, tx, c.ID); err != nil {
				return nil, fmt.Errorf("doctor: %s: %w", c.ID, err)
			}
		}
		all = append(all, c)
	}
	return all, nil
}

// Violations counts the named rows of all checks.
func Violations(all []Check) int {
	n := 0
	for _, c := range all {
		n += len(c.Violations)
	}
	return n
}

func examine(ctx context.Context, tx pgx.Tx, id string) ([]string, error) {
	sql, err := fs.ReadFile(checks, "checks/"+strings.ToLower(id)+".sql")
	if err != nil {
		return nil, err
	}
	// MATERIALIZED plans the check for all of its rows: a healthy database has none,
	// and a plan that is good at finding the first few takes minutes to find none.
	rows, err := tx.Query(ctx, fmt.Sprintf("WITH found AS MATERIALIZED (%s) SELECT violation FROM found LIMIT %d", strings.TrimRight(string(sql), "; \n"), MaxRows+1))
	if err != nil {
		return nil, err
	}
	found, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return nil, err
	}
	if len(found) > MaxRows {
		found = append(found[:MaxRows], "and more")
	}
	if found == nil {
		found = []string{}
	}
	return found, nil
}
