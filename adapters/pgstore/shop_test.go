package pgstore_test

import (
	"crypto/sha256"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// shop is a store with a tenant and a project.
type shop struct {
	*pgstore.Store
	tenant  domain.TenantID
	project domain.ProjectID
}

func openShop(t *testing.T, cfg pgstore.Config) shop {
	t.Helper()
	s := shop{Store: open(t, cfg), tenant: domain.TenantID{ID: wire.NewID()}, project: domain.ProjectID{ID: wire.NewID()}}
	if _, err := s.CreateTenant(t.Context(), ports.Tenant{ID: s.tenant, Name: "tenant", Credits: 1000}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.CreateProject(t.Context(), ports.Project{ID: s.project, TenantID: s.tenant, Name: "project"}); err != nil {
		t.Fatal(err)
	}
	return s
}

func (s shop) params() ports.CreateParams {
	task, attempt := domain.TaskID{ID: wire.NewID()}, domain.AttemptID{ID: wire.NewID()}
	hash := sha256.Sum256([]byte(attempt.String()))
	return ports.CreateParams{
		Task: domain.Task{ID: task, TenantID: s.tenant, ProjectID: s.project},
		Attempt: domain.Attempt{
			ID: attempt, TaskID: task, Provider: "acme", Model: "video-1", AccountID: "main", ClientRequestID: attempt.String(), Credits: 5,
		},
		TokenHash: hash[:], Input: ports.TaskInput{Prompt: "a red kite over the sea"},
	}
}

// submitted makes a task that the vendor has accepted.
func (s shop) submitted(t *testing.T) ports.CreateParams {
	t.Helper()
	p := s.params()
	if _, err := s.Create(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	ref := ports.Ref{AttemptID: p.Attempt.ID}
	results, err := s.Apply(t.Context(), []ports.Item{
		{Ref: ref, Input: domain.Input{Kind: domain.InputSubmitStarted, Lease: wire.NewID(), LeaseUntil: time.Now().Add(time.Minute)}},
		{Ref: ref, Input: domain.Input{Kind: domain.InputSubmitAccepted, ProviderTaskID: "job-" + p.Attempt.ID.String()}},
	})
	if err != nil || results[0].Err != nil || results[1].Err != nil {
		t.Fatal(results, err)
	}
	return p
}

// running is news about a task by query.
func running(p ports.CreateParams) ports.Item {
	return ports.Item{Ref: ports.Ref{AttemptID: p.Attempt.ID}, Input: domain.Input{
		Kind:        domain.InputObservation,
		Observation: &domain.Observation{Provider: "acme", ReceivedAt: time.Now(), Status: domain.ObservedRunning, Source: domain.SourcePoll, Trust: domain.TrustAuthentic},
	}}
}

// delivery is authentic news about a task by webhook.
func (s shop) delivery(p ports.CreateParams, name string) ports.InboxRow {
	body := []byte(name)
	hash := sha256.Sum256(body)
	return ports.InboxRow{
		Provider: "acme", AccountID: "main", DedupKey: name, TokenHash: p.TokenHash, Trust: domain.TrustAuthentic,
		ReceivedAt: time.Now(), PayloadHash: hash[:], Payload: body,
	}
}

func decodeRunning(row ports.InboxRow) ports.Decoded {
	item := running(ports.CreateParams{})
	item.Ref = ports.Ref{Provider: row.Provider, TokenHash: row.TokenHash}
	item.Input.Observation.Source = domain.SourceWebhook
	return ports.Decoded{Item: item}
}

// version is the task's, and checks that stream, task and event agree.
func (s shop) version(t *testing.T, p ports.CreateParams) int64 {
	t.Helper()
	view, err := s.FindTask(t.Context(), p.Task.ID)
	if err != nil {
		t.Fatal(err)
	}
	page, err := s.After(t.Context(), s.project, domain.Cursor{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range page.Events {
		if e.EventID != int64(i)+1 {
			t.Errorf("event %d at place %d", e.EventID, i+1)
		}
		if e.TaskID == p.Task.ID && e.EventID == view.Task.LastEventID && e.Version != view.Task.Version {
			t.Errorf("the task is at version %d, its last event says %d", view.Task.Version, e.Version)
		}
	}
	if n := len(page.Events); n > 0 && page.Head != page.Events[n-1].Cursor() {
		t.Errorf("head %v behind the last event %v", page.Head, page.Events[n-1].Cursor())
	}
	return view.Task.Version
}
