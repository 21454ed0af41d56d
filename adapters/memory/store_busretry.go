package memory

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// retryKey is an event that a group of the bus is owed.
type retryKey struct {
	group string
	id    int64
}

// AddRetries implements ports.BusRetries.
func (s *Store) AddRetries(ctx context.Context, group string, outboxIDs []int64, nextAt time.Time) error {
	return s.write(ctx, func(x *tx) error {
		for _, id := range outboxIDs {
			key := retryKey{group, id}
			if _, owed := s.retries[key]; !owed {
				put(x, s.retries, key, nextAt)
			}
		}
		return nil
	})
}

// DueRetries implements ports.BusRetries.
func (s *Store) DueRetries(ctx context.Context, group string, now time.Time, limit int) ([]ports.OutboxRow, error) {
	var rows []ports.OutboxRow
	err := s.read(ctx, func() error {
		for key, at := range s.retries {
			if key.group != group || at.After(now) {
				continue
			}
			if row, ok := s.outbox[key.id]; ok {
				rows = append(rows, row)
			} else if row, ok := s.sent[key.id]; ok {
				rows = append(rows, row.OutboxRow)
			}
		}
		return nil
	})
	sortOutbox(rows)
	return rows[:min(max(limit, 0), len(rows))], err
}

// SettleRetries implements ports.BusRetries.
func (s *Store) SettleRetries(ctx context.Context, group string, delivered, failed []int64, nextAt time.Time) error {
	return s.write(ctx, func(x *tx) error {
		for _, id := range delivered {
			remove(x, s.retries, retryKey{group, id})
		}
		for _, id := range failed {
			if _, owed := s.retries[retryKey{group, id}]; owed {
				put(x, s.retries, retryKey{group, id}, nextAt)
			}
		}
		return nil
	})
}
