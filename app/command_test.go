package app_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// commands are the commands about tasks of a bundle.
type commands struct {
	cancel  *app.Cancel
	sender  *app.CancelSender
	retry   *app.Retry
	resolve *app.Resolve
}

func newCommands(b *bundle) commands {
	b.t.Helper()
	deps := app.CommandDeps{Env: b.env, Transitions: b.store, Reader: b.store, Vendors: app.NewVendors(b.vendor)}
	var c commands
	var errs [4]error
	c.cancel, errs[0] = app.NewCancel(deps)
	c.retry, errs[1] = app.NewRetry(app.RetryDeps{CommandDeps: deps, Tokens: b.tokens})
	c.resolve, errs[2] = app.NewResolve(app.ResolveDeps{CommandDeps: deps, Desk: b.store})
	c.sender, errs[3] = app.NewCancelSender(app.CancelSenderDeps{
		Env: b.env, Transitions: b.store, Work: b.store, Vendors: deps.Vendors, Gate: b.gate,
	}, app.CancelSenderConfig{OperationConfig: app.OperationConfig{MaxTries: 3}})
	b.must(errors.Join(errs[:]...))
	return c
}

func about(b *bundle, task domain.TaskID) app.TaskCommand {
	return app.TaskCommand{Project: b.project, TaskID: task, Actor: "key:test", Reason: "changed my mind"}
}

const (
	canceled      = domain.Status(domain.PhaseCanceled)
	cancelPending = domain.StatusCancelRequested
)

func TestCancelUnsent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	task := b.create().Task.ID
	view, err := c.cancel.Request(b.ctx(), about(b, task))
	b.must(err)
	if view.Task.Status() != canceled || view.Task.LastEventID != 2 {
		t.Errorf("returned %s at event %d", view.Task.Status(), view.Task.LastEventID)
	}
	b.step(b.submitter)
	if len(b.vendor.creates) != 0 {
		t.Error("a canceled task was submitted")
	}
	if _, err := c.cancel.Request(b.ctx(), about(b, task)); !errors.Is(err, domain.ErrTaskTerminal) {
		t.Errorf("again: %v", err)
	}
}

func TestCancelAtTheVendor(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer func(ports.QueryRequest) (bool, error)
		rounds int
		want   domain.Cancel
	}{
		"accepted": {nil, 1, domain.CancelSent},
		"refused":  {func(ports.QueryRequest) (bool, error) { return true, nil }, 1, domain.CancelRefused},
		"lost once": {func() func(ports.QueryRequest) (bool, error) {
			n := 0
			return func(ports.QueryRequest) (bool, error) {
				if n++; n == 1 {
					return false, lost()
				}
				return false, nil
			}
		}(), 2, domain.CancelSent},
		"always lost": {func(ports.QueryRequest) (bool, error) { return false, lost() }, 3, domain.CancelRefused},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c := newCommands(b)
			b.vendor.onCancel = tc.answer
			task := b.submitted().Task.ID
			_, err := c.cancel.Request(b.ctx(), about(b, task))
			b.must(err)
			b.want(task, cancelPending, domain.AttemptSubmitted)
			for range tc.rounds {
				b.step(c.sender)
				b.clock.Advance(2 * time.Minute)
			}
			if got := b.view(task); got.Task.Cancel != tc.want || b.vendor.cancels != tc.rounds {
				t.Errorf("cancel is %s after %d calls, want %s", got.Task.Cancel, b.vendor.cancels, tc.want)
			}
			if n := b.step(c.sender); n != 0 {
				t.Error("the operation is not finished")
			}
		})
	}
}

func TestCancelMeetsSuccess(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	view := b.submitted()
	_, err := c.cancel.Request(b.ctx(), about(b, view.Task.ID))
	b.must(err)
	b.deliver(view.Attempt.ID, doneByWebhook)
	b.step(b.process)
	b.step(c.sender)
	b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
	if b.vendor.cancels != 0 {
		t.Error("the vendor was asked to cancel what it had finished")
	}
}

func TestRetry(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) {
		return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassRejected, ErrorClass: string(domain.ClassProvider)}
	}
	view := b.create()
	if _, err := c.retry.Request(b.ctx(), app.RetryCommand{TaskCommand: about(b, view.Task.ID)}); !errors.Is(err, domain.ErrNotRetryable) {
		t.Errorf("a retry of what has not ended: %v", err)
	}
	b.step(b.submitter)
	b.want(view.Task.ID, hasFailed, domain.AttemptFailed)
	b.vendor.onSubmit = nil

	cmd := app.RetryCommand{TaskCommand: about(b, view.Task.ID)}
	cmd.IdempotencyKey, cmd.BodyHash = "k", []byte("{}")
	after, err := c.retry.Request(b.ctx(), cmd)
	b.must(err)
	if after.Attempt.No != 2 || after.Task.Status() != queued || after.Attempt.ClientRequestID == view.Attempt.ClientRequestID {
		t.Errorf("returned %+v", after.Attempt)
	}
	again, err := c.retry.Request(b.ctx(), cmd)
	b.must(err)
	if again.Attempt.ID != after.Attempt.ID {
		t.Error("the same key opened a third attempt")
	}
	b.step(b.submitter)
	b.deliver(after.Attempt.ID, `{"event":"1","job":"job-1","status":"running"}`) // the new attempt's own URL
	b.step(b.process)
	b.want(view.Task.ID, inProgress, domain.AttemptRunning)
	b.deliver(view.Attempt.ID, `{"event":"2","status":"succeeded","output":"https://x.example/o.mp4"}`) // the old attempt's
	b.step(b.process)
	b.want(view.Task.ID, inProgress, domain.AttemptRunning)
}

func TestRetryOfAnUnknownSubmit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) { return ports.SubmitResult{}, lost() }
	task := b.submitted().Task.ID
	cmd := app.RetryCommand{TaskCommand: about(b, task)}
	if _, err := c.retry.Request(b.ctx(), cmd); !errors.Is(err, domain.ErrPossibleDuplicate) {
		t.Errorf("got %v", err)
	}
	cmd.AcceptPossibleDuplicate = true
	view, err := c.retry.Request(b.ctx(), cmd)
	b.must(err)
	if view.Attempt.No != 2 {
		t.Errorf("attempt %+v", view.Attempt)
	}
}

// movingReader has something happen right after the first read.
type movingReader struct {
	ports.Reader
	then func()
}

func (m *movingReader) Task(ctx context.Context, project domain.ProjectID, task domain.TaskID) (ports.TaskView, domain.Cursor, error) {
	view, cursor, err := m.Reader.Task(ctx, project, task)
	if then := m.then; then != nil {
		m.then = nil
		then()
	}
	return view, cursor, err
}

// A retry between the reading and the deciding of a cancellation: the new attempt
// is canceled, by its own vendor's policy.
func TestCancelOfAMovingTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) { return ports.SubmitResult{}, lost() }
	task := b.submitted().Task.ID
	reader := &movingReader{Reader: b.store, then: func() {
		_, err := c.retry.Request(b.ctx(), app.RetryCommand{TaskCommand: about(b, task), AcceptPossibleDuplicate: true})
		b.must(err)
	}}
	cancel, err := app.NewCancel(app.CommandDeps{Env: b.env, Transitions: b.store, Reader: reader, Vendors: app.NewVendors(b.vendor)})
	b.must(err)
	view, err := cancel.Request(b.ctx(), about(b, task))
	b.must(err)
	if view.Attempt.No != 2 || view.Task.Status() != canceled {
		t.Errorf("attempt %d, task %s", view.Attempt.No, view.Task.Status())
	}
}

func TestCommandsKeepToTheirProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	task := b.create().Task.ID
	cmd := about(b, task)
	cmd.Project.ID = domain.ProjectID{ID: newID()}
	if _, err := c.cancel.Request(b.ctx(), cmd); !errors.Is(err, ports.ErrNotFound) {
		t.Errorf("cancel: %v", err)
	}
	if _, err := c.retry.Request(b.ctx(), app.RetryCommand{TaskCommand: cmd}); !errors.Is(err, ports.ErrNotFound) {
		t.Errorf("retry: %v", err)
	}
	cmd = about(b, task)
	cmd.Reason = "\x00"
	var faults *app.FieldErrors
	if _, err := c.cancel.Request(b.ctx(), cmd); !errors.As(err, &faults) {
		t.Errorf("a reason that cannot be kept: %v", err)
	}
}

func TestResolveUnknownSubmit(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		cmd     app.ResolveCommand
		status  domain.Status
		attempt domain.AttemptStatus
	}{
		"created":     {app.ResolveCommand{Kind: domain.ResolveCreatedWithID, ProviderTaskID: "job-77"}, queued, domain.AttemptSubmitted},
		"not created": {app.ResolveCommand{Kind: domain.ResolveNotCreated}, hasFailed, domain.AttemptFailed},
		"abandon":     {app.ResolveCommand{Kind: domain.ResolveAbandon}, hasFailed, domain.AttemptFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			c := newCommands(b)
			b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) { return ports.SubmitResult{}, lost() }
			task := b.submitted().Task.ID
			cases, err := b.store.Cases(b.ctx(), domain.CaseSubmitUnknown, 10)
			b.must(err)
			tc.cmd.CaseID, tc.cmd.Actor, tc.cmd.Reason = cases[0].ID, "ops", "asked the vendor"
			_, err = c.resolve.Attempt(b.ctx(), tc.cmd)
			b.must(err)
			b.want(task, tc.status, tc.attempt)
			if open, err := b.store.Cases(b.ctx(), "", 10); err != nil || len(open) != 0 {
				t.Errorf("cases %v, %v", open, err)
			}
		})
	}
}

func TestResolveConflict(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	conflicted := func() (ports.TaskView, int64) {
		view := b.submitted()
		job := view.Attempt.ProviderTaskID
		b.deliver(view.Attempt.ID, `{"event":"failed `+job+`","status":"failed"}`)
		b.deliver(view.Attempt.ID, `{"event":"done `+job+`","status":"succeeded","output":"https://x.example/o.mp4"}`)
		b.step(b.process)
		b.want(view.Task.ID, hasFailed, domain.AttemptFailed)
		rows, err := b.store.Conflicts(b.ctx(), 10)
		b.must(err)
		if len(rows) != 1 {
			t.Fatalf("%d conflicts", len(rows))
		}
		return view, rows[0].ID
	}
	view, id := conflicted()
	b.must(c.resolve.Conflict(b.ctx(), app.ConflictCommand{ID: id, As: app.ConflictIgnore, Actor: "ops", Reason: "it failed"}))
	b.want(view.Task.ID, hasFailed, domain.AttemptFailed)
	if err := c.resolve.Conflict(b.ctx(), app.ConflictCommand{ID: id, As: app.ConflictIgnore, Actor: "ops", Reason: "again"}); !errors.Is(err, ports.ErrNotFound) {
		t.Errorf("a closed conflict: %v", err)
	}
	view, id = conflicted()
	b.must(c.resolve.Conflict(b.ctx(), app.ConflictCommand{ID: id, As: app.ConflictAccept, Actor: "ops", Reason: "the file is there"}))
	b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
	_, id = conflicted() // its credits are back already
	if err := c.resolve.Conflict(b.ctx(), app.ConflictCommand{ID: id, As: app.ConflictRefund, Actor: "ops", Reason: "angry"}); !errors.Is(err, domain.ErrInvalidTransition) {
		t.Errorf("refunded twice: %v", err)
	}
	for name, cmd := range map[string]app.ConflictCommand{
		"no reason":      {ID: id, As: app.ConflictIgnore},
		"no answer":      {ID: id, Reason: "r"},
		"unknown answer": {ID: id, As: "wish", Reason: "r"},
	} {
		var faults *app.FieldErrors
		if err := c.resolve.Conflict(b.ctx(), cmd); !errors.As(err, &faults) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestResolveConflictRefund: what was delivered and paid, and then taken back by
// the vendor, is given back, and the audit says by whom and why.
func TestResolveConflictRefund(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	before, err := b.store.Balance(b.ctx(), b.project.TenantID)
	b.must(err)
	view := b.submitted()
	b.deliver(view.Attempt.ID, `{"event":"1","status":"succeeded","output":"https://x.example/o.mp4"}`)
	b.step(b.process)
	b.step(newMedia(b, b.download, &shelf{}))
	b.want(view.Task.ID, ready, domain.AttemptSucceeded)
	b.deliver(view.Attempt.ID, `{"event":"2","status":"failed"}`)
	b.step(b.process)
	rows, err := b.store.Conflicts(b.ctx(), 10)
	if err != nil || len(rows) != 1 {
		t.Fatalf("conflicts %+v, %v", rows, err)
	}
	b.must(c.resolve.Conflict(b.ctx(), app.ConflictCommand{ID: rows[0].ID, As: app.ConflictRefund, Actor: "ops", Reason: "the vendor says it failed"}))
	b.want(view.Task.ID, ready, domain.AttemptSucceeded)
	if after, err := b.store.Balance(b.ctx(), b.project.TenantID); err != nil || after != before {
		t.Errorf("balance %+v, %v; want %+v", after, err, before)
	}
	closed, err := b.store.Conflict(b.ctx(), rows[0].ID)
	if err != nil || closed.ClosedAt == nil || closed.Resolution != "refunded" {
		t.Errorf("conflict %+v, %v", closed, err)
	}
	if cases, err := b.store.Cases(b.ctx(), "", 10); err != nil || len(cases) != 0 {
		t.Errorf("open cases %+v, %v", cases, err)
	}
	timeline, err := b.store.Timeline(b.ctx(), b.project.ID, view.Task.ID)
	b.must(err)
	audits := 0
	for _, e := range timeline.Entries {
		if e.Kind == "audit" && strings.Contains(e.Detail, "the vendor says it failed") {
			audits++
		}
	}
	if audits != 2 {
		t.Errorf("%d audits, want one of the attempt and one of the conflict", audits)
	}
}

func TestResolveValidation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	c := newCommands(b)
	attempt := b.create().Attempt.ID
	for name, cmd := range map[string]app.ResolveCommand{
		"nothing":         {},
		"no reason":       {AttemptID: attempt, Kind: domain.ResolveAbandon},
		"unknown kind":    {AttemptID: attempt, Kind: "wish", Reason: "r"},
		"no id":           {AttemptID: attempt, Kind: domain.ResolveCreatedWithID, Reason: "r"},
		"half a closing":  {AttemptID: attempt, Kind: domain.ResolveCloseCost, Closing: domain.ClosingOpen, Reason: "r"},
		"no attempt":      {Kind: domain.ResolveAbandon, Reason: "r"},
		"unstorable text": {AttemptID: attempt, Kind: domain.ResolveAbandon, Reason: "\xff"},
	} {
		var faults *app.FieldErrors
		if _, err := c.resolve.Attempt(b.ctx(), cmd); !errors.As(err, &faults) {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := c.resolve.Attempt(b.ctx(), app.ResolveCommand{AttemptID: attempt, Kind: domain.ResolveNotCreated, Reason: "r"})
	if !errors.Is(err, domain.ErrInvalidTransition) {
		t.Errorf("a decision that does not fit: %v", err)
	}
	_, err = c.resolve.Attempt(b.ctx(), app.ResolveCommand{CaseID: 4711, Kind: domain.ResolveNotCreated, Reason: "r"})
	if !errors.Is(err, ports.ErrNotFound) {
		t.Errorf("an unknown case: %v", err)
	}
}
