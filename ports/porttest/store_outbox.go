package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func outboxTests() []storeTest {
	return []storeTest{
		{"EveryEvent", outboxEveryEvent},
		{"OwnShardsOnly", outboxOwnShardsOnly},
		{"MarkPublished", outboxMarkPublished},
		{"MarkWithLostLease", outboxMarkWithLostLease},
		{"FailureWaits", outboxFailureWaits},
		{"Parked", outboxParked},
		{"Outage", outboxOutage},
		{"Clean", outboxClean},
	}
}

// lease takes all shards for an owner, or renews them.
func (b *storeBench) lease(owner domain.ID) []ports.ShardLease {
	b.t.Helper()
	return b.leaseSome(owner, ports.OutboxShards)
}

func (b *storeBench) leaseSome(owner domain.ID, want int) []ports.ShardLease {
	b.t.Helper()
	leases, err := b.Store.LeaseShards(b.ctx, ports.ShardParams{Owner: owner, Want: want, Now: b.Clock.Now(), For: 30 * time.Second})
	if err != nil {
		b.t.Fatalf("LeaseShards: %v", err)
	}
	return leases
}

func (b *storeBench) pending(shards []ports.ShardLease, limit int) []ports.OutboxRow {
	b.t.Helper()
	rows, err := b.Store.Pending(b.ctx, shards, limit)
	if err != nil {
		b.t.Fatalf("Pending: %v", err)
	}
	return rows
}

func (b *storeBench) published(shards []ports.ShardLease, rows ...ports.OutboxRow) {
	b.t.Helper()
	if err := b.Store.MarkPublished(b.ctx, shards, rowIDs(rows), b.Clock.Now()); err != nil {
		b.t.Fatalf("MarkPublished: %v", err)
	}
}

func rowIDs(rows []ports.OutboxRow) []int64 {
	var ids []int64
	for _, row := range rows {
		ids = append(ids, row.ID)
	}
	return ids
}

// outboxEveryEvent: each event waits in the outbox with its number, in the order
// of project and event (I6).
func outboxEveryEvent(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	for range 3 {
		b.submitted()
		m := b.createIn(other)
		b.must(b.cancel(m))
	}
	shards := b.lease(newID())
	rows := b.pending(shards, 100)
	streams := map[domain.ProjectID][]ports.StoredEvent{}
	shard := map[domain.ProjectID]int{}
	for i, row := range rows {
		project := row.Event.ProjectID
		if i > 0 && project != rows[i-1].Event.ProjectID && len(streams[project]) > 0 {
			t.Errorf("rows of %s are not together", project)
		}
		streams[project] = append(streams[project], row.Event)
		if s, ok := shard[project]; ok && s != row.Shard {
			t.Errorf("rows of one project in the shards %d and %d", s, row.Shard)
		}
		if shard[project] = row.Shard; row.Shard < 0 || row.Shard >= ports.OutboxShards {
			t.Errorf("shard %d", row.Shard)
		}
		if row.ID == 0 || row.Tries != 0 {
			t.Errorf("row %+v", row)
		}
	}
	for _, project := range []domain.ProjectID{b.project, other} {
		want := b.events(project)
		if !sameEvents(streams[project], want) {
			t.Errorf("outbox of %s: %d events, want %d in order", project, len(streams[project]), len(want))
			continue
		}
		for i, got := range streams[project] {
			if got.Status != want[i].Status || got.Version != want[i].Version || got.Source != want[i].Source || got.AttemptID != want[i].AttemptID || got.TenantID != want[i].TenantID || got.TraceID != want[i].TraceID {
				t.Errorf("outbox event %+v\nwant %+v", got, want[i])
			}
		}
	}
	if first := b.pending(shards, 2); len(first) != 2 || first[0].ID != rows[0].ID || first[1].ID != rows[1].ID {
		t.Errorf("limit 2: %+v", first)
	}
}

func outboxOwnShardsOnly(t *testing.T, b *storeBench) {
	b.create()
	all := b.lease(newID())
	row := b.pending(all, 10)[0]
	for _, lease := range all {
		want := 0
		if lease.Shard == row.Shard {
			want = 1
		}
		if n := len(b.pending([]ports.ShardLease{lease}, 10)); n != want {
			t.Errorf("shard %d: %d rows, want %d", lease.Shard, n, want)
		}
	}
	if n := len(b.pending(nil, 10)); n != 0 {
		t.Errorf("without a shard: %d rows", n)
	}
}

func outboxMarkPublished(t *testing.T, b *storeBench) {
	for range 4 {
		b.create()
	}
	shards := b.lease(newID())
	rows := b.pending(shards, 10)
	b.published(shards, rows[0], rows[1])
	if left := b.pending(shards, 10); len(left) != 2 || left[0].ID != rows[2].ID {
		t.Errorf("left %+v", left)
	}
	b.published(shards, rows...) // also those that are marked already
	if left := b.pending(shards, 10); len(left) != 0 {
		t.Errorf("left %+v", left)
	}
	if n := len(b.events(b.project)); n != 4 {
		t.Errorf("%d events after publishing, want 4", n)
	}
}

// outboxMarkWithLostLease: who has lost a shard says nothing about its rows.
func outboxMarkWithLostLease(t *testing.T, b *storeBench) {
	b.create()
	old := b.lease(newID())
	rows := b.pending(old, 10)
	b.Clock.Advance(31 * time.Second)
	now := b.lease(newID())
	if len(now) != ports.OutboxShards {
		t.Fatalf("%d shards after the first owner's lease, want all", len(now))
	}
	b.published(old, rows...)
	if left := b.pending(now, 10); len(left) != 1 {
		t.Errorf("%d rows after a mark without a lease, want 1", len(left))
	}
	b.published(now, rows...)
	if left := b.pending(now, 10); len(left) != 0 {
		t.Errorf("%d rows after the mark of the holder", len(left))
	}
}

func (b *storeBench) failed(maxTries int, wait time.Duration, rows ...ports.OutboxRow) {
	b.t.Helper()
	err := b.Store.MarkFailed(b.ctx, ports.PublishFailure{
		ProjectID: rows[0].Event.ProjectID, IDs: rowIDs(rows), NextAt: b.Clock.Now().Add(wait), MaxTries: maxTries, ErrorCode: "broker_busy",
	})
	if err != nil {
		b.t.Fatalf("MarkFailed: %v", err)
	}
}

// outboxFailureWaits: all of a project's rows wait, or a later event would
// overtake the failed one; other projects go on.
func outboxFailureWaits(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	b.create()
	owner := newID()
	shards := b.lease(owner)
	first := b.pending(shards, 10)
	b.failed(5, 10*time.Second, first...)
	b.create()
	b.createIn(other)
	if rows := b.pending(shards, 10); len(rows) != 1 || rows[0].Event.ProjectID != other {
		t.Errorf("while the project waits: %+v", rows)
	}
	b.Clock.Advance(10 * time.Second)
	shards = b.lease(owner)
	var mine []ports.OutboxRow
	for _, row := range b.pending(shards, 10) {
		if row.Event.ProjectID == b.project {
			mine = append(mine, row)
		}
	}
	if len(mine) != 2 || mine[0].ID != first[0].ID || mine[0].Tries != 1 || mine[1].Tries != 0 {
		t.Errorf("when it is due again: %+v", mine)
	}
}

// outboxParked: after too many tries a project waits for a person, and nobody
// else does.
func outboxParked(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	b.create()
	b.createIn(other)
	owner := newID()
	for range 3 {
		for _, row := range b.pending(b.lease(owner), 10) {
			if row.Event.ProjectID == b.project {
				b.failed(3, time.Second, row)
			}
		}
		b.Clock.Advance(2 * time.Second)
	}
	b.Clock.Advance(time.Hour)
	b.create()
	rows := b.pending(b.lease(owner), 10)
	if len(rows) != 1 || rows[0].Event.ProjectID != other {
		t.Errorf("rows beside a parked project: %+v", rows)
	}
}

// outboxOutage: failures that are not the project's fault do not bring it nearer to
// being parked, however many they were.
func outboxOutage(t *testing.T, b *storeBench) {
	b.create()
	owner := newID()
	fail := func(maxTries int) {
		b.failed(maxTries, time.Second, b.pending(b.lease(owner), 10)...)
		b.Clock.Advance(2 * time.Second)
	}
	for range 5 {
		fail(0)
	}
	fail(3)
	fail(3)
	if rows := b.pending(b.lease(owner), 10); len(rows) != 1 || rows[0].Tries != 7 {
		t.Fatalf("after an outage and two failures: %+v", rows)
	}
	fail(3)
	b.Clock.Advance(time.Hour)
	if rows := b.pending(b.lease(owner), 10); len(rows) != 0 {
		t.Errorf("after three failures: %+v", rows)
	}
}

func outboxClean(t *testing.T, b *storeBench) {
	for range 3 {
		b.create()
	}
	shards := b.lease(newID())
	rows := b.pending(shards, 10)
	b.published(shards, rows[0], rows[1])
	mark := b.Clock.Now()
	clean := func(before time.Time, limit, want int) {
		t.Helper()
		if n, err := b.Store.Clean(b.ctx, before, limit); err != nil || n != want {
			t.Errorf("Clean before %v, at most %d: %d, %v; want %d", before, limit, n, err, want)
		}
	}
	clean(mark, 10, 0)
	clean(mark.Add(time.Second), 1, 1)
	clean(mark.Add(time.Second), 10, 1)
	clean(mark.Add(time.Hour), 10, 0)
	if left := b.pending(shards, 10); len(left) != 1 || left[0].ID != rows[2].ID {
		t.Errorf("left %+v", left)
	}
	if n := len(b.events(b.project)); n != 3 {
		t.Errorf("%d events, want 3", n)
	}
}
