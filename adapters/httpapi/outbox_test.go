package httpapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// parkAll refuses everything that waits, once, and parks it with that.
func parkAll(t *testing.T, f *fixture) []domain.ProjectID {
	t.Helper()
	now := f.server.cfg.Now()
	shards, err := f.store.LeaseShards(t.Context(), ports.ShardParams{Owner: wire.NewID(), Want: ports.OutboxShards, Now: now, For: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	rows, err := f.store.Pending(t.Context(), ports.PendingParams{Shards: shards, Limit: 100})
	if err != nil {
		t.Fatal(err)
	}
	var projects []domain.ProjectID
	for _, row := range rows {
		parked, err := f.store.MarkFailed(t.Context(), ports.PublishFailure{ProjectID: row.Event.ProjectID, Lease: shards[row.Shard], NextAt: now, MaxTries: 1, ErrorCode: "refused"})
		if err != nil {
			t.Fatal(err)
		}
		if parked {
			projects = append(projects, row.Event.ProjectID)
		}
	}
	return projects
}

type outboxAnswer struct {
	Outbox outboxView `json:"outbox"`
}

type unparkAnswer struct {
	Parked parkedView `json:"parked"`
	DryRun bool       `json:"dry_run"`
}

func TestOutboxDesk(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.submitted()
	look := func() outboxView {
		t.Helper()
		w := f.do(request{path: "/admin/outbox", key: f.platform})
		if w.Code != http.StatusOK {
			t.Fatalf("outbox: %d %s", w.Code, w.Body)
		}
		return decoded[outboxAnswer](t, w).Outbox
	}
	if got := look(); got.Rows == 0 || got.OldestAt == nil || got.Projects != 0 || got.Parked == nil || len(got.Parked) != 0 {
		t.Errorf("before: %+v", got)
	}
	waiting := look().Rows
	projects := parkAll(t, f)
	if len(projects) != 1 {
		t.Fatalf("parked %v, want one project", projects)
	}
	id := wire.ProjectID(projects[0])
	if got := look(); got.Rows != 0 || got.OldestAt != nil || got.AgeSeconds != 0 || got.Projects != 1 || len(got.Parked) != 1 ||
		got.Parked[0].ProjectID != id || got.Parked[0].ErrorCode != "refused" || got.Parked[0].Rows != waiting || got.Parked[0].Refusals != 1 {
		t.Errorf("parked: %+v", got)
	}
	unpark := func(id, body string) request {
		return request{method: http.MethodPost, path: "/admin/outbox/" + id + "/unpark", key: f.platform, body: body}
	}
	wantProblem(t, f.do(unpark("prj_1", `{"reason":"r"}`)), http.StatusNotFound, "not_found")
	wantProblem(t, f.do(unpark(id, `{"reason":""}`)), http.StatusUnprocessableEntity, "validation_failed")
	wantProblem(t, f.do(unpark(wire.ProjectID(domain.ProjectID{ID: wire.NewID()}), `{"reason":"r"}`)), http.StatusNotFound, "not_found")
	w := f.do(unpark(id, `{"reason":"mended","dry_run":true}`))
	if got := decoded[unparkAnswer](t, w); w.Code != http.StatusOK || !got.DryRun || got.Parked.Rows != waiting || look().Projects != 1 {
		t.Errorf("dry run: %d %+v", w.Code, got)
	}
	w = f.do(unpark(id, `{"reason":"mended"}`))
	if got := decoded[unparkAnswer](t, w); w.Code != http.StatusOK || got.DryRun || got.Parked.ProjectID != id {
		t.Errorf("unpark: %d %+v", w.Code, got)
	}
	if got := look(); got.Rows != waiting || got.Projects != 0 {
		t.Errorf("afterwards: %+v", got)
	}
	wantProblem(t, f.do(unpark(id, `{"reason":"again"}`)), http.StatusNotFound, "not_found")
}
