package pgstore

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/ports"
)

// Pending implements ports.Outbox. The oldest rows come first, so that no
// project starves another.
func (s *Store) Pending(ctx context.Context, shards []ports.ShardLease, limit int) ([]ports.OutboxRow, error) {
	if len(shards) == 0 || limit <= 0 {
		return nil, nil
	}
	numbers, _ := leases(shards)
	rows, err := s.queries().OutboxPending(ctx, &dbgen.OutboxPendingParams{Shards: numbers, Now: at(s.now()), MaxRows: int32(limit)})
	if err != nil {
		return nil, outward("pending", err)
	}
	out := make([]ports.OutboxRow, len(rows))
	for i, r := range rows {
		if out[i], err = outboxRowOf(r.ID, r.Shard, r.Payload, r.RetryCount); err != nil {
			return nil, outward("pending", err)
		}
	}
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
func (s *Store) MarkPublished(ctx context.Context, shards []ports.ShardLease, ids []int64, now time.Time) error {
	if len(ids) == 0 {
		return nil
	}
	p := dbgen.OutboxMarkPublishedParams{Now: at(now), Ids: ids}
	p.Shards, p.Tokens = leases(shards)
	return outward("mark published", s.retry(ctx, func() error { return s.queries().OutboxMarkPublished(ctx, &p) }))
}

// MarkFailed implements ports.Outbox.
func (s *Store) MarkFailed(ctx context.Context, params ports.PublishFailure) error {
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		if err := q.OutboxCountTry(ctx, params.IDs); err != nil {
			return err
		}
		return q.OutboxHoldRaise(ctx, &dbgen.OutboxHoldRaiseParams{
			ProjectID: uid(params.ProjectID.ID), NextRetryAt: at(params.NextAt), MaxTries: int32(params.MaxTries),
			LastErrorCode: params.ErrorCode, Now: at(s.now()),
		})
	})
	return outward("mark failed", err)
}

// Clean implements ports.Outbox.
func (s *Store) Clean(ctx context.Context, before time.Time, limit int) (int, error) {
	n, err := s.queries().OutboxClean(ctx, &before, int32(max(limit, 0)))
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
