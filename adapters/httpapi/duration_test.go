package httpapi

import (
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

func TestDurations(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	if got := f.do(request{path: "/admin/durations", key: f.operator}).Code; got != http.StatusForbidden {
		t.Errorf("a tenant's operator gets %d", got)
	}
	type page struct {
		Durations []durationView `json:"durations"`
	}
	if got := decoded[page](t, f.do(request{path: "/admin/durations", key: f.platform})); got.Durations == nil || len(got.Durations) != 0 {
		t.Errorf("before anything is learned: %+v", got)
	}
	f.succeeded(90 * time.Second)
	if _, err := f.store.LearnDurations(t.Context(), f.now, 10); err != nil {
		t.Fatal(err)
	}
	want := page{[]durationView{{
		Provider: "acme", Model: "kite-1", P50Seconds: 90, P95Seconds: 90, Samples: 1, UpdatedAt: wire.FormatTime(f.now),
	}}}
	if diff := cmp.Diff(want, decoded[page](t, f.do(request{path: "/admin/durations", key: f.platform}))); diff != "" {
		t.Errorf("durations (-want +got):\n%s", diff)
	}
}

// succeeded stores a job that took so long.
func (f *fixture) succeeded(took time.Duration) {
	f.t.Helper()
	id := domain.AttemptID{ID: wire.NewID()}
	_, err := f.store.Create(f.t.Context(), ports.CreateParams{
		Task:    domain.Task{ID: domain.TaskID{ID: wire.NewID()}, TenantID: f.tenantID, ProjectID: f.projectID, OnLateSuccess: domain.LateSuccessKeep},
		Attempt: domain.Attempt{ID: id, Provider: "acme", Model: "kite-1", AccountID: "main", ClientRequestID: id.String(), Credits: 1},
	})
	if err != nil {
		f.t.Fatal(err)
	}
	apply := func(in domain.Input) {
		f.t.Helper()
		results, err := f.store.Apply(f.t.Context(), []ports.Item{{Ref: ports.Ref{AttemptID: id}, Input: in}})
		if err != nil || results[0].Err != nil {
			f.t.Fatal(err, results[0].Err)
		}
	}
	lease := wire.NewID()
	apply(domain.Input{Kind: domain.InputSubmitStarted, Lease: lease, LeaseUntil: f.now.Add(time.Minute)})
	apply(domain.Input{Kind: domain.InputSubmitAccepted, Lease: lease, ProviderTaskID: "job"})
	f.now = f.now.Add(took)
	apply(domain.Input{Kind: domain.InputObservation, Observation: &domain.Observation{
		Provider: "acme", ProviderTaskID: "job", Source: domain.SourcePoll, Trust: domain.TrustAuthentic, Status: domain.ObservedSucceeded,
		Outputs: []domain.OutputRef{{Kind: "video", Ref: "r", URL: "https://files.example/v.mp4"}},
	}})
}

// Who reads a project's state, or streams it, is watching it; a creator is not.
func TestWatchedIsTold(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var told []domain.ProjectID
	f.server.cfg.Watched = func(p domain.ProjectID) { told = append(told, p) }
	id := f.submitted()
	if len(told) != 0 {
		t.Errorf("a create counts as watching: %v", told)
	}
	for i, path := range []string{f.tasks("/" + id), f.tasks(""), "/projects/" + f.project + "/events"} {
		f.do(request{path: path, key: f.reader})
		if len(told) != i+1 || told[i] != f.projectID {
			t.Errorf("after %s: told %v", path, told)
		}
	}
	f.do(request{path: f.tasks("/" + id), key: f.foreignKey})
	if len(told) != 3 {
		t.Error("a refused caller counts as watching")
	}
}
