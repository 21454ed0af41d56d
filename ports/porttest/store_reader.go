package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func readerTests() []storeTest {
	return []storeTest{
		{"Task", readerTask},
		{"CurrentAttempt", readerCurrentAttempt},
		{"TasksPages", readerTasksPages},
		{"TasksByStatus", readerTasksByStatus},
		{"Unknown", readerUnknown},
	}
}

func readerTask(t *testing.T, b *storeBench) {
	m, other := b.submitted(), b.submitted()
	b.must(b.progressed(other, 20)) // the stream goes on without the task
	view, cursor, err := b.Store.Task(b.ctx, b.project, m.task)
	if err != nil {
		t.Fatal(err)
	}
	if view.Task.ID != m.task || view.Task.Version != 2 || view.Attempt.ID != m.attempt || view.Attempt.ProviderTaskID != m.vendorID {
		t.Errorf("view %+v", view)
	}
	if cursor != b.head(b.project) || view.Task.LastEventID >= cursor.EventID {
		t.Errorf("cursor %v, head %v, last event of the task %d", cursor, b.head(b.project), view.Task.LastEventID)
	}
	if page := b.after(b.project, cursor, 10); page.Reset != "" || len(page.Events) != 0 {
		t.Errorf("after the snapshot's cursor: %+v", page)
	}
	_, _, err = b.Store.Task(b.ctx, b.newProject(b.tenant, "another"), m.task)
	wantErr(t, "a task of another project", err, ports.ErrNotFound)
}

func readerCurrentAttempt(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed))
	again, next := b.retry(m)
	b.must(again)
	view, _, err := b.Store.Task(b.ctx, b.project, m.task)
	if err != nil || view.Attempt.ID != next.attempt || view.Attempt.No != 2 {
		t.Errorf("attempt %s no %d, %v; want the new one", view.Attempt.ID, view.Attempt.No, err)
	}
	if old := b.attempt(m); old.Status != domain.AttemptFailed || old.No != 1 {
		t.Errorf("the old attempt: %+v", old)
	}
	job, err := b.Store.Attempt(b.ctx, m.attempt)
	if err != nil || job.Task.ID != m.task || job.Input.Prompt == "" {
		t.Errorf("the old attempt's job: %+v, %v", job, err)
	}
}

func readerTasksPages(t *testing.T, b *storeBench) {
	var want []domain.TaskID
	for range 7 {
		want = append([]domain.TaskID{b.create().task}, want...)
		b.Clock.Advance(time.Second)
	}
	b.createIn(b.newProject(b.tenant, "another"))
	var got []domain.TaskID
	params := ports.ListParams{ProjectID: b.project, Limit: 3}
	for pages := 0; ; pages++ {
		page, err := b.Store.Tasks(b.ctx, params)
		if err != nil || pages > 3 {
			t.Fatalf("page %d: %v", pages, err)
		}
		if page.Cursor != b.head(b.project) {
			t.Errorf("page %d: cursor %v, head %v", pages, page.Cursor, b.head(b.project))
		}
		for _, v := range page.Tasks {
			got = append(got, v.Task.ID)
			if v.Attempt.TaskID != v.Task.ID {
				t.Errorf("attempt of task %s beside task %s", v.Attempt.TaskID, v.Task.ID)
			}
		}
		if page.Next.IsZero() {
			break
		}
		params.After = page.Next
	}
	if len(got) != len(want) {
		t.Fatalf("%d tasks, want %d", len(got), len(want))
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("place %d: %s, want %s (newest first)", i, got[i], want[i])
		}
	}
}

func readerTasksByStatus(t *testing.T, b *storeBench) {
	failed := map[domain.TaskID]bool{}
	for i := range 6 {
		m := b.submitted()
		if i%2 == 0 {
			b.must(b.saw(m, domain.ObservedFailed))
			failed[m.task] = true
		}
		b.Clock.Advance(time.Second)
	}
	canceled := b.submitted()
	b.must(b.cancel(canceled))
	count := 0
	params := ports.ListParams{ProjectID: b.project, Status: domain.Status(domain.PhaseFailed), Limit: 2}
	for {
		page, err := b.Store.Tasks(b.ctx, params)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range page.Tasks {
			if count++; !failed[v.Task.ID] {
				t.Errorf("a %s task among the failed ones", v.Task.Status())
			}
		}
		if page.Next.IsZero() {
			break
		}
		params.After = page.Next
	}
	if count != len(failed) {
		t.Errorf("%d failed tasks, want %d", count, len(failed))
	}
	page, err := b.Store.Tasks(b.ctx, ports.ListParams{ProjectID: b.project, Status: domain.StatusCancelRequested, Limit: 10})
	if err != nil || len(page.Tasks) != 1 || page.Tasks[0].Task.ID != canceled.task {
		t.Errorf("cancel_requested: %d tasks, %v", len(page.Tasks), err)
	}
}

func readerUnknown(t *testing.T, b *storeBench) {
	_, _, err := b.Store.Task(b.ctx, b.project, newTaskID())
	wantErr(t, "Task", err, ports.ErrNotFound)
	_, err = b.Store.FindTask(b.ctx, newTaskID())
	wantErr(t, "FindTask", err, ports.ErrNotFound)
	_, err = b.Store.Attempt(b.ctx, newAttemptID())
	wantErr(t, "Attempt", err, ports.ErrNotFound)
	_, err = b.Store.Timeline(b.ctx, b.project, newTaskID())
	wantErr(t, "Timeline", err, ports.ErrNotFound)
	_, err = b.Store.Asset(b.ctx, b.project, domain.AssetID{ID: newID()})
	wantErr(t, "Asset", err, ports.ErrNotFound)
	page, err := b.Store.Tasks(b.ctx, ports.ListParams{ProjectID: domain.ProjectID{ID: newID()}, Limit: 5})
	if err != nil || len(page.Tasks) != 0 || !page.Next.IsZero() || page.Cursor != (domain.Cursor{}) {
		t.Errorf("tasks of an unknown project: %+v, %v", page, err)
	}
}
