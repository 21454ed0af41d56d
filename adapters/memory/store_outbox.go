package memory

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// hold is why a project's rows are not sent for now.
type hold struct {
	until    time.Time
	refusals int
	code     string
	parked   time.Time
}

// shardOf gives all rows of a project the same shard.
func shardOf(project domain.ProjectID) int {
	h := fnv.New32a()
	h.Write(project.ID[:])
	return int(h.Sum32() % ports.OutboxShards)
}

// Pending implements ports.Outbox.
func (s *Store) Pending(ctx context.Context, params ports.PendingParams) ([]ports.OutboxRow, error) {
	var rows []ports.OutboxRow
	err := s.read(ctx, func() error {
		var mine [ports.OutboxShards]bool
		for _, lease := range params.Shards {
			mine[lease.Shard] = true
		}
		now := s.now()
		for _, row := range s.outbox {
			h := s.holds[row.Event.ProjectID]
			if mine[row.Shard] && h.parked.IsZero() && !h.until.After(now) && !slices.Contains(params.Skip, row.Event.ProjectID) {
				row.Tries = h.refusals
				rows = append(rows, row)
			}
		}
		return nil
	})
	slices.SortFunc(rows, func(a, b ports.OutboxRow) int { return cmp.Compare(a.ID, b.ID) })
	rows = rows[:min(max(params.Limit, 0), len(rows))]
	sortOutbox(rows)
	return rows, err
}

func sortOutbox(rows []ports.OutboxRow) {
	slices.SortFunc(rows, func(a, b ports.OutboxRow) int {
		return cmp.Or(slices.Compare(a.Event.ProjectID.ID[:], b.Event.ProjectID.ID[:]), cmp.Compare(a.Event.EventID, b.Event.EventID))
	})
}

// fenced reports whether the lease still stands.
func (s *Store) fenced(lease ports.ShardLease) bool {
	have := s.shards[lease.Shard]
	return have.token == lease.Token && !have.owner.IsZero()
}

// MarkPublished implements ports.Outbox.
func (s *Store) MarkPublished(ctx context.Context, shards []ports.ShardLease, ids []int64) error {
	return s.write(ctx, func(x *tx) error {
		held := map[int]bool{}
		for _, lease := range shards {
			held[lease.Shard] = s.fenced(lease)
		}
		for _, id := range ids {
			row, ok := s.outbox[id]
			if !ok || !held[row.Shard] {
				continue
			}
			remove(x, s.outbox, id)
			put(x, s.sent, id, row)
			if project := row.Event.ProjectID; s.holds[project].parked.IsZero() {
				remove(x, s.holds, project)
			}
		}
		return nil
	})
}

// MarkFailed implements ports.Outbox.
func (s *Store) MarkFailed(ctx context.Context, params ports.PublishFailure) (parked bool, err error) {
	err = s.write(ctx, func(x *tx) error {
		if !s.fenced(params.Lease) {
			return nil
		}
		h := s.holds[params.ProjectID]
		h.until, h.code = params.NextAt, params.ErrorCode
		h.refusals++
		if h.parked.IsZero() && h.refusals >= params.MaxTries {
			h.parked, parked = s.now(), true
		}
		put(x, s.holds, params.ProjectID, h)
		return checkText(params.ErrorCode)
	})
	return parked && err == nil, err
}

// Backlog implements ports.OutboxDesk.
func (s *Store) Backlog(ctx context.Context) (ports.Backlog, error) {
	var b ports.Backlog
	err := s.read(ctx, func() error {
		oldest := int64(0)
		for id, row := range s.outbox {
			if !s.holds[row.Event.ProjectID].parked.IsZero() {
				continue
			}
			b.Rows++
			if at := row.Event.CreatedAt; oldest == 0 || id < oldest {
				oldest, b.OldestAt = id, &at
			}
		}
		for _, h := range s.holds {
			if !h.parked.IsZero() {
				b.Parked++
			}
		}
		return nil
	})
	return b, err
}

// Parked implements ports.OutboxDesk.
func (s *Store) Parked(ctx context.Context, limit int) ([]ports.ParkedProject, error) {
	var parked []ports.ParkedProject
	err := s.read(ctx, func() error {
		for project, h := range s.holds {
			if h.parked.IsZero() {
				continue
			}
			p := ports.ParkedProject{ProjectID: project, ErrorCode: h.code, Refusals: h.refusals, Since: h.parked}
			for _, row := range s.outbox {
				if row.Event.ProjectID == project {
					p.Rows++
				}
			}
			parked = append(parked, p)
		}
		return nil
	})
	slices.SortFunc(parked, func(a, b ports.ParkedProject) int {
		return cmp.Or(a.Since.Compare(b.Since), slices.Compare(a.ProjectID.ID[:], b.ProjectID.ID[:]))
	})
	return parked[:min(max(limit, 0), len(parked))], err
}

// ParkedProject implements ports.OutboxDesk.
func (s *Store) ParkedProject(ctx context.Context, project domain.ProjectID) (ports.ParkedProject, error) {
	all, err := s.Parked(ctx, math.MaxInt)
	if err != nil {
		return ports.ParkedProject{}, err
	}
	for _, p := range all {
		if p.ProjectID == project {
			return p, nil
		}
	}
	return ports.ParkedProject{}, fmt.Errorf("parked project %s: %w", project, ports.ErrNotFound)
}

// Unpark implements ports.OutboxDesk.
func (s *Store) Unpark(ctx context.Context, project domain.ProjectID, audit ports.Audit) error {
	return s.write(ctx, func(x *tx) error {
		if s.holds[project].parked.IsZero() {
			return fmt.Errorf("parked project %s: %w", project, ports.ErrNotFound)
		}
		remove(x, s.holds, project)
		return checkText(audit.Actor, audit.Reason)
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
			if cleaned < limit && row.Event.CreatedAt.Before(before) && !owed[id] {
				remove(x, s.sent, id)
				cleaned++
			}
		}
		return nil
	})
	return cleaned, err
}
