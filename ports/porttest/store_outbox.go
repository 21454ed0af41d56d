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
		{"FailureWithLostLease", outboxFailureWithLostLease},
		{"Skip", outboxSkip},
		{"Parked", outboxParked},
		{"Unpark", outboxUnpark},
		{"Backlog", outboxBacklog},
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
	return b.pendingBut(shards, limit)
}

func (b *storeBench) pendingBut(shards []ports.ShardLease, limit int, skip ...domain.ProjectID) []ports.OutboxRow {
	b.t.Helper()
	rows, err := b.Store.Pending(b.ctx, ports.PendingParams{Shards: shards, Skip: skip, Limit: limit})
	if err != nil {
		b.t.Fatalf("Pending: %v", err)
	}
	return rows
}

func (b *storeBench) published(shards []ports.ShardLease, rows ...ports.OutboxRow) {
	b.t.Helper()
	if err := b.Store.MarkPublished(b.ctx, shards, rowIDs(rows)); err != nil {
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
			got = b.decoded(rows, got)
			if got.Status != want[i].Status || got.Version != want[i].Version || got.Source != want[i].Source || got.AttemptID != want[i].AttemptID || got.TenantID != want[i].TenantID || got.TraceID != want[i].TraceID {
				t.Errorf("outbox event %+v\nwant %+v", got, want[i])
			}
		}
	}
	if first := b.pending(shards, 2); len(first) != 2 || first[0].ID != rows[0].ID || first[1].ID != rows[1].ID {
		t.Errorf("limit 2: %+v", first)
	}
}

// decoded is the event with everything that its row's message holds.
func (b *storeBench) decoded(rows []ports.OutboxRow, e ports.StoredEvent) ports.StoredEvent {
	b.t.Helper()
	for _, row := range rows {
		if row.Message == nil || row.Event.ProjectID != e.ProjectID || row.Event.EventID != e.EventID {
			continue
		}
		whole, err := b.Decode(row.Message)
		if err != nil || whole.Cursor() != e.Cursor() || whole.Type != e.Type || whole.TaskID != e.TaskID || whole.Version != e.Version {
			b.t.Errorf("message %s of event %+v: %v", row.Message, e, err)
		}
		return whole
	}
	return e
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

// failed counts a refusal of the row's project and reports whether it was parked.
func (b *storeBench) failed(shards []ports.ShardLease, maxTries int, wait time.Duration, row ports.OutboxRow) bool {
	b.t.Helper()
	p := ports.PublishFailure{ProjectID: row.Event.ProjectID, NextAt: b.Clock.Now().Add(wait), MaxTries: maxTries, ErrorCode: "refused"}
	for _, l := range shards {
		if l.Shard == row.Shard {
			p.Lease = l
		}
	}
	parked, err := b.Store.MarkFailed(b.ctx, p)
	if err != nil {
		b.t.Fatalf("MarkFailed: %v", err)
	}
	return parked
}

// outboxFailureWaits: all of a project's rows wait, or a later event would
// overtake the failed one; other projects go on.
func outboxFailureWaits(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	b.create()
	owner := newID()
	shards := b.lease(owner)
	first := b.pending(shards, 10)
	b.failed(shards, 5, 10*time.Second, first[0])
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
	if len(mine) != 2 || mine[0].ID != first[0].ID || mine[0].Tries != 1 || mine[1].Tries != 1 {
		t.Errorf("when it is due again: %+v", mine)
	}
}

// outboxSkip: a project that is to be skipped keeps its rows, and the limit is for
// the others.
func outboxSkip(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	for range 3 {
		b.create()
	}
	b.createIn(other)
	shards := b.lease(newID())
	if rows := b.pendingBut(shards, 1, b.project); len(rows) != 1 || rows[0].Event.ProjectID != other {
		t.Errorf("without the first project: %+v", rows)
	}
	if rows := b.pendingBut(shards, 10, b.project, other); len(rows) != 0 {
		t.Errorf("without any project: %+v", rows)
	}
	if rows := b.pending(shards, 10); len(rows) != 4 {
		t.Errorf("%d rows afterwards, want 4", len(rows))
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
