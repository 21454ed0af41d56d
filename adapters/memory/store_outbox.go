package memory

import (
	"cmp"
	"context"
	"hash/fnv"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// sentRow is an outbox row that the bus has acknowledged.
type sentRow struct {
	ports.OutboxRow
	at time.Time
}

// backoff is why a project's rows are not sent for now.
type backoff struct {
	until  time.Time
	tries  int
	parked bool
}

// shardOf gives all rows of a project the same shard.
func shardOf(project domain.ProjectID) int {
	h := fnv.New32a()
	h.Write(project.ID[:])
	return int(h.Sum32() % ports.OutboxShards)
}

// Pending implements ports.Outbox.
func (s *Store) Pending(ctx context.Context, shards []ports.ShardLease, limit int) ([]ports.OutboxRow, error) {
	var rows []ports.OutboxRow
	err := s.read(ctx, func() error {
		var mine [ports.OutboxShards]bool
		for _, lease := range shards {
			mine[lease.Shard] = true
		}
		now := s.now()
		for _, row := range s.outbox {
			wait := s.backoff[row.Event.ProjectID]
			if mine[row.Shard] && !wait.parked && !wait.until.After(now) {
				rows = append(rows, row)
			}
		}
		return nil
	})
	sortOutbox(rows)
	return rows[:min(max(limit, 0), len(rows))], err
}

func sortOutbox(rows []ports.OutboxRow) {
	slices.SortFunc(rows, func(a, b ports.OutboxRow) int {
		return cmp.Or(slices.Compare(a.Event.ProjectID.ID[:], b.Event.ProjectID.ID[:]), cmp.Compare(a.Event.EventID, b.Event.EventID))
	})
}

// MarkPublished implements ports.Outbox.
func (s *Store) MarkPublished(ctx context.Context, shards []ports.ShardLease, ids []int64, now time.Time) error {
	return s.write(ctx, func(x *tx) error {
		held := map[int]bool{}
		for _, lease := range shards {
			have := s.shards[lease.Shard]
			held[lease.Shard] = have.token == lease.Token && !have.owner.IsZero()
		}
		for _, id := range ids {
			row, ok := s.outbox[id]
			if !ok || !held[row.Shard] {
				continue
			}
			remove(x, s.outbox, id)
			put(x, s.sent, id, sentRow{row, now})
			remove(x, s.backoff, row.Event.ProjectID)
		}
		return nil
	})
}

// MarkFailed implements ports.Outbox.
func (s *Store) MarkFailed(ctx context.Context, params ports.PublishFailure) error {
	return s.write(ctx, func(x *tx) error {
		wait := s.backoff[params.ProjectID]
		wait.until = params.NextAt
		if params.MaxTries > 0 {
			wait.tries++
			wait.parked = wait.parked || wait.tries >= params.MaxTries
		}
		for _, id := range params.IDs {
			row, ok := s.outbox[id]
			if !ok || row.Event.ProjectID != params.ProjectID {
				continue
			}
			row.Tries++
			put(x, s.outbox, id, row)
		}
		put(x, s.backoff, params.ProjectID, wait)
		return checkText(params.ErrorCode)
	})
}

// Clean implements ports.Outbox. Rows that a group is still owed stay.
func (s *Store) Clean(ctx context.Context, before time.Time, limit int) (int, error) {
	cleaned := 0
	err := s.write(ctx, func(x *tx) error {
		owed := map[int64]bool{}
		for key := range s.retries {
			owed[key.id] = true
		}
		for id, row := range s.sent {
			if cleaned < limit && row.at.Before(before) && !owed[id] {
				remove(x, s.sent, id)
				cleaned++
			}
		}
		return nil
	})
	return cleaned, err
}
