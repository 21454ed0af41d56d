package memory

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// webhookKey names the counts of one account in one slice of time.
type webhookKey struct {
	ports.AccountRef
	slice int64
}

// AddWebhookCounts implements ports.WebhookHealth.
func (s *Store) AddWebhookCounts(ctx context.Context, counts []ports.WebhookCount) error {
	return s.write(ctx, func(x *tx) error {
		for _, c := range counts {
			if err := checkText(c.Provider, c.AccountID); err != nil {
				return err
			}
			key := webhookKey{c.AccountRef, c.Slice.UnixNano()}
			if have, ok := x.webhooks[key]; ok {
				c.ByWebhook, c.ByPoll = c.ByWebhook+have.ByWebhook, c.ByPoll+have.ByPoll
				c.Late, c.Hinted = c.Late+have.Late, c.Hinted+have.Hinted
			}
			put(x, x.webhooks, key, c)
		}
		return nil
	})
}

// WebhookCounts implements ports.WebhookHealth.
func (s *Store) WebhookCounts(ctx context.Context, since time.Time) ([]ports.WebhookCount, error) {
	var counts []ports.WebhookCount
	err := s.read(ctx, func() error {
		for _, c := range s.webhooks {
			if !c.Slice.Before(since) {
				counts = append(counts, c)
			}
		}
		return nil
	})
	slices.SortFunc(counts, func(a, b ports.WebhookCount) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.AccountID, b.AccountID), b.Slice.Compare(a.Slice))
	})
	return counts, err
}

// SetWebhookSilence implements ports.WebhookHealth.
func (s *Store) SetWebhookSilence(ctx context.Context, account ports.AccountRef, since time.Time) (changed bool, err error) {
	err = s.write(ctx, func(x *tx) error {
		_, silent := x.silences[account]
		if changed = silent == since.IsZero(); !changed {
			return nil
		}
		if since.IsZero() {
			remove(x, x.silences, account)
			return nil
		}
		put(x, x.silences, account, since)
		return checkText(account.Provider, account.AccountID)
	})
	return changed && err == nil, err
}

// WebhookSilences implements ports.WebhookHealth.
func (s *Store) WebhookSilences(ctx context.Context) (silent map[ports.AccountRef]time.Time, err error) {
	err = s.read(ctx, func() error {
		silent = maps.Clone(s.silences)
		return nil
	})
	return silent, err
}
