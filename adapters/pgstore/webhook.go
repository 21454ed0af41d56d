package pgstore

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/ports"
)

// webhookKept is how long the counts of webhooks are kept; whoever reads them
// looks an hour back.
const webhookKept = 2 * time.Hour

// AddWebhookCounts implements ports.WebhookHealth.
func (s *Store) AddWebhookCounts(ctx context.Context, counts []ports.WebhookCount) error {
	if len(counts) == 0 {
		return nil
	}
	var add dbgen.WebhookCountAddParams
	var heard dbgen.WebhookCallbackSeenParams
	for _, c := range counts {
		add.Providers, add.AccountIds, add.Slices = append(add.Providers, c.Provider), append(add.AccountIds, c.AccountID), append(add.Slices, at(c.Slice))
		add.ByWebhooks, add.ByPolls = append(add.ByWebhooks, c.ByWebhook), append(add.ByPolls, c.ByPoll)
		add.Lates, add.Hinteds = append(add.Lates, c.Late), append(add.Hinteds, c.Hinted)
		if c.Heard() {
			heard.Providers, heard.AccountIds = append(heard.Providers, c.Provider), append(heard.AccountIds, c.AccountID)
			heard.Seen = append(heard.Seen, at(c.Slice.Add(ports.WebhookSlice)))
		}
	}
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		if err := q.WebhookCountAdd(ctx, &add); err != nil {
			return err
		}
		if len(heard.Providers) == 0 {
			return nil
		}
		return q.WebhookCallbackSeen(ctx, &heard)
	})
	return outward("add webhook counts", err)
}

// WebhookCounts implements ports.WebhookHealth.
func (s *Store) WebhookCounts(ctx context.Context, since time.Time) ([]ports.WebhookCount, error) {
	rows, err := s.queries().WebhookCounts(ctx, at(since))
	if err != nil {
		return nil, outward("webhook counts", err)
	}
	counts := make([]ports.WebhookCount, len(rows))
	for i, r := range rows {
		counts[i] = ports.WebhookCount{
			AccountRef: ports.AccountRef{Provider: r.Provider, AccountID: r.AccountID}, Slice: timeOf(r.Slice),
			ByWebhook: r.ByWebhook, ByPoll: r.ByPoll, Late: r.Late, Hinted: r.Hinted,
		}
	}
	return counts, nil
}

// SetWebhookSilence implements ports.WebhookHealth.
func (s *Store) SetWebhookSilence(ctx context.Context, account ports.AccountRef, since time.Time) (bool, error) {
	var n int64
	var err error
	if since.IsZero() {
		n, err = s.queries().WebhookSilenceEnd(ctx, account.Provider, account.AccountID)
	} else {
		n, err = s.queries().WebhookSilenceBegin(ctx, &dbgen.WebhookSilenceBeginParams{
			Provider: account.Provider, AccountID: account.AccountID, Since: at(since),
		})
	}
	return n > 0, outward("webhook silence", err)
}

// WebhookSilences implements ports.WebhookHealth.
func (s *Store) WebhookSilences(ctx context.Context) (map[ports.AccountRef]time.Time, error) {
	rows, err := s.queries().WebhookSilences(ctx)
	if err != nil {
		return nil, outward("webhook silences", err)
	}
	silent := make(map[ports.AccountRef]time.Time, len(rows))
	for _, r := range rows {
		silent[ports.AccountRef{Provider: r.Provider, AccountID: r.AccountID}] = r.WebhookSilentSince.UTC()
	}
	return silent, nil
}
