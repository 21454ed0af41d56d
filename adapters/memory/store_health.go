package memory

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// AccountHealth implements ports.Health.
func (s *Store) AccountHealth(ctx context.Context) ([]ports.AccountHealth, error) {
	var rows []ports.AccountHealth
	err := s.read(ctx, func() error {
		for ref, row := range s.health {
			row.WebhookSilentSince = nil
			if since, silent := s.silences[ref]; silent {
				row.WebhookSilentSince = &since
			}
			rows = append(rows, row)
		}
		for ref, since := range s.silences {
			if _, known := s.health[ref]; !known {
				rows = append(rows, ports.AccountHealth{AccountRef: ref, WebhookSilentSince: &since})
			}
		}
		return nil
	})
	slices.SortFunc(rows, func(a, b ports.AccountHealth) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.AccountID, b.AccountID))
	})
	return rows, err
}

// SaveAccountHealth implements ports.Health. The audit has no reader here and is
// dropped.
func (s *Store) SaveAccountHealth(ctx context.Context, row ports.AccountHealth, _ *ports.Audit) (saved bool, err error) {
	err = s.write(ctx, func(x *tx) error {
		have := s.health[row.AccountRef]
		if saved = have.Version == row.Version; !saved {
			return nil
		}
		row.Breaker = row.State()
		row.Version, row.UpdatedAt, row.LastCallbackAt = have.Version+1, x.at, have.LastCallbackAt
		put(x, s.health, row.AccountRef, row)
		return checkText(row.Provider, row.AccountID, row.Sample)
	})
	return saved && err == nil, err
}

// AttendCalls implements ports.Health.
func (s *Store) AttendCalls(ctx context.Context, process domain.ID, now, since time.Time) (n int, err error) {
	err = s.write(ctx, func(x *tx) error {
		put(x, s.callers, process, now)
		for id, seen := range s.callers {
			if seen.Before(since) {
				remove(x, s.callers, id)
			}
		}
		n = len(s.callers)
		return nil
	})
	return n, err
}
