package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func deskTests() []storeTest {
	return []storeTest{
		{"CaseOpensAndCloses", deskCaseOpensAndCloses},
		{"CasesByKind", deskCasesByKind},
		{"CaseOnce", deskCaseOnce},
		{"Conflict", deskConflict},
		{"CloseConflict", deskCloseConflict},
		{"RepairHeads", deskRepairHeads},
		{"CleanExpired", deskCleanExpired},
	}
}

func (b *storeBench) cases(kind domain.CaseKind) []ports.Case {
	b.t.Helper()
	cases, err := b.Store.Cases(b.ctx, kind, 100)
	if err != nil {
		b.t.Fatalf("Cases: %v", err)
	}
	return cases
}

func (b *storeBench) conflicts() []ports.ConflictRow {
	b.t.Helper()
	conflicts, err := b.Store.Conflicts(b.ctx, 100)
	if err != nil {
		b.t.Fatalf("Conflicts: %v", err)
	}
	return conflicts
}

// lostSubmit makes a task of whose submit nobody knows what became.
func (b *storeBench) lostSubmit() made {
	b.t.Helper()
	m := b.create()
	start := b.started(m)
	b.must(start, item(m, domain.Input{Kind: domain.InputSubmitUnknown, Lease: start.Input.Lease}))
	return m
}

func deskCaseOpensAndCloses(t *testing.T, b *storeBench) {
	m := b.lostSubmit()
	cases := b.cases("")
	if len(cases) != 1 {
		t.Fatalf("%d cases, want 1", len(cases))
	}
	c := cases[0]
	if c.Kind != domain.CaseSubmitUnknown || c.TaskID != m.task || c.AttemptID != m.attempt || c.ClosedAt != nil || !c.OpenedAt.Equal(b.Clock.Now()) {
		t.Errorf("case %+v", c)
	}
	b.Clock.Advance(time.Minute)
	created := b.resolve(m, domain.ResolveCreatedWithID)
	created.Input.Resolution.ProviderTaskID = m.vendorID
	b.must(created)
	if cases = b.cases(""); len(cases) != 0 {
		t.Errorf("open cases after the resolution: %+v", cases)
	}
	if c, err := b.Store.Case(b.ctx, c.ID); err != nil || c.ClosedAt == nil || !c.ClosedAt.Equal(b.Clock.Now()) {
		t.Errorf("the closed case: %+v, %v", c, err)
	}
	_, err := b.Store.Case(b.ctx, c.ID+1_000_000)
	wantErr(t, "an unknown case", err, ports.ErrNotFound)
}

func deskCasesByKind(t *testing.T, b *storeBench) {
	first := b.lostSubmit()
	b.Clock.Advance(time.Second)
	slow := b.submitted()
	b.must(item(slow, domain.Input{Kind: domain.InputOverdue}))
	b.Clock.Advance(time.Second)
	second := b.lostSubmit()
	unknown := b.cases(domain.CaseSubmitUnknown)
	if len(unknown) != 2 || unknown[0].TaskID != first.task || unknown[1].TaskID != second.task {
		t.Errorf("submit_unknown cases %+v, want the oldest first", unknown)
	}
	if overdue := b.cases(domain.CaseOverdue); len(overdue) != 1 || overdue[0].TaskID != slow.task {
		t.Errorf("overdue cases %+v", overdue)
	}
	if all := b.cases(""); len(all) != 3 {
		t.Errorf("%d cases of all kinds, want 3", len(all))
	}
	if limited, err := b.Store.Cases(b.ctx, "", 2); err != nil || len(limited) != 2 || limited[0].TaskID != first.task {
		t.Errorf("limit 2: %+v, %v", limited, err)
	}
}

// deskCaseOnce: one open case of a kind per attempt, however often it is found.
func deskCaseOnce(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded), b.saw(m, domain.ObservedCanceled))
	if cases := b.cases(domain.CaseConflict); len(cases) != 1 {
		t.Errorf("%d conflict cases of one attempt, want 1", len(cases))
	}
}

func deskConflict(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed))
	b.Clock.Advance(time.Second)
	r := b.apply(b.saw(m, domain.ObservedSucceeded))[0]
	wantVerdict(t, "a contradicting verdict", r, domain.VerdictConflict, domain.ConflictTerminal)
	conflicts := b.conflicts()
	if len(conflicts) != 1 {
		t.Fatalf("%d conflicts, want 1", len(conflicts))
	}
	c := conflicts[0]
	if c.Kind != domain.ConflictTerminal || c.TaskID != m.task || c.AttemptID != m.attempt || c.Have != domain.AttemptFailed || c.Got != domain.AttemptSucceeded || c.ClosedAt != nil || !c.OpenedAt.Equal(b.Clock.Now()) {
		t.Errorf("conflict %+v", c)
	}
	want := b.observation(m, domain.ObservedSucceeded).Outputs[0]
	if len(c.Outputs) != 1 || c.Outputs[0] != want {
		t.Errorf("its outputs %+v, want %+v", c.Outputs, want)
	}
	if got, err := b.Store.Conflict(b.ctx, c.ID); err != nil || got.TaskID != m.task || len(got.Outputs) != 1 {
		t.Errorf("Conflict: %+v, %v", got, err)
	}
	_, err := b.Store.Conflict(b.ctx, c.ID+1_000_000)
	wantErr(t, "an unknown conflict", err, ports.ErrNotFound)
	if v := b.task(m); v.Task.Phase != domain.PhaseFailed {
		t.Errorf("the conflict changed the task to %s", v.Task.Phase)
	}
	if n := len(entries(b.timeline(m), "conflict")); n != 1 {
		t.Errorf("%d conflicts on the timeline, want 1", n)
	}
}

func deskCloseConflict(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded))
	id := b.conflicts()[0].ID
	audit := func() ports.Audit {
		return ports.Audit{ActionID: domain.ActionID{ID: newID()}, Actor: "op@example.com", Action: "conflict.close", Reason: "the vendor says failed"}
	}
	if err := b.Store.CloseConflict(b.ctx, id, "kept", audit()); err != nil {
		t.Fatal(err)
	}
	if conflicts := b.conflicts(); len(conflicts) != 0 {
		t.Errorf("open conflicts %+v", conflicts)
	}
	if c, err := b.Store.Conflict(b.ctx, id); err != nil || c.ClosedAt == nil || c.Resolution != "kept" {
		t.Errorf("the closed conflict: %+v, %v", c, err)
	}
	wantErr(t, "a closed conflict", b.Store.CloseConflict(b.ctx, id, "again", audit()), ports.ErrNotFound)
	wantErr(t, "an unknown conflict", b.Store.CloseConflict(b.ctx, id+1_000_000, "kept", audit()), ports.ErrNotFound)
	if audits := entries(b.timeline(m), "audit"); len(audits) != 1 {
		t.Errorf("audits on the timeline: %+v", audits)
	}
}

func deskRepairHeads(t *testing.T, b *storeBench) {
	repair := func(want ...domain.ProjectID) {
		t.Helper()
		repaired, err := b.Store.RepairHeads(b.ctx, 10)
		if err != nil || len(repaired) != len(want) || len(want) == 1 && repaired[0] != want[0] {
			t.Errorf("repaired %v, %v; want %v", repaired, err, want)
		}
	}
	repair()
	for range 3 {
		b.create()
	}
	b.createIn(b.newProject(b.tenant, "another"))
	repair()
	if b.SetHead == nil {
		t.Skip("this store cannot be damaged on demand")
	}
	b.SetHead(t, b.project, 1)
	repair(b.project)
	repair()
	b.create()
	b.checkStream(b.events(b.project))
	if head := b.head(b.project); head.EventID != 4 {
		t.Errorf("head %v, want 4", head)
	}
}

func deskCleanExpired(t *testing.T, b *storeBench) {
	p := b.params()
	p.Idempotency = b.key("k", "body")
	m := b.createWith(p)
	if n, err := b.Store.CleanExpired(b.ctx, b.Clock.Now(), 100); err != nil || len(n) != 0 {
		t.Fatalf("%v live rows were removed, %v", n, err)
	}
	if result, err := b.Store.Create(b.ctx, p); err != nil || !result.Replayed || result.View.Task.ID != m.task {
		t.Errorf("a live key was cleaned: %+v, %v", result, err)
	}
	now := b.Clock.Advance(25 * time.Hour)
	if n, err := b.Store.CleanExpired(b.ctx, now, 100); err != nil || len(n) != 1 || n["idempotency_keys"] != 1 {
		t.Fatalf("%v were removed, want the key, %v", n, err)
	}
	if v := b.task(m); v.Task.ID != m.task || len(b.events(b.project)) != 1 {
		t.Errorf("cleaning touched the task: %+v", v)
	}
	again := b.params()
	again.Idempotency = b.key("k", "body")
	if result, err := b.Store.Create(b.ctx, again); err != nil || result.Replayed {
		t.Errorf("an expired key: replayed %v, %v", result.Replayed, err)
	}
}
