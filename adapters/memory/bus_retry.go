package memory

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// retry delivers what the group is owed and due, and returns when to look
// again. A batch that fails is tried project by project, then event by event:
// one event that no handler can bear holds up nothing but itself.
func (g *busGroup) retry() time.Duration {
	if g.first() == nil {
		return g.bus.cfg.PollInterval
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	rows, err := g.bus.cfg.Retries.DueRetries(ctx, g.name, g.bus.cfg.Now(), g.bus.cfg.RetryBatch)
	cancel()
	if err != nil {
		g.bus.cfg.Logger.Error("owed events cannot be read", "group", g.name, "error", err)
		return g.bus.cfg.PollInterval
	}
	for _, project := range byProject(sortedRows(rows)) {
		if g.closing() {
			return 0
		}
		if err := g.retryProject(project); err != nil {
			g.bus.cfg.Logger.Error("a retry cannot be recorded, its events will be repeated", "group", g.name, "error", err)
			return g.bus.cfg.PollInterval
		}
	}
	if len(rows) >= g.bus.cfg.RetryBatch {
		return 0
	}
	return g.bus.cfg.PollInterval
}

func (g *busGroup) closing() bool {
	select {
	case <-g.bus.done:
		return true
	default:
		return false
	}
}

// retryProject tries the owed rows of one project and records the outcome.
func (g *busGroup) retryProject(rows []ports.OutboxRow) error {
	err := g.call(rows)
	if err == errNoMember {
		return nil
	}
	delivered, failed, tries := rowIDs(rows), []int64(nil), 0
	if err != nil {
		delivered, failed, tries = g.retryEach(rows)
	}
	for _, id := range delivered {
		delete(g.tries, id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), storeTimeout)
	defer cancel()
	nextAt := g.bus.cfg.Now().Add(g.bus.cfg.backoff(tries))
	if err := g.bus.cfg.Retries.SettleRetries(ctx, g.name, delivered, failed, nextAt); err != nil {
		return fmt.Errorf("settle %d delivered and %d failed: %w", len(delivered), len(failed), err)
	}
	return nil
}

// retryEach tries row by row, in order. tries is the highest count of a failed
// row. The counts begin anew with the process, and so does the patience.
func (g *busGroup) retryEach(rows []ports.OutboxRow) (delivered, failed []int64, tries int) {
	for _, row := range rows {
		err := g.call([]ports.OutboxRow{row})
		if err == nil {
			delivered = append(delivered, row.ID)
			continue
		}
		failed = append(failed, row.ID)
		g.tries[row.ID]++
		tries = max(tries, g.tries[row.ID])
		g.bus.cfg.Logger.Warn("an owed event failed again", "group", g.name, "event_id", row.Event.EventID, "retry", g.tries[row.ID], "error", err)
	}
	return delivered, failed, tries
}

// byProject cuts sorted rows at each change of project.
func byProject(rows []ports.OutboxRow) [][]ports.OutboxRow {
	var cut [][]ports.OutboxRow
	for len(rows) > 0 {
		n := 1
		for n < len(rows) && rows[n].Event.ProjectID == rows[0].Event.ProjectID {
			n++
		}
		cut, rows = append(cut, rows[:n:n]), rows[n:]
	}
	return cut
}

// owedRows is the BusRetries of a bus that has no store: it remembers the rows
// that are being published, since only their ids are owed.
type owedRows struct {
	mu     sync.Mutex
	flying map[int64]flyingRow
	owed   map[string]map[int64]owedRow
}

// flyingRow is a row that Publish holds, possibly several times at once.
type flyingRow struct {
	row  ports.OutboxRow
	held int
}

type owedRow struct {
	row    ports.OutboxRow
	nextAt time.Time
}

var _ ports.BusRetries = (*owedRows)(nil)

func newOwedRows() *owedRows {
	return &owedRows{flying: map[int64]flyingRow{}, owed: map[string]map[int64]owedRow{}}
}

func (o *owedRows) remember(rows []ports.OutboxRow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range rows {
		o.flying[r.ID] = flyingRow{row: r, held: o.flying[r.ID].held + 1}
	}
}

func (o *owedRows) forget(rows []ports.OutboxRow) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, r := range rows {
		if f := o.flying[r.ID]; f.held > 1 {
			o.flying[r.ID] = flyingRow{row: f.row, held: f.held - 1}
		} else {
			delete(o.flying, r.ID)
		}
	}
}

// AddRetries implements [ports.BusRetries].
func (o *owedRows) AddRetries(_ context.Context, group string, outboxIDs []int64, nextAt time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range outboxIDs {
		f, ok := o.flying[id]
		if !ok {
			// The publisher gave up and was told so: it sends the row again.
			return fmt.Errorf("outbox row %d is not being published", id)
		}
		if o.owed[group] == nil {
			o.owed[group] = map[int64]owedRow{}
		}
		o.owed[group][id] = owedRow{row: f.row, nextAt: nextAt}
	}
	return nil
}

// DueRetries implements [ports.BusRetries].
func (o *owedRows) DueRetries(_ context.Context, group string, now time.Time, limit int) ([]ports.OutboxRow, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	var due []ports.OutboxRow
	for _, w := range o.owed[group] {
		if !w.nextAt.After(now) {
			due = append(due, w.row)
		}
	}
	due = sortedRows(due)
	return due[:min(limit, len(due))], nil
}

// SettleRetries implements [ports.BusRetries].
func (o *owedRows) SettleRetries(_ context.Context, group string, delivered, failed []int64, nextAt time.Time) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, id := range delivered {
		delete(o.owed[group], id)
	}
	for _, id := range failed {
		if w, ok := o.owed[group][id]; ok {
			w.nextAt = nextAt
			o.owed[group][id] = w
		}
	}
	return nil
}
