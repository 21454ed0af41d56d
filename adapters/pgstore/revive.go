package pgstore

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/ports"
)

// stuckWindow is how far back the first sweep of a process looks for rows without
// a queue entry; later ones look at what has come of age since the one before.
const stuckWindow = 10 * time.Minute

// Revive implements ports.Inbox.
func (s *Store) Revive(ctx context.Context, params ports.ReviveParams) (ports.ReviveReport, error) {
	var report ports.ReviveReport
	limit := int32(max(params.Limit, 0))
	before := params.Now.Add(-params.StuckAfter)
	since := before.Add(-stuckWindow)
	if last := time.Unix(0, s.unstuck.Load()); last.After(since) {
		since = last
	}
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
		stuck, err := q.InboxUnstick(ctx, &dbgen.InboxUnstickParams{Since: at(since), Before: at(before), MaxRows: limit})
		report = ports.ReviveReport{Revived: int(revived + stuck), Dead: int(dead)}
		return err
	})
	if err != nil {
		return ports.ReviveReport{}, outward("revive", err)
	}
	s.unstuck.Store(before.UnixNano())
	return report, outward("revive", s.reap(ctx))
}
