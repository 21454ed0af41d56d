package pgstore_test

import (
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// TestEveryFieldSurvives fills every field of an attempt and a task by
// reflection, lets the store write them and reads them back: a field that the
// domain gets and the schema does not is found here.
func TestEveryFieldSurvives(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Millisecond)
	var want domain.Decision
	store := open(t, pgstore.Config{URL: database(t).URL, Decide: func(task domain.Task, a domain.Attempt, _ domain.Input, _ time.Time) (domain.Decision, error) {
		fill(reflect.ValueOf(&a).Elem(), now)
		fill(reflect.ValueOf(&task).Elem(), now)
		a.Outputs = []domain.OutputRef{{Kind: "video", Ref: "r", URL: "https://x.example/r", ExpiresAt: &now}}
		a.Status, a.Closing, a.ErrorClass = domain.AttemptFailed, domain.ClosingRefunded, domain.ClassProvider
		task.Phase, task.Cancel, task.Stage, task.UnknownSince = domain.PhaseFailed, domain.CancelRefused, domain.StageGenerating, nil
		task.OnLateSuccess, task.Error = domain.LateSuccessKeep, &domain.PublicError{Code: domain.ClassProvider, Retryable: true, TraceID: task.TraceID}
		task.Version++
		want = domain.Decision{
			Verdict: domain.Verdict{Kind: domain.VerdictApplied}, Task: task, Attempt: a, AttemptChanged: true, TaskChanged: true,
			Event: &domain.Event{TenantID: task.TenantID, ProjectID: task.ProjectID, TaskID: task.ID, AttemptID: a.ID, Version: task.Version,
				Type: domain.EventTaskStatusChanged, Status: task.Status(), Phase: task.Phase, Cancel: task.Cancel, Stage: task.Stage, Source: domain.SourceOperator},
		}
		return want, nil
	}})
	ctx := t.Context()
	tenant, err := store.CreateTenant(ctx, ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: "t", Credits: 10, CreatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	project, err := store.CreateProject(ctx, ports.Project{ID: domain.ProjectID{ID: wire.NewID()}, TenantID: tenant.ID, Name: "p", OnLateSuccess: domain.LateSuccessKeep, CreatedAt: now})
	if err != nil {
		t.Fatal(err)
	}
	task := domain.Task{ID: domain.TaskID{ID: wire.NewID()}, TenantID: tenant.ID, ProjectID: project.ID, UserID: domain.UserID{ID: wire.NewID()}, OnLateSuccess: domain.LateSuccessKeep, TraceID: domain.TraceID{ID: wire.NewID()}}
	attempt := domain.Attempt{ID: domain.AttemptID{ID: wire.NewID()}, TaskID: task.ID, Provider: "replicate", Model: "m", AccountID: "main", BaseURL: "https://x.example", ClientRequestID: "c", Credits: 3}
	if _, err := store.Create(ctx, ports.CreateParams{Task: task, Attempt: attempt}); err != nil {
		t.Fatal(err)
	}
	res, err := store.Apply(ctx, []ports.Item{{Ref: ports.Ref{AttemptID: attempt.ID}, Input: domain.Input{Kind: domain.InputOverdue}}})
	if err != nil || res[0].Err != nil {
		t.Fatalf("%v %+v", err, res)
	}
	job, err := store.Attempt(ctx, attempt.ID)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want.Attempt, job.Attempt); diff != "" {
		t.Errorf("attempt (-written +read):\n%s", diff)
	}
	want.Task.LastEventID = 2
	if diff := cmp.Diff(want.Task, job.Task); diff != "" {
		t.Errorf("task (-written +read):\n%s", diff)
	}
}

// fill gives a value to every field that has none.
func fill(v reflect.Value, now time.Time) {
	for i := range v.NumField() {
		f := v.Field(i)
		if !f.IsZero() {
			continue
		}
		switch x := f.Addr().Interface().(type) {
		case *time.Time:
			*x = now
		case **time.Time:
			*x = &now
		case **int:
			n := 42
			*x = &n
		case **int64:
			n := int64(42)
			*x = &n
		case *domain.ID:
			*x = wire.NewID()
		default:
			switch {
			case f.Kind() == reflect.String:
				f.SetString("x")
			case f.CanInt():
				f.SetInt(42)
			case f.Kind() == reflect.Bool:
				f.SetBool(true)
			case f.Kind() == reflect.Struct:
				fill(f, now)
			}
		}
	}
}
