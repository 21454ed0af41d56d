package porttest

import (
	"slices"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func eventsTests() []storeTest {
	return []storeTest{
		{"EmptyStream", eventsEmptyStream},
		{"AfterPages", eventsAfterPages},
		{"Content", eventsContent},
		{"BadCursors", eventsBadCursors},
		{"Expired", eventsExpired},
		{"TimeIsMonotone", eventsTimeIsMonotone},
		{"Since", eventsSince},
		{"Heads", eventsHeads},
		{"ProjectsApart", eventsProjectsApart},
	}
}

// after reads a page and fails the test on an error.
func (b *storeBench) after(project domain.ProjectID, cursor domain.Cursor, limit int) ports.EventPage {
	b.t.Helper()
	page, err := b.Store.After(b.ctx, project, cursor, limit)
	if err != nil {
		b.t.Fatalf("After(%v): %v", cursor, err)
	}
	return page
}

func eventsEmptyStream(t *testing.T, b *storeBench) {
	for name, project := range map[string]domain.ProjectID{"new": b.project, "unknown": {ID: newID()}} {
		if head := b.head(project); head != (domain.Cursor{}) {
			t.Errorf("head of a %s project: %v", name, head)
		}
		if page := b.after(project, domain.Cursor{}, 10); len(page.Events) != 0 || page.Reset != "" || page.Head != (domain.Cursor{}) {
			t.Errorf("a %s project from 0: %+v", name, page)
		}
		if page := b.after(project, domain.Cursor{EventID: 1}, 10); page.Reset != ports.ResetFuture {
			t.Errorf("a %s project from 1: reset %q, want %q", name, page.Reset, ports.ResetFuture)
		}
	}
}

func eventsAfterPages(t *testing.T, b *storeBench) {
	for range 10 {
		b.create()
	}
	all := b.events(b.project)
	if len(all) != 10 {
		t.Fatalf("%d events, want 10", len(all))
	}
	head := all[9].Cursor()
	for _, from := range []int{0, 1, 5, 9, 10} {
		cursor := domain.Cursor{}
		if from > 0 {
			cursor = all[from-1].Cursor()
		}
		page := b.after(b.project, cursor, 4)
		want := all[from:min(from+4, 10)]
		if page.Reset != "" || page.Head != head || !sameEvents(page.Events, want) {
			t.Errorf("after %v: %d events, reset %q, head %v; want %d, head %v", cursor, len(page.Events), page.Reset, page.Head, len(want), head)
		}
		bare := b.after(b.project, domain.Cursor{EventID: int64(from)}, 4)
		if bare.Reset != "" || !sameEvents(bare.Events, want) {
			t.Errorf("after the bare number %d: %d events, reset %q", from, len(bare.Events), bare.Reset)
		}
	}
}

func sameEvents(a, b []ports.StoredEvent) bool {
	return slices.EqualFunc(a, b, func(x, y ports.StoredEvent) bool {
		return x.EventID == y.EventID && x.Cursor() == y.Cursor() && x.TaskID == y.TaskID && x.CreatedAt.Equal(y.CreatedAt)
	})
}

// eventsContent: what is read back is what the domain decided.
func eventsContent(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.progressed(m, 42))
	stored := b.must(b.saw(m, domain.ObservedFailed))
	events := b.events(b.project)
	got, want := events[len(events)-1], *stored.Event
	if got.Error == nil || *got.Error != *want.Error {
		t.Errorf("error %v, want %v", got.Error, want.Error)
	}
	if p := events[len(events)-2].Progress; p == nil || *p != 42 {
		t.Errorf("progress %v, want 42", p)
	}
	if got.Progress != nil && want.Progress == nil || got.Progress == nil && want.Progress != nil {
		t.Errorf("progress %v, want %v", got.Progress, want.Progress)
	}
	got.Error, want.Error, got.Progress, want.Progress = nil, nil, nil, nil
	if got.Event != want.Event || got.EventID != want.EventID || !got.CreatedAt.Equal(want.CreatedAt) {
		t.Errorf("read %+v\nwant %+v", got, want)
	}
	if got.TenantID != b.tenant || got.ProjectID != b.project || got.AttemptID != m.attempt || got.TraceID.IsZero() || got.UserID.IsZero() {
		t.Errorf("identity of the event: %+v", got)
	}
	if got.CreatedAt.Location() != time.UTC || got.CreatedAt.Nanosecond()%1e6 != 0 {
		t.Errorf("time %v, want whole milliseconds in UTC", got.CreatedAt)
	}
}

func eventsBadCursors(t *testing.T, b *storeBench) {
	for range 3 {
		b.create()
	}
	all := b.events(b.project)
	cases := []struct {
		name   string
		cursor domain.Cursor
		want   ports.ResetReason
	}{
		{"negative", domain.Cursor{EventID: -1}, ports.ResetBad},
		{"future", domain.Cursor{EventID: 4}, ports.ResetFuture},
		{"far future", domain.Cursor{EventID: 1 << 62, Tag: "abc"}, ports.ResetFuture},
		{"wrong tag", domain.Cursor{EventID: 2, Tag: "zzzzzzzz"}, ports.ResetTag},
		{"tag of another event", domain.Cursor{EventID: 2, Tag: all[2].Cursor().Tag}, ports.ResetTag},
		{"wrong tag at the head", domain.Cursor{EventID: 3, Tag: all[0].Cursor().Tag}, ports.ResetTag},
		{"zero with a tag", domain.Cursor{Tag: "abc"}, ""},
		{"good", all[1].Cursor(), ""},
	}
	for _, c := range cases {
		page := b.after(b.project, c.cursor, 10)
		if page.Reset != c.want {
			t.Errorf("%s: reset %q, want %q", c.name, page.Reset, c.want)
		}
		if c.want != "" && len(page.Events) != 0 {
			t.Errorf("%s: %d events beside a reset", c.name, len(page.Events))
		}
		if page.Head != all[2].Cursor() {
			t.Errorf("%s: head %v, want %v", c.name, page.Head, all[2].Cursor())
		}
	}
}

func eventsExpired(t *testing.T, b *storeBench) {
	if b.ExpireEvents == nil {
		t.Skip("this store cannot expire events on demand")
	}
	for range 6 {
		b.create()
	}
	all := b.events(b.project)
	if page := b.after(b.project, domain.Cursor{}, 10); page.Reset != "" || !sameEvents(page.Events, all) {
		t.Errorf("from the beginning: reset %q and %d events, want all %d", page.Reset, len(page.Events), len(all))
	}
	b.ExpireEvents(t, b.project, 4)
	if page := b.after(b.project, domain.Cursor{}, 10); page.Reset != ports.ResetExpired || len(page.Events) > 0 {
		t.Errorf("from a beginning that is gone: reset %q and %d events, want %q", page.Reset, len(page.Events), ports.ResetExpired)
	}
	for i, want := range []ports.ResetReason{ports.ResetExpired, ports.ResetExpired, ports.ResetExpired, ports.ResetExpired, "", ""} {
		page := b.after(b.project, all[i].Cursor(), 10)
		if page.Reset != want {
			t.Errorf("after event %d: reset %q, want %q", i+1, page.Reset, want)
		}
		if want == "" && !sameEvents(page.Events, all[i+1:]) {
			t.Errorf("after event %d: %d events, want %d", i+1, len(page.Events), len(all[i+1:]))
		}
	}
}

func eventsTimeIsMonotone(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.Clock.Advance(-5 * time.Second)
	b.must(b.progressed(m, 10))
	b.create()
	b.Clock.Advance(10 * time.Second)
	b.create()
	events := b.events(b.project)
	b.checkStream(events)
	if last := events[len(events)-1].CreatedAt; !last.Equal(b.Clock.Now()) {
		t.Errorf("last event at %v, the clock says %v", last, b.Clock.Now())
	}
}

func eventsSince(t *testing.T, b *storeBench) {
	other := b.newProject(b.tenant, "another")
	b.create()
	b.Clock.Advance(time.Second)
	mark := b.Clock.Now()
	b.createIn(other)
	b.create()
	b.Clock.Advance(time.Second)
	b.createIn(other)
	events, err := b.Store.Since(b.ctx, mark, 100)
	if err != nil {
		t.Fatal(err)
	}
	if len(events) != 3 {
		t.Fatalf("%d events since %v, want 3", len(events), mark)
	}
	for i, e := range events {
		if i > 0 && e.CreatedAt.Before(events[i-1].CreatedAt) {
			t.Errorf("event %d is older than the one before", i)
		}
	}
	if last := events[2]; last.ProjectID != other || last.EventID != 2 || last.Cursor() != b.head(other) {
		t.Errorf("last event %+v", last)
	}
	if events, err = b.Store.Since(b.ctx, mark, 2); err != nil || len(events) != 2 || !events[1].CreatedAt.Equal(mark) {
		t.Errorf("limit 2: %d events, %v", len(events), err)
	}
	if events, err = b.Store.Since(b.ctx, b.Clock.Now().Add(time.Second), 10); err != nil || len(events) != 0 {
		t.Errorf("since later: %d events, %v", len(events), err)
	}
}

func eventsHeads(t *testing.T, b *storeBench) {
	other, silent := b.newProject(b.tenant, "another"), b.newProject(b.tenant, "silent")
	b.create()
	b.create()
	b.createIn(other)
	heads, err := b.Store.Heads(b.ctx, []domain.ProjectID{b.project, other, silent, {ID: newID()}})
	if err != nil || len(heads) != 2 || heads[b.project] != 2 || heads[other] != 1 {
		t.Errorf("heads %v, %v", heads, err)
	}
	if heads, err = b.Store.Heads(b.ctx, nil); err != nil || len(heads) != 0 {
		t.Errorf("heads of nothing: %v, %v", heads, err)
	}
}

// eventsProjectsApart: each project counts for itself and shows nothing of
// another (I14).
func eventsProjectsApart(t *testing.T, b *storeBench) {
	tenant := b.newTenant("another", 1000)
	other := b.newProject(tenant, "project")
	p := b.params()
	p.Task.TenantID, p.Task.ProjectID = tenant, other
	b.createWith(p)
	mine := b.submitted()
	for project, want := range map[domain.ProjectID]int{b.project: 2, other: 1} {
		events := b.events(project)
		b.checkStream(events)
		if len(events) != want {
			t.Errorf("%d events, want %d", len(events), want)
		}
	}
	for _, e := range b.events(b.project) {
		if e.TaskID != mine.task || e.TenantID != b.tenant {
			t.Errorf("an event of somebody else: %+v", e)
		}
	}
}
