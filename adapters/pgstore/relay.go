package pgstore

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ownersKept is how long an owner that is gone stays in the table.
const ownersKept = time.Hour

// LeaseShards implements ports.Outbox. Owners take turns under an advisory lock;
// one that holds more than its share gives the rest up, and a newcomer finds it
// free.
func (s *Store) LeaseShards(ctx context.Context, params ports.ShardParams) ([]ports.ShardLease, error) {
	var held []ports.ShardLease
	err := s.inTx(ctx, func(q *dbgen.Queries) (err error) {
		held, err = leaseShards(ctx, q, params)
		return err
	})
	if err != nil {
		return nil, outward("lease shards", err)
	}
	if err := s.setAside(ctx); err != nil {
		s.cfg.Logger.Warn("rows of parked projects stay in the relays' way", "error", err)
	}
	return held, nil
}

func leaseShards(ctx context.Context, q *dbgen.Queries, params ports.ShardParams) ([]ports.ShardLease, error) {
	until := params.Now.Add(params.For)
	if err := q.RelayLock(ctx); err != nil {
		return nil, err
	}
	if err := q.RelayOwnerBeat(ctx, uid(params.Owner), at(until)); err != nil {
		return nil, err
	}
	share := params.Want
	if share <= 0 {
		live, err := q.RelayOwnersLive(ctx, at(params.Now))
		if err != nil {
			return nil, err
		}
		share = (ports.OutboxShards + int(live) - 1) / max(int(live), 1)
	}
	shards, err := q.RelayShards(ctx)
	if err != nil {
		return nil, err
	}
	held, keep, drop := divide(shards, params, share, until)
	if err := q.RelayShardsFree(ctx, drop, uid(params.Owner)); err != nil {
		return nil, err
	}
	return held, q.RelayShardsTake(ctx, &dbgen.RelayShardsTakeParams{Owner: uid(params.Owner), LeaseUntil: at(until), Shards: keep})
}

// divide decides which shards the owner keeps or takes and which it gives up:
// its own first, then free and expired ones, up to its share.
func divide(shards []dbgen.RelayShard, params ports.ShardParams, share int, until time.Time) (held []ports.ShardLease, keep, drop []int16) {
	hold := func(r dbgen.RelayShard, token int64) {
		keep = append(keep, r.Shard)
		held = append(held, ports.ShardLease{Shard: int(r.Shard), Token: token, Until: until})
	}
	mine := func(r dbgen.RelayShard) bool { return idOf(r.Owner) == params.Owner }
	for _, r := range shards {
		switch {
		case mine(r) && len(held) < share:
			hold(r, r.Token)
		case mine(r):
			drop = append(drop, r.Shard)
		}
	}
	for _, r := range shards {
		free := !r.Owner.Valid || !timeOf(r.LeaseUntil).After(params.Now)
		if free && !mine(r) && len(held) < share {
			hold(r, r.Token+1)
		}
	}
	return held, keep, drop
}

// ReleaseShards implements ports.Outbox.
func (s *Store) ReleaseShards(ctx context.Context, owner domain.ID) error {
	all := make([]int16, ports.OutboxShards)
	for i := range all {
		all[i] = int16(i)
	}
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		if err := q.RelayLock(ctx); err != nil {
			return err
		}
		if err := q.RelayOwnerDrop(ctx, uid(owner)); err != nil {
			return err
		}
		return q.RelayShardsFree(ctx, all, uid(owner))
	})
	return outward("release shards", err)
}
