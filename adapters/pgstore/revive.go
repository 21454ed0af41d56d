package pgstore

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/ports"
)

// stuckWindow is how far back the sweep looks for rows without a queue entry.
const stuckWindow = time.Hour

// Revive implements ports.Inbox.
func (s *Store) Revive(ctx context.Context, params ports.ReviveParams) (ports.ReviveReport, error) {
	var report ports.ReviveReport
	limit := int32(max(params.Limit, 0))
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		dead, err := q.InboxBury(ctx, &dbgen.InboxBuryParams{
			Now: at(params.Now), MaxErrors: int32(params.MaxErrors), OrphansBefore: at(params.Now.Add(-params.OrphanFor)), MaxRows: limit,
		})
		if err != nil {
			return err
		}
		revived, err := q.InboxRevive(ctx, at(params.Now), limit)
		if err != nil {
			return err
		}
		before := params.Now.Add(-params.StuckAfter)
		stuck, err := q.InboxUnstick(ctx, &dbgen.InboxUnstickParams{Since: at(before.Add(-stuckWindow)), Before: at(before), MaxRows: limit})
		report = ports.ReviveReport{Revived: int(revived + stuck), Dead: int(dead)}
		return err
	})
	if err != nil {
		return ports.ReviveReport{}, outward("revive", err)
	}
	return report, outward("revive", s.reap(ctx))
}
