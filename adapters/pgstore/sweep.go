package pgstore

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/ports"
)

// CleanExpired implements ports.Desk. The partitions come first: without them no
// event can be written. Each kind is a statement of its own that passes over rows
// which another node has in hand.
func (s *Store) CleanExpired(ctx context.Context, now time.Time, limit int) (map[string]int, error) {
	q, n := s.queries(), int32(max(limit, 0))
	removed := map[string]int{}
	var errs []error
	note := func(kind string, rows int64, err error) {
		if errs = append(errs, err); rows > 0 {
			removed[kind] = int(rows)
		}
	}
	_, made := q.PartitionsMake(ctx, PartitionDays)
	dropped, failed := q.PartitionsDrop(ctx, int32(s.cfg.EventRetention/day))
	note("partitions", int64(dropped), errors.Join(made, failed))
	before := func(kept time.Duration) *time.Time { t := now.Add(-kept); return &t }
	for kind, clean := range map[string]func() (int64, error){
		"idempotency_keys": func() (int64, error) { return q.IdempotencyClean(ctx, at(now), n) },
		"stream_tickets":   func() (int64, error) { return q.StreamTicketClean(ctx, at(now), n) },
		"revocations":      func() (int64, error) { return q.RevocationClean(ctx, &now, n) },
		"webhook_counts":   func() (int64, error) { return q.WebhookHealthClean(ctx, at(now.Add(-webhookKept)), n) },
		"payloads":         func() (int64, error) { return s.cleanPayloads(ctx, now, n) },
		"deliveries":       func() (int64, error) { return q.InboxClean(ctx, n, at(now.Add(-s.cfg.InboxRetention))) },
		"dead_letters":     func() (int64, error) { return q.DeadLetterClean(ctx, before(s.cfg.DeadRetention), n) },
		"conflicts":        func() (int64, error) { return q.ConflictClean(ctx, before(s.cfg.DeskRetention), n) },
		"cases":            func() (int64, error) { return q.CaseClean(ctx, before(s.cfg.DeskRetention), n) },
		"audit":            func() (int64, error) { return s.cleanAudit(ctx, now, n) },
	} {
		rows, err := clean()
		note(kind, rows, err)
	}
	errs = append(errs, q.InboxWorkersClean(ctx, at(now.Add(-ownersKept))), q.RelayOwnersClean(ctx, at(now.Add(-ownersKept))))
	return removed, outward("clean", errors.Join(errs...))
}

// cleanPayloads counts what the mark passed, so that a stretch without payloads is
// no reason to stop.
func (s *Store) cleanPayloads(ctx context.Context, now time.Time, n int32) (int64, error) {
	done, err := s.queries().PayloadClean(ctx, n, at(now.Add(-s.cfg.PayloadRetention)))
	return done.Passed, err
}

// cleanAudit removes nothing where the log is kept for ever.
func (s *Store) cleanAudit(ctx context.Context, now time.Time, n int32) (int64, error) {
	if s.cfg.AuditRetention == 0 {
		return 0, nil
	}
	return s.queries().AuditClean(ctx, at(now.Add(-s.cfg.AuditRetention)), n)
}

// PartitionDaysAhead implements ports.SweepLog.
func (s *Store) PartitionDaysAhead(ctx context.Context) (int, error) {
	days, err := s.queries().PartitionDaysAhead(ctx)
	return int(days), outward("partition days", err)
}

// RecordSweeps implements ports.SweepLog.
func (s *Store) RecordSweeps(ctx context.Context, runs []ports.SweepRun) error {
	var p dbgen.SweepRecordParams
	for _, r := range runs {
		p.Chores, p.LastAts = append(p.Chores, r.Chore), append(p.LastAts, at(r.LastAt))
		p.LastRows, p.LastTookMs = append(p.LastRows, int64(r.LastRows)), append(p.LastTookMs, r.LastTook.Milliseconds())
		p.FailedAts, p.Runs = append(p.FailedAts, atPtr(r.FailedAt)), append(p.Runs, int64(r.Runs))
		p.Rows, p.Errors = append(p.Rows, int64(r.Rows)), append(p.Errors, int64(r.Errors))
	}
	return outward("record sweeps", s.queries().SweepRecord(ctx, &p))
}

// Sweeps implements ports.SweepLog.
func (s *Store) Sweeps(ctx context.Context) ([]ports.SweepRun, error) {
	rows, err := s.queries().SweepList(ctx)
	if err != nil {
		return nil, outward("sweeps", err)
	}
	runs := make([]ports.SweepRun, len(rows))
	for i, r := range rows {
		runs[i] = ports.SweepRun{
			Chore: r.Chore, LastAt: timeOf(r.LastAt), LastRows: int(r.LastRows), LastTook: time.Duration(r.LastTookMs) * time.Millisecond,
			FailedAt: timePtr(r.FailedAt), Runs: int(r.Runs), Rows: int(r.Rows), Errors: int(r.Errors),
		}
	}
	return runs, nil
}

// Waiting implements ports.SweepLog.
func (s *Store) Waiting(ctx context.Context, now time.Time) ([]ports.Waiting, error) {
	rows, err := s.queries().DeskBacklog(ctx, &now)
	if err != nil {
		return nil, outward("backlogs", err)
	}
	backlogs := make([]ports.Waiting, len(rows))
	for i, r := range rows {
		backlogs[i] = ports.Waiting{Name: r.Name, Rows: int(r.Rows)}
		if r.Oldest.Valid {
			oldest := timeOf(r.Oldest)
			backlogs[i].Oldest = &oldest
		}
	}
	slices.SortFunc(backlogs, func(a, b ports.Waiting) int { return cmp.Compare(a.Name, b.Name) })
	return backlogs, nil
}
