package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

func busRetryTests() []storeTest {
	return []storeTest{
		{"Owed", busRetryOwed},
		{"ProjectsApart", busRetryProjectsApart},
		{"Groups", busRetryGroups},
		{"OutlivesCleaning", busRetryOutlivesCleaning},
	}
}

func (b *storeBench) dueRetries(group string, limit int) []ports.OutboxRow {
	b.t.Helper()
	rows, err := b.Store.DueRetries(b.ctx, group, b.Clock.Now(), limit)
	if err != nil {
		b.t.Fatalf("DueRetries: %v", err)
	}
	return rows
}

// outbox makes n events of one project and returns their rows.
func (b *storeBench) outbox(n int) []ports.OutboxRow {
	b.t.Helper()
	for range n {
		b.create()
	}
	rows := b.pending(b.lease(newID()), n)
	if len(rows) != n {
		b.t.Fatalf("%d rows in the outbox, want %d", len(rows), n)
	}
	return rows
}

func busRetryOwed(t *testing.T, b *storeBench) {
	rows := b.outbox(4)
	at := b.Clock.Now().Add(time.Second)
	for range 2 { // owing twice is owing once
		if err := b.Store.AddRetries(b.ctx, "dispatch", []int64{rows[2].ID, rows[0].ID, rows[1].ID}, at); err != nil {
			t.Fatal(err)
		}
	}
	if due := b.dueRetries("dispatch", 10); len(due) != 0 {
		t.Errorf("%d rows before their time", len(due))
	}
	b.Clock.Advance(time.Second)
	due := b.dueRetries("dispatch", 10)
	if len(due) != 3 {
		t.Fatalf("%d rows at their time, want 3", len(due))
	}
	for i := range due {
		if due[i].ID != rows[i].ID || due[i].Event.Cursor() != rows[i].Event.Cursor() {
			t.Errorf("row %d: %+v, want %+v", i, due[i], rows[i])
		}
	}
	if limited := b.dueRetries("dispatch", 2); len(limited) != 2 || limited[0].ID != rows[0].ID {
		t.Errorf("limit 2: %+v", limited)
	}
	later := b.Clock.Now().Add(time.Minute)
	if err := b.Store.SettleRetries(b.ctx, "dispatch", []int64{rows[0].ID}, []int64{rows[1].ID}, later); err != nil {
		t.Fatal(err)
	}
	if due = b.dueRetries("dispatch", 10); len(due) != 0 {
		t.Errorf("due behind an event of the same project that was put off: %+v", due)
	}
	b.Clock.Advance(time.Minute)
	due = b.dueRetries("dispatch", 10)
	if len(due) != 2 || due[0].ID != rows[1].ID || due[0].Tries != 1 || due[1].ID != rows[2].ID || due[1].Tries != 0 {
		t.Errorf("a minute later: %+v", due)
	}
}

// busRetryProjectsApart: what one project waits for holds up no other.
func busRetryProjectsApart(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	b.create()
	b.createIn(other)
	rows := b.pending(b.lease(newID()), 10)
	for _, row := range rows {
		at := b.Clock.Now()
		if row.Event.ProjectID == b.project {
			at = at.Add(time.Hour)
		}
		if err := b.Store.AddRetries(b.ctx, "dispatch", []int64{row.ID}, at); err != nil {
			t.Fatal(err)
		}
	}
	if due := b.dueRetries("dispatch", 10); len(due) != 1 || due[0].Event.ProjectID != other {
		t.Errorf("due beside a project that waits: %+v", due)
	}
}

func busRetryGroups(t *testing.T, b *storeBench) {
	rows := b.outbox(2)
	now := b.Clock.Now()
	for group, id := range map[string]int64{"dispatch": rows[0].ID, "media": rows[1].ID} {
		if err := b.Store.AddRetries(b.ctx, group, []int64{id}, now); err != nil {
			t.Fatal(err)
		}
	}
	if err := b.Store.SettleRetries(b.ctx, "dispatch", rowIDs(rows), nil, now); err != nil {
		t.Fatal(err)
	}
	if due := b.dueRetries("dispatch", 10); len(due) != 0 {
		t.Errorf("dispatch is owed %+v", due)
	}
	if due := b.dueRetries("media", 10); len(due) != 1 || due[0].ID != rows[1].ID {
		t.Errorf("media is owed %+v", due)
	}
	if due := b.dueRetries("nobody", 10); len(due) != 0 {
		t.Errorf("an unknown group is owed %+v", due)
	}
}

// busRetryOutlivesCleaning: an owed event is not cleaned away as published.
func busRetryOutlivesCleaning(t *testing.T, b *storeBench) {
	b.create()
	shards := b.lease(newID())
	rows := b.pending(shards, 10)
	if err := b.Store.AddRetries(b.ctx, "dispatch", rowIDs(rows), b.Clock.Now()); err != nil {
		t.Fatal(err)
	}
	b.published(shards, rows...)
	b.Clock.Advance(time.Hour)
	if _, err := b.Store.Clean(b.ctx, b.Clock.Now(), 10); err != nil {
		t.Fatal(err)
	}
	if due := b.dueRetries("dispatch", 10); len(due) != 1 || due[0].Event.Cursor() != rows[0].Event.Cursor() {
		t.Errorf("owed after cleaning: %+v", due)
	}
}
