package memory

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// retryKey is an event that a group of the bus is owed.
type retryKey struct {
	group string
	id    int64
}

// retry is when the event is due, and how often it failed since it is owed.
type retry struct {
	at    time.Time
	tries int
}

// AddRetries implements ports.BusRetries.
func (s *Store) AddRetries(ctx context.Context, group string, outboxIDs []int64, nextAt time.Time) error {
	return s.write(ctx, func(x *tx) error {
		for _, id := range outboxIDs {
			key := retryKey{group, id}
			if _, owed := s.retries[key]; !owed {
				put(x, s.retries, key, retry{at: nextAt})
			}
		}
		return nil
	})
}

// DueRetries implements ports.BusRetries. Tries of a row counts its failures
// within the group.
func (s *Store) DueRetries(ctx context.Context, group string, now time.Time, limit int) ([]ports.OutboxRow, error) {
	var due []ports.OutboxRow
	err := s.read(ctx, func() error {
		waits := map[domain.ProjectID]bool{}
		for _, row := range s.owed(group) {
			project := row.Event.ProjectID
			waits[project] = waits[project] || s.retries[retryKey{group, row.ID}].at.After(now)
			if !waits[project] && len(due) < limit {
				due = append(due, row)
			}
		}
		return nil
	})
	return due, err
}

// owed lists all that a group is owed, due or not, by project and event.
func (s *Store) owed(group string) []ports.OutboxRow {
	var rows []ports.OutboxRow
	for key, r := range s.retries {
		if key.group != group {
			continue
		}
		row, ok := s.outbox[key.id]
		if !ok {
			row = s.sent[key.id]
		}
		row.Tries = r.tries
		rows = append(rows, row)
	}
	sortOutbox(rows)
	return rows
}

// SettleRetries implements ports.BusRetries.
func (s *Store) SettleRetries(ctx context.Context, group string, delivered, failed []int64, nextAt time.Time) error {
	return s.write(ctx, func(x *tx) error {
		for _, id := range delivered {
			remove(x, s.retries, retryKey{group, id})
		}
		for _, id := range failed {
			key := retryKey{group, id}
			if r, owed := s.retries[key]; owed {
				put(x, s.retries, key, retry{at: nextAt, tries: r.tries + 1})
			}
		}
		return nil
	})
}
