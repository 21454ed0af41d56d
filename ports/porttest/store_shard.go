package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func shardTests() []storeTest {
	return []storeTest{
		{"OneOwner", shardOneOwner},
		{"Want", shardWant},
		{"FairShare", shardFairShare},
		{"Release", shardRelease},
		{"DeadOwner", shardDeadOwner},
		{"TakenOnce", shardTakenOnce},
	}
}

func tokens(leases []ports.ShardLease) map[int]int64 {
	m := map[int]int64{}
	for _, l := range leases {
		m[l.Shard] = l.Token
	}
	return m
}

func shardOneOwner(t *testing.T, b *storeBench) {
	owner := newID()
	first := b.leaseSome(owner, 0)
	if len(first) != ports.OutboxShards || len(tokens(first)) != ports.OutboxShards {
		t.Fatalf("%d shards for the only owner, want %d", len(first), ports.OutboxShards)
	}
	b.Clock.Advance(10 * time.Second)
	renewed := b.leaseSome(owner, 0)
	want := b.Clock.Now().Add(30 * time.Second)
	have := tokens(first)
	for _, l := range renewed {
		if l.Token != have[l.Shard] || !l.Until.Equal(want) {
			t.Errorf("renewed shard %d: token %d until %v, want %d until %v", l.Shard, l.Token, l.Until, have[l.Shard], want)
		}
	}
	if len(renewed) != ports.OutboxShards {
		t.Errorf("%d shards after renewal", len(renewed))
	}
}

func shardWant(t *testing.T, b *storeBench) {
	one, two := newID(), newID()
	if n := len(b.leaseSome(one, 10)); n != 10 {
		t.Errorf("%d shards, want 10", n)
	}
	if n := len(b.leaseSome(two, ports.OutboxShards)); n != ports.OutboxShards-10 {
		t.Errorf("%d shards, want the other %d", n, ports.OutboxShards-10)
	}
	if n := len(b.leaseSome(one, 20)); n != 10 {
		t.Errorf("%d shards when none is free, want 10", n)
	}
}

// shardFairShare: owners that ask again and again end with shares of one size,
// whoever came first, and without a shard that two of them hold.
func shardFairShare(t *testing.T, b *storeBench) {
	owners := []domain.ID{newID()}
	for _, n := range []int{1, 2, 3} {
		for len(owners) < n {
			owners = append(owners, newID())
		}
		var leases [][]ports.ShardLease
		for range 4 {
			leases = nil
			for _, owner := range owners {
				leases = append(leases, b.leaseSome(owner, 0))
			}
			b.Clock.Advance(time.Second)
		}
		held := map[int]bool{}
		for i, l := range leases {
			if least := ports.OutboxShards/n - 2; len(l) < least || len(l) > ports.OutboxShards/n+2 {
				t.Errorf("owner %d of %d holds %d shards", i, n, len(l))
			}
			for shard := range tokens(l) {
				if held[shard] {
					t.Errorf("shard %d is held by two of %d owners", shard, n)
				}
				held[shard] = true
			}
		}
		if len(held) != ports.OutboxShards {
			t.Errorf("%d of %d shards are held by %d owners", len(held), ports.OutboxShards, n)
		}
	}
}

func shardRelease(t *testing.T, b *storeBench) {
	one, two := newID(), newID()
	before := tokens(b.lease(one))
	if n := len(b.lease(two)); n != 0 {
		t.Errorf("%d shards that another holds", n)
	}
	if err := b.Store.ReleaseShards(b.ctx, one); err != nil {
		t.Fatal(err)
	}
	after := b.lease(two)
	if len(after) != ports.OutboxShards {
		t.Errorf("%d shards after the release", len(after))
	}
	for _, l := range after {
		if l.Token <= before[l.Shard] {
			t.Errorf("shard %d: token %d after %d: it does not rise with the owner", l.Shard, l.Token, before[l.Shard])
		}
	}
	if err := b.Store.ReleaseShards(b.ctx, newID()); err != nil {
		t.Errorf("a release of nothing: %v", err)
	}
}

func shardDeadOwner(t *testing.T, b *storeBench) {
	dead, heir := newID(), newID()
	before := tokens(b.lease(dead))
	b.Clock.Advance(29 * time.Second)
	if n := len(b.lease(heir)); n != 0 {
		t.Errorf("%d shards before the lease of their owner ended", n)
	}
	b.Clock.Advance(2 * time.Second)
	after := b.leaseSome(heir, 0)
	if len(after) != ports.OutboxShards {
		t.Errorf("%d shards after their owner's end, want all", len(after))
	}
	for _, l := range after {
		if l.Token <= before[l.Shard] {
			t.Errorf("shard %d: token %d after %d", l.Shard, l.Token, before[l.Shard])
		}
	}
	if n := len(b.lease(dead)); n != 0 {
		t.Errorf("%d shards for an owner that came back late", n)
	}
}

// shardTakenOnce: owners that ask at the same moment share without overlap.
func shardTakenOnce(t *testing.T, b *storeBench) {
	now := b.Clock.Now()
	got := make([][]ports.ShardLease, 4)
	together(len(got), func(i int) {
		leases, err := retryUnavailable(func() ([]ports.ShardLease, error) {
			return b.Store.LeaseShards(b.ctx, ports.ShardParams{Owner: newID(), Want: 20, Now: now, For: time.Minute})
		})
		if err != nil {
			t.Errorf("LeaseShards: %v", err)
		}
		got[i] = leases
	})
	held := map[int]bool{}
	for i, leases := range got {
		if len(leases) > 20 {
			t.Errorf("owner %d holds %d shards, want at most 20", i, len(leases))
		}
		for _, l := range leases {
			if held[l.Shard] {
				t.Errorf("shard %d is held twice", l.Shard)
			}
			held[l.Shard] = true
		}
	}
}
