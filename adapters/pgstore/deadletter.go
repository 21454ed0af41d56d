package pgstore

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// everything is a time after all others.
var everything = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// highestID is where pages begin.
func highestID(before int64) int64 {
	if before == 0 {
		return math.MaxInt64
	}
	return before
}

// Troubled implements ports.DeadLetters.
func (s *Store) Troubled(ctx context.Context, filter ports.TroubledFilter) ([]ports.InboxRow, error) {
	found, err := s.queries().InboxTroubled(ctx, &dbgen.InboxTroubledParams{
		Status: string(filter.Status), Provider: filter.Provider, Code: filter.Code,
		ReceivedBefore: at(firstTime(filter.ReceivedBefore, everything)),
		AfterID:        filter.AfterID, BeforeID: highestID(filter.BeforeID), MaxRows: int32(max(filter.Limit, 0)),
	})
	if err != nil {
		return nil, outward("troubled deliveries", err)
	}
	rows := make([]ports.InboxRow, len(found))
	for i, r := range found {
		rows[i] = inboxRowOf(r)
	}
	return rows, nil
}

// TroubledGroups implements ports.DeadLetters.
func (s *Store) TroubledGroups(ctx context.Context, filter ports.TroubledFilter) ([]ports.TroubledGroup, error) {
	found, err := s.queries().InboxTroubledGroups(ctx, &dbgen.InboxTroubledGroupsParams{
		Status: string(filter.Status), Provider: filter.Provider, Code: filter.Code,
		ReceivedBefore: at(firstTime(filter.ReceivedBefore, everything)),
		AfterID:        filter.AfterID, BeforeID: highestID(filter.BeforeID), MaxRows: int32(max(filter.Limit, 0)),
	})
	if err != nil {
		return nil, outward("groups of troubled deliveries", err)
	}
	groups := make([]ports.TroubledGroup, len(found))
	for i, r := range found {
		groups[i] = ports.TroubledGroup{
			Provider: r.Provider, Status: ports.InboxStatus(r.ProcessStatus), Code: r.Code, Rows: int(r.Rows),
			Oldest: timeOf(r.Oldest), Newest: timeOf(r.Newest),
		}
	}
	return groups, nil
}

// InboxRow implements ports.DeadLetters.
func (s *Store) InboxRow(ctx context.Context, id int64) (ports.InboxRow, error) {
	row, err := s.inboxRow(ctx, s.queries(), id)
	return row, outward("inbox row", err)
}

func (s *Store) inboxRow(ctx context.Context, q *dbgen.Queries, id int64) (ports.InboxRow, error) {
	found, err := q.InboxGet(ctx, id)
	if err != nil {
		return ports.InboxRow{}, missing("inbox row", err)
	}
	row, err := s.openRow(found.ProviderCallbackInbox)
	if found.Verdict != "" {
		row.Status, row.ClaimCount = ports.InboxDone, row.ClaimCount+1
		if found.Verdict == string(domain.VerdictIgnored) {
			row.Status, row.LastError = ports.InboxIgnored, found.Reason
		}
	}
	return row, err
}

// ReadPayload implements ports.DeadLetters.
func (s *Store) ReadPayload(ctx context.Context, id int64, audit ports.Audit) (row ports.InboxRow, err error) {
	err = s.inTx(ctx, func(q *dbgen.Queries) error {
		if row, err = s.inboxRow(ctx, q, id); err != nil {
			return err
		}
		return q.AuditInsertMany(ctx, auditRows([]audited{{Audit: audit, subject: fmt.Sprintf("inbox:%d", id)}}, s.now()))
	})
	return row, outward("read payload", err)
}

// Requeue implements ports.DeadLetters.
func (s *Store) Requeue(ctx context.Context, id int64, audit ports.Audit) error {
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		now := s.now()
		n, err := q.InboxRequeue(ctx, at(now), id)
		if err != nil {
			return err
		}
		if n == 0 {
			return fmt.Errorf("inbox row to requeue: %w", ports.ErrNotFound)
		}
		return q.AuditInsertMany(ctx, auditRows([]audited{{Audit: audit, subject: fmt.Sprintf("inbox:%d", id)}}, now))
	})
	return outward("requeue", err)
}

// RequeueMany implements ports.DeadLetters.
func (s *Store) RequeueMany(ctx context.Context, params ports.RequeueParams) (report ports.RequeueReport, err error) {
	filter := params.Filter
	err = s.inTx(ctx, func(q *dbgen.Queries) error {
		done, err := q.InboxRequeueMany(ctx, &dbgen.InboxRequeueManyParams{
			Status: string(filter.Status), Provider: filter.Provider, Code: filter.Code,
			ReceivedBefore: at(firstTime(filter.ReceivedBefore, everything)),
			AfterID:        filter.AfterID, BeforeID: highestID(filter.BeforeID), MaxRows: int32(max(filter.Limit, 0)),
			Start: at(params.Start), StepSeconds: params.Step.Seconds(),
		})
		report = ports.RequeueReport{Rows: int(done.Rows), LastID: done.LastID}
		if err != nil || report.Rows == 0 {
			return err
		}
		subject := fmt.Sprintf("inbox: %d rows after %d up to %d", report.Rows, filter.AfterID, report.LastID)
		return q.AuditInsertMany(ctx, auditRows([]audited{{Audit: params.Audit, subject: subject}}, s.now()))
	})
	return report, outward("requeue many", err)
}
