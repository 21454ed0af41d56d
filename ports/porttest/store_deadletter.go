package porttest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func deadLetterTests() []storeTest {
	return []storeTest{
		{"Filter", deadLetterFilter},
		{"Pages", deadLetterPages},
		{"Groups", deadLetterGroups},
		{"RequeueManyInTime", deadLetterRequeueMany},
		{"RequeueManyOfWaiting", deadLetterRequeueWaiting},
		{"ReadPayload", deadLetterReadPayload},
	}
}

// fail has deliveries fail once with a code, so that they wait for a retry, and
// returns their numbers.
func (b *storeBench) failing(m made, code string, names ...string) []int64 {
	b.t.Helper()
	for _, name := range names {
		b.receive(b.delivery(m, name))
	}
	var ids []int64
	b.process(func(row ports.InboxRow) ports.Decoded {
		ids = append(ids, row.ID)
		return ports.Decoded{Err: errors.New("no JSON"), Code: code}
	})
	if len(ids) != len(names) {
		b.t.Fatalf("%d of %d deliveries failed", len(ids), len(names))
	}
	slices.Sort(ids)
	return ids
}

func (b *storeBench) troubled(filter ports.TroubledFilter) []int64 {
	b.t.Helper()
	if filter.Limit == 0 {
		filter.Limit = 100
	}
	rows, err := b.Store.Troubled(b.ctx, filter)
	if err != nil {
		b.t.Fatalf("Troubled: %v", err)
	}
	ids := []int64{}
	for _, row := range rows {
		if row.Payload != nil {
			b.t.Errorf("row %d comes with its payload", row.ID)
		}
		ids = append(ids, row.ID)
	}
	return ids
}

func deadLetterFilter(t *testing.T, b *storeBench) {
	m := b.submitted()
	cut := b.failing(m, "cut", "evt-1")[0]
	b.Clock.Advance(time.Hour)
	panicked := b.failing(m, "panic", "evt-2")[0]
	b.receive(b.delivery(made{vendorID: "job-unknown", token: "unknown"}, "evt-3"))
	var orphan int64
	b.process(func(row ports.InboxRow) ports.Decoded {
		orphan = row.ID
		return b.news(row, domain.ObservedRunning)
	})
	for _, tt := range []struct {
		name   string
		filter ports.TroubledFilter
		want   []int64
	}{
		{"everything, the newest first", ports.TroubledFilter{}, []int64{orphan, panicked, cut}},
		{"by status", ports.TroubledFilter{Status: ports.InboxRetry}, []int64{panicked, cut}},
		{"by code", ports.TroubledFilter{Code: "cut"}, []int64{cut}},
		{"by vendor", ports.TroubledFilter{Provider: acme}, []int64{orphan, panicked, cut}},
		{"by another vendor", ports.TroubledFilter{Provider: "other"}, []int64{}},
		{"by age", ports.TroubledFilter{ReceivedBefore: b.Clock.Now().Add(-time.Minute)}, []int64{cut}},
		{"by all", ports.TroubledFilter{Status: ports.InboxRetry, Code: "panic", Provider: acme}, []int64{panicked}},
		{"given up", ports.TroubledFilter{Status: ports.InboxDead}, []int64{}},
	} {
		if got := b.troubled(tt.filter); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

func deadLetterPages(t *testing.T, b *storeBench) {
	ids := b.failing(b.submitted(), "cut", "1", "2", "3", "4", "5")
	var seen []int64
	page := ports.TroubledFilter{Limit: 2}
	for {
		got := b.troubled(page)
		if len(got) == 0 {
			break
		}
		seen = append(seen, got...)
		page.BeforeID = got[len(got)-1]
	}
	slices.Reverse(seen)
	if !slices.Equal(seen, ids) {
		t.Errorf("pages give %v, want %v", seen, ids)
	}
	if got := b.troubled(ports.TroubledFilter{AfterID: ids[1], BeforeID: ids[4]}); !slices.Equal(got, []int64{ids[3], ids[2]}) {
		t.Errorf("between two: %v", got)
	}
}

func deadLetterGroups(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.failing(m, "panic", "1")
	first := b.Clock.Now()
	b.failing(m, "cut", "2")
	b.Clock.Advance(time.Hour)
	b.failing(m, "cut", "3")
	groups, err := b.Store.TroubledGroups(b.ctx, ports.TroubledFilter{Status: ports.InboxRetry, Limit: 100})
	want := []ports.TroubledGroup{
		{Provider: acme, Status: ports.InboxRetry, Code: "cut", Rows: 2, Oldest: first, Newest: b.Clock.Now()},
		{Provider: acme, Status: ports.InboxRetry, Code: "panic", Rows: 1, Oldest: first, Newest: first},
	}
	if err != nil || !slices.Equal(groups, want) {
		t.Errorf("groups %+v, %v; want %+v", groups, err, want)
	}
	if groups, err = b.Store.TroubledGroups(b.ctx, ports.TroubledFilter{Limit: 1}); err != nil || len(groups) != 1 || groups[0].Code != "panic" {
		t.Errorf("of the oldest row: %+v, %v", groups, err)
	}
	if groups, err = b.Store.TroubledGroups(b.ctx, ports.TroubledFilter{Status: ports.InboxDead, Limit: 100}); err != nil || len(groups) != 0 {
		t.Errorf("of the dead: %+v, %v", groups, err)
	}
}

func requeueAudit() ports.Audit {
	return ports.Audit{ActionID: domain.ActionID{ID: newID()}, Actor: "op@example.com", Action: "inbox.requeue_many", Reason: "the adapter is mended"}
}

// deadLetterRequeueMany: rows come back in their order and at their pace.
func deadLetterRequeueMany(t *testing.T, b *storeBench) {
	m := b.submitted()
	var ids []int64
	for _, name := range []string{"1", "2", "3", "4"} {
		ids = append(ids, b.kill(m, name))
	}
	start := b.Clock.Now()
	params := ports.RequeueParams{
		Filter: ports.TroubledFilter{Status: ports.InboxDead, Limit: 3}, Start: start, Step: 10 * time.Second, Audit: requeueAudit(),
	}
	report, err := b.Store.RequeueMany(b.ctx, params)
	if err != nil || report != (ports.RequeueReport{Rows: 3, LastID: ids[2]}) {
		t.Fatalf("report %+v, %v; want the three oldest", report, err)
	}
	for i, id := range ids[:3] {
		row, due := b.inboxRow(id), start.Add(time.Duration(i)*params.Step)
		if row.Status != ports.InboxRetry || row.ErrorCount != 0 || !row.NextRetryAt.Equal(due) {
			t.Errorf("row %d is %s with %d errors, due %v; want %v", i, row.Status, row.ErrorCount, row.NextRetryAt, due)
		}
	}
	if row := b.inboxRow(ids[3]); row.Status != ports.InboxDead {
		t.Errorf("the fourth is %s", row.Status)
	}
	for i := range 3 {
		if report := b.revive(); report != (ports.ReviveReport{Revived: 1}) {
			t.Errorf("after %d steps: %+v", i, report)
		}
		b.takenRows(1)
		b.Clock.Advance(params.Step)
	}
	params.Audit = requeueAudit()
	params.Filter.AfterID = ids[3]
	if report, err = b.Store.RequeueMany(b.ctx, params); err != nil || report != (ports.RequeueReport{}) {
		t.Errorf("nothing to take: %+v, %v", report, err)
	}
}

// deadLetterRequeueWaiting: rows that wait by themselves can be given another time.
func deadLetterRequeueWaiting(t *testing.T, b *storeBench) {
	ids := b.failing(b.submitted(), "cut", "1", "2")
	report, err := b.Store.RequeueMany(b.ctx, ports.RequeueParams{
		Filter: ports.TroubledFilter{Status: ports.InboxRetry, Limit: 10}, Start: b.Clock.Now(), Audit: requeueAudit(),
	})
	if err != nil || report.Rows != len(ids) {
		t.Fatalf("report %+v, %v", report, err)
	}
	if report := b.revive(); report.Revived != len(ids) {
		t.Errorf("revived %+v", report)
	}
	b.takenRows(len(ids))
}

func deadLetterReadPayload(t *testing.T, b *storeBench) {
	id := b.failing(b.submitted(), "cut", "1")[0]
	audit := requeueAudit()
	row, err := b.Store.ReadPayload(b.ctx, id, audit)
	if err != nil || len(row.Payload) == 0 || string(row.Payload) != string(b.inboxRow(id).Payload) {
		t.Errorf("row %+v, %v", row, err)
	}
	audit.ActionID = domain.ActionID{ID: newID()}
	_, err = b.Store.ReadPayload(b.ctx, id+1_000_000, audit)
	wantErr(t, "an unknown row", err, ports.ErrNotFound)
}
