package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// park refuses the project's rows until it is parked.
func (b *storeBench) park(owner domain.ID, project domain.ProjectID, maxTries int) {
	b.t.Helper()
	for n := range maxTries {
		shards := b.lease(owner)
		for _, row := range b.pending(shards, 100) {
			if row.Event.ProjectID != project {
				continue
			}
			if got, want := b.failed(shards, maxTries, time.Second, row), n+1 == maxTries; got != want {
				b.t.Errorf("refusal %d of %d parked: %v", n+1, maxTries, got)
			}
			break
		}
		b.Clock.Advance(2 * time.Second)
	}
}

func (b *storeBench) parkedProject(project domain.ProjectID) (ports.ParkedProject, error) {
	return b.Store.ParkedProject(b.ctx, project)
}

func (b *storeBench) unpark(project domain.ProjectID) error {
	return b.Store.Unpark(b.ctx, project, ports.Audit{ActionID: domain.ActionID{ID: newID()}, Actor: "op", Action: "outbox.unpark", Reason: "mended"})
}

// outboxParked: after too many refusals a project waits for a person, with what
// comes later, and nobody else does.
func outboxParked(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	b.create()
	b.createIn(other)
	owner := newID()
	b.park(owner, b.project, 3)
	parkedAt := b.Clock.Now().Add(-2 * time.Second)
	b.Clock.Advance(time.Hour)
	b.create()
	shards := b.lease(owner) // may take what is parked out of the way
	rows := b.pending(shards, 10)
	if len(rows) != 1 || rows[0].Event.ProjectID != other {
		t.Errorf("rows beside a parked project: %+v", rows)
	}
	b.create() // beside rows that are out of the way, one that is not
	b.published(shards, rows...)
	got, err := b.Store.Parked(b.ctx, 10)
	if err != nil || len(got) != 1 {
		t.Fatalf("parked: %+v, %v", got, err)
	}
	want := ports.ParkedProject{ProjectID: b.project, ErrorCode: "refused", Refusals: 3, Rows: 3, Since: got[0].Since}
	if got[0] != want || !got[0].Since.Equal(parkedAt) {
		t.Errorf("parked %+v, want %+v since %v", got[0], want, parkedAt)
	}
	if one, err := b.parkedProject(b.project); err != nil || one != got[0] {
		t.Errorf("by itself: %+v, %v", one, err)
	}
	if none, err := b.Store.Parked(b.ctx, 0); err != nil || len(none) != 0 {
		t.Errorf("at most none: %+v, %v", none, err)
	}
	if n, err := b.Store.Clean(b.ctx, b.Clock.Now().Add(time.Hour), 10); err != nil || n != 1 {
		t.Errorf("%d rows were cleaned, %v; want the published one", n, err)
	}
}

// outboxUnpark: everything that has waited comes in order, as if nothing had been.
func outboxUnpark(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	b.create()
	b.createIn(other)
	owner := newID()
	wantErr(t, "a project that is not parked", b.unpark(b.project), ports.ErrNotFound)
	b.park(owner, b.project, 2)
	b.create()
	b.lease(owner)
	b.create()
	wantErr(t, "another project", b.unpark(other), ports.ErrNotFound)
	if err := b.unpark(b.project); err != nil {
		t.Fatalf("Unpark: %v", err)
	}
	wantErr(t, "a second time", b.unpark(b.project), ports.ErrNotFound)
	_, err := b.parkedProject(b.project)
	wantErr(t, "a look afterwards", err, ports.ErrNotFound)
	var ids []int64
	for _, row := range b.pending(b.lease(owner), 10) {
		if row.Event.ProjectID == b.project {
			ids = append(ids, row.Event.EventID)
			if row.Tries != 0 {
				t.Errorf("event %d was refused %d times", row.Event.EventID, row.Tries)
			}
		}
	}
	if len(ids) != 3 || ids[0] != 1 || ids[1] != 2 || ids[2] != 3 {
		t.Errorf("events %v wait, want 1 2 3", ids)
	}
	b.park(owner, b.project, 2) // counts from the beginning
}

// outboxFailureWithLostLease: who has lost a shard must not put its projects off.
func outboxFailureWithLostLease(t *testing.T, b *storeBench) {
	b.create()
	old := b.lease(newID())
	row := b.pending(old, 10)[0]
	b.Clock.Advance(31 * time.Second)
	now := b.lease(newID())
	if b.failed(old, 1, time.Hour, row) {
		t.Error("a lost lease parked a project")
	}
	if rows := b.pending(now, 10); len(rows) != 1 || rows[0].Tries != 0 {
		t.Errorf("rows after a refusal without a lease: %+v", rows)
	}
	if !b.failed(now, 1, time.Hour, row) {
		t.Error("the holder's refusal did not park")
	}
}

func outboxBacklog(t *testing.T, b *storeBench) {
	backlog := func() ports.Backlog {
		t.Helper()
		got, err := b.Store.Backlog(b.ctx)
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := backlog(); got.Rows != 0 || got.OldestAt != nil || got.Parked != 0 {
		t.Errorf("of an empty outbox: %+v", got)
	}
	other := b.newProject(b.tenant, "another")
	b.create()
	b.Clock.Advance(time.Second)
	b.createIn(other)
	b.createIn(other)
	owner := newID()
	oldest := b.events(b.project)[0].CreatedAt
	if got := backlog(); got.Rows != 3 || got.OldestAt == nil || !got.OldestAt.Equal(oldest) || got.Parked != 0 {
		t.Errorf("backlog %+v, want 3 rows since %v", got, oldest)
	}
	b.park(owner, b.project, 1)
	oldest = b.events(other)[0].CreatedAt
	for range 2 { // before and after the rows are out of the way
		if got := backlog(); got.Rows != 2 || got.OldestAt == nil || !got.OldestAt.Equal(oldest) || got.Parked != 1 {
			t.Errorf("backlog %+v, want 2 rows since %v and a parked project", got, oldest)
		}
		b.lease(owner)
	}
	shards := b.lease(owner)
	b.published(shards, b.pending(shards, 10)...)
	if got := backlog(); got.Rows != 0 || got.OldestAt != nil || got.Parked != 1 {
		t.Errorf("backlog %+v after all was published", got)
	}
}
