package porttest

import (
	"errors"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func reviveTests() []storeTest {
	return []storeTest{
		{"Retry", reviveRetry},
		{"OrphanFindsItsTask", reviveOrphanFindsItsTask},
		{"OrphanForTooLong", reviveOrphanForTooLong},
		{"DeadLetters", reviveDeadLetters},
		{"Requeue", reviveRequeue},
		{"RequeueOfOthers", reviveRequeueOfOthers},
	}
}

// reviveAfter sweeps when the row is due.
func (b *storeBench) reviveAfter(id int64) ports.ReviveReport {
	b.t.Helper()
	if wait := b.inboxRow(id).NextRetryAt.Sub(b.Clock.Now()); wait > 0 {
		b.Clock.Advance(wait)
	}
	return b.revive()
}

func (b *storeBench) revive() ports.ReviveReport {
	b.t.Helper()
	report, err := b.Store.Revive(b.ctx, ports.ReviveParams{
		Now: b.Clock.Now(), MaxErrors: 3, OrphanFor: time.Hour, StuckAfter: time.Minute, Limit: 100,
	})
	if err != nil {
		b.t.Fatalf("Revive: %v", err)
	}
	return report
}

// broken decodes nothing and notes the row's id.
func broken(id *int64) func(ports.InboxRow) ports.Decoded {
	return func(row ports.InboxRow) ports.Decoded {
		*id = row.ID
		return ports.Decoded{Err: errors.New("no JSON"), Code: "truncated"}
	}
}

func reviveRetry(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.receive(b.delivery(m, "evt-1"))
	var id int64
	b.process(broken(&id))
	if report := b.revive(); report != (ports.ReviveReport{}) {
		t.Errorf("before its time: %+v", report)
	}
	b.takenRows(0)
	if report := b.reviveAfter(id); report != (ports.ReviveReport{Revived: 1}) {
		t.Errorf("at its time: %+v", report)
	}
	if report := b.revive(); report != (ports.ReviveReport{}) {
		t.Errorf("a second sweep: %+v", report)
	}
	b.takenRows(1)
	if row := b.inboxRow(id); row.Status != ports.InboxDone {
		t.Errorf("row is %s", row.Status)
	}
}

// reviveOrphanFindsItsTask: a delivery that was faster than the answer to the
// create is matched once the vendor's id is known.
func reviveOrphanFindsItsTask(t *testing.T, b *storeBench) {
	m := b.create()
	b.must(b.started(m))
	row := b.delivery(m, "evt-1")
	row.TokenHash = nil
	b.receive(row)
	var id int64
	report := b.process(func(row ports.InboxRow) ports.Decoded {
		id = row.ID
		return b.news(row, domain.ObservedSucceeded)
	})
	if report.Orphans != 1 {
		t.Fatalf("report %+v", report)
	}
	b.must(b.accepted(m))
	if report := b.reviveAfter(id); report != (ports.ReviveReport{Revived: 1}) {
		t.Errorf("revived %+v", report)
	}
	if report := b.process(b.always(domain.ObservedSucceeded)); report.Applied != 1 {
		t.Errorf("report %+v", report)
	}
	if v := b.task(m); v.Task.Phase != domain.PhaseProviderSucceeded {
		t.Errorf("task is %s", v.Task.Phase)
	}
}

func reviveOrphanForTooLong(t *testing.T, b *storeBench) {
	b.receive(b.delivery(made{vendorID: "job-unknown", token: "unknown"}, "evt-1"))
	b.process(b.always(domain.ObservedRunning))
	b.Clock.Advance(time.Hour + time.Minute)
	b.revive()
	for range 2 { // it may be matched one last time
		b.process(b.always(domain.ObservedRunning))
		b.Clock.Advance(time.Hour)
		b.revive()
	}
	if report := b.process(b.always(domain.ObservedRunning)); report.Taken != 0 {
		t.Errorf("an orphan of three hours was matched again: %+v", report)
	}
	dead, err := b.Store.Troubled(b.ctx, ports.TroubledFilter{Limit: 10})
	if err != nil || len(dead) != 1 || dead[0].Status != ports.InboxDead {
		t.Errorf("dead letters %+v, %v", dead, err)
	}
}

// kill fails a delivery until it is given up.
func (b *storeBench) kill(m made, name string) int64 {
	b.t.Helper()
	b.receive(b.delivery(m, name))
	var id int64
	for range 10 {
		b.process(broken(&id))
		b.reviveAfter(id)
		if b.inboxRow(id).Status == ports.InboxDead {
			return id
		}
	}
	b.t.Fatalf("row %d is still %s after %d errors", id, b.inboxRow(id).Status, b.inboxRow(id).ErrorCount)
	return 0
}

func reviveDeadLetters(t *testing.T, b *storeBench) {
	m := b.submitted()
	first, second := b.kill(m, "evt-1"), b.kill(m, "evt-2")
	row := b.inboxRow(first)
	if row.ErrorCount != 3 || row.LastError != "truncated" || len(row.Payload) == 0 {
		t.Errorf("the dead row: %+v", row)
	}
	b.Clock.Advance(24 * time.Hour)
	if report := b.revive(); report != (ports.ReviveReport{}) {
		t.Errorf("a dead row was swept: %+v", report)
	}
	b.takenRows(0)
	dead, err := b.Store.Troubled(b.ctx, ports.TroubledFilter{Limit: 10})
	if err != nil || len(dead) != 2 || dead[0].ID != second || dead[1].ID != first {
		t.Errorf("dead letters %+v, %v; want the newest first", dead, err)
	}
	if dead, err = b.Store.Troubled(b.ctx, ports.TroubledFilter{Limit: 1}); err != nil || len(dead) != 1 {
		t.Errorf("limit 1: %d, %v", len(dead), err)
	}
}

func reviveRequeue(t *testing.T, b *storeBench) {
	m := b.submitted()
	id := b.kill(m, "evt-1")
	audit := ports.Audit{ActionID: domain.ActionID{ID: newID()}, Actor: "op@example.com", Action: "inbox.requeue", Reason: "the adapter is mended"}
	if err := b.Store.Requeue(b.ctx, id, audit); err != nil {
		t.Fatal(err)
	}
	audit.ActionID = domain.ActionID{ID: newID()}
	wantErr(t, "a pending row", b.Store.Requeue(b.ctx, id, audit), ports.ErrNotFound)
	report := b.process(b.always(domain.ObservedSucceeded))
	if report.Taken != 1 || report.Applied != 1 {
		t.Errorf("report %+v", report)
	}
	if v := b.task(m); v.Task.Phase != domain.PhaseProviderSucceeded {
		t.Errorf("task is %s", v.Task.Phase)
	}
	audit.ActionID = domain.ActionID{ID: newID()}
	wantErr(t, "a digested row", b.Store.Requeue(b.ctx, id, audit), ports.ErrNotFound)
	audit.ActionID = domain.ActionID{ID: newID()}
	wantErr(t, "an unknown row", b.Store.Requeue(b.ctx, id+1_000_000, audit), ports.ErrNotFound)
}

// reviveRequeueOfOthers: a person need not wait for the timer of a retrying or
// an orphaned row.
func reviveRequeueOfOthers(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.receive(b.delivery(m, "evt-1"))
	var retrying int64
	b.process(broken(&retrying))
	b.receive(b.delivery(made{vendorID: "job-unknown", token: "unknown"}, "evt-2"))
	var orphan int64
	b.process(func(row ports.InboxRow) ports.Decoded {
		orphan = row.ID
		return b.news(row, domain.ObservedRunning)
	})
	b.receive(b.delivery(m, "evt-3")) // pending: no trouble
	rows, err := b.Store.Troubled(b.ctx, ports.TroubledFilter{Limit: 10})
	if err != nil || len(rows) != 2 || rows[0].ID != orphan || rows[0].Status != ports.InboxOrphan ||
		rows[1].ID != retrying || rows[1].Status != ports.InboxRetry || rows[1].LastError == "" {
		t.Errorf("troubled rows %+v, %v; want the orphan and the retrying one", rows, err)
	}
	for _, id := range []int64{retrying, orphan} {
		audit := ports.Audit{ActionID: domain.ActionID{ID: newID()}, Actor: "op@example.com", Action: "inbox.requeue", Reason: "at once"}
		if err := b.Store.Requeue(b.ctx, id, audit); err != nil {
			t.Errorf("Requeue of a row that is %s: %v", b.inboxRow(id).Status, err)
		}
	}
	b.takenRows(3)
}
