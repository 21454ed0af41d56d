package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Pending implements ports.Outbox. The oldest rows come first, so that no
// project starves another. Messages are not decoded: a relay would only encode
// them again.
func (s *Store) Pending(ctx context.Context, params ports.PendingParams) ([]ports.OutboxRow, error) {
	if len(params.Shards) == 0 || params.Limit <= 0 {
		return nil, nil
	}
	numbers, _ := leases(params.Shards)
	skip := make([]pgtype.UUID, len(params.Skip))
	for i, p := range params.Skip {
		skip[i] = uid(p.ID)
	}
	rows, err := s.queries().OutboxPending(ctx, &dbgen.OutboxPendingParams{Shards: numbers, Skip: skip, Now: at(s.now()), MaxRows: int32(params.Limit)})
	if err != nil {
		return nil, outward("pending", err)
	}
	out := make([]ports.OutboxRow, len(rows))
	for i, r := range rows {
		out[i] = ports.OutboxRow{ID: r.ID, Shard: int(r.Shard), Message: r.Payload, Tries: int(r.Tries), Event: ports.StoredEvent{
			EventID: r.EventID, CreatedAt: timeOf(r.CreatedAt), Event: domain.Event{
				ProjectID: domain.ProjectID{ID: idOf(r.ProjectID)}, TaskID: domain.TaskID{ID: idOf(r.AggregateID)},
				Version: r.AggregateVersion, Type: r.EventType,
			},
		}}
	}
	slices.SortFunc(out, func(a, b ports.OutboxRow) int {
		return cmp.Or(bytes.Compare(a.Event.ProjectID.ID[:], b.Event.ProjectID.ID[:]), cmp.Compare(a.Event.EventID, b.Event.EventID))
	})
	return out, nil
}

// leases splits leases into columns.
func leases(shards []ports.ShardLease) (numbers []int16, tokens []int64) {
	for _, l := range shards {
		numbers, tokens = append(numbers, int16(l.Shard)), append(tokens, l.Token)
	}
	return numbers, tokens
}

// MarkPublished implements ports.Outbox.
func (s *Store) MarkPublished(ctx context.Context, shards []ports.ShardLease, ids []int64) error {
	if len(ids) == 0 {
		return nil
	}
	p := dbgen.OutboxMarkPublishedParams{Ids: ids}
	p.Shards, p.Tokens = leases(shards)
	if err := s.retry(ctx, func() error { return s.queries().OutboxMarkPublished(ctx, &p) }); err != nil {
		return outward("mark published", err)
	}
	s.vacuum(ctx, &s.outboxVacuum, len(ids))
	return nil
}

// MarkFailed implements ports.Outbox.
func (s *Store) MarkFailed(ctx context.Context, params ports.PublishFailure) (parked bool, err error) {
	parked, err = s.queries().OutboxHoldRaise(ctx, &dbgen.OutboxHoldRaiseParams{
		ProjectID: uid(params.ProjectID.ID), NextRetryAt: at(params.NextAt), MaxTries: int32(params.MaxTries),
		LastErrorCode: params.ErrorCode, Now: at(s.now()), Shard: int16(params.Lease.Shard), Token: params.Lease.Token,
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return false, nil // the lease is lost
	}
	return parked, outward("mark failed", err)
}

// setAside takes the rows of parked projects out of the relays' way.
func (s *Store) setAside(ctx context.Context) error {
	any, err := s.queries().OutboxAnyParked(ctx)
	if err == nil && any {
		err = s.queries().OutboxSetAside(ctx)
	}
	return outward("set parked rows aside", err)
}

// Clean implements ports.Outbox.
func (s *Store) Clean(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := s.queries().OutboxClean(ctx, at(before), int32(max(limit, 0)))
	return int(n), outward("clean outbox", err)
}

// AddRetries implements ports.BusRetries.
func (s *Store) AddRetries(ctx context.Context, group string, outboxIDs []int64, nextAt time.Time) error {
	return outward("add retries", s.queries().BusRetryAdd(ctx, &dbgen.BusRetryAddParams{GroupName: group, NextAt: at(nextAt), OutboxIds: outboxIDs}))
}

// DueRetries implements ports.BusRetries.
func (s *Store) DueRetries(ctx context.Context, group string, now time.Time, limit int) ([]ports.OutboxRow, error) {
	rows, err := s.queries().BusRetryDue(ctx, &dbgen.BusRetryDueParams{GroupName: group, Now: at(now), MaxRows: int32(max(limit, 0))})
	if err != nil {
		return nil, outward("due retries", err)
	}
	out := make([]ports.OutboxRow, len(rows))
	for i, r := range rows {
		if out[i], err = outboxRowOf(r.ID, r.Shard, r.Payload, r.Attempts); err != nil {
			return nil, outward("due retries", err)
		}
	}
	return out, nil
}

// SettleRetries implements ports.BusRetries.
func (s *Store) SettleRetries(ctx context.Context, group string, delivered, failed []int64, nextAt time.Time) error {
	return outward("settle retries", s.queries().BusRetrySettle(ctx, &dbgen.BusRetrySettleParams{
		GroupName: group, Delivered: delivered, Failed: failed, NextAt: at(nextAt),
	}))
}
