package memory

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// shard is who may send one part of the outbox.
type shard struct {
	owner domain.ID
	token int64
	until time.Time
}

// LeaseShards implements ports.Outbox. An owner is live as long as its last
// call's lease, also without a shard: this is how a newcomer gets its share.
func (s *Store) LeaseShards(ctx context.Context, params ports.ShardParams) ([]ports.ShardLease, error) {
	var leases []ports.ShardLease
	err := s.write(ctx, func(x *tx) error {
		until := params.Now.Add(params.For)
		put(x, s.relays, params.Owner, until)
		share := params.Want
		if share <= 0 {
			live := x.liveRelays(params.Now)
			share = (ports.OutboxShards + live - 1) / live
		}
		shards := s.shards
		keep := func(i int) {
			shards[i].until = until
			leases = append(leases, ports.ShardLease{Shard: i, Token: shards[i].token, Until: until})
		}
		for i := range shards {
			switch mine := shards[i].owner == params.Owner; {
			case mine && len(leases) < share:
				keep(i)
			case mine: // more than the share: somebody else wants it
				shards[i].owner = domain.ID{}
			}
		}
		for i := range shards {
			free := shards[i].owner.IsZero() || !shards[i].until.After(params.Now)
			if free && shards[i].owner != params.Owner && len(leases) < share {
				shards[i].owner = params.Owner
				shards[i].token++
				keep(i)
			}
		}
		assign(x, &s.shards, shards)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return leases, nil
}

// liveRelays counts the owners whose lease has not ended and forgets the rest.
func (x *tx) liveRelays(now time.Time) int {
	live := 0
	for owner, until := range x.relays {
		if until.After(now) {
			live++
		} else {
			remove(x, x.relays, owner)
		}
	}
	return max(live, 1)
}

// ReleaseShards implements ports.Outbox.
func (s *Store) ReleaseShards(ctx context.Context, owner domain.ID) error {
	return s.write(ctx, func(x *tx) error {
		remove(x, s.relays, owner)
		shards := s.shards
		for i := range shards {
			if shards[i].owner == owner {
				shards[i].owner = domain.ID{}
			}
		}
		assign(x, &s.shards, shards)
		return nil
	})
}
