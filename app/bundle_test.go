package app_test

import (
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// errAway is a store that does not answer.
var errAway = errors.New("away")

// clock is a time that only moves when a test says so.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// bundle is one small platform with a memory store and one fake vendor.
type bundle struct {
	t       *testing.T
	clock   *clock
	env     app.Env
	store   *memory.Store
	vendor  *vendor
	tokens  *app.CallbackTokens
	project ports.Project
	// download answers the media role of start.
	download   download
	mediaTries int
	// gate is for the roles that build makes; nil lets everything pass.
	gate *app.Gate

	submit    *app.Submit
	submitter *app.Submitter
	receive   *app.Receive
	process   *app.Process
	poll      *app.Poll
	sweep     *app.Sweep
}

var idCounter atomic.Uint64

// newID counts: unique in the process and in order.
func newID() domain.ID {
	var id domain.ID
	id[0] = 1
	binary.BigEndian.PutUint64(id[8:], idCounter.Add(1))
	return id
}

func setup(t *testing.T) *bundle {
	t.Helper()
	b := &bundle{t: t, clock: &clock{at: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, vendor: newVendor()}
	b.download, b.mediaTries = file(mp4, int64(len(mp4))), 3
	b.env = app.Env{
		Now: b.clock.Now, Jitter: func() float64 { return 1 }, NewID: newID, Bells: app.NewBells(),
		Logger: slog.New(slog.DiscardHandler),
	}
	b.store = memory.NewStore(b.clock.Now)
	var err error
	b.tokens, err = app.NewCallbackTokens([]byte("0123456789abcdef"))
	b.must(err)
	tenant, err := b.store.CreateTenant(b.ctx(), ports.Tenant{ID: domain.TenantID{ID: newID()}, Name: "acme", Credits: 100})
	b.must(err)
	b.project, err = b.store.CreateProject(b.ctx(), ports.Project{
		ID: domain.ProjectID{ID: newID()}, TenantID: tenant.ID, Name: "film", OnLateSuccess: domain.LateSuccessKeep,
	})
	b.must(err)
	b.build(b.store, b.store)
	return b
}

// build makes the use cases anew, over transitions and work of the test's choice.
func (b *bundle) build(transitions ports.Transitions, work ports.Work) {
	b.t.Helper()
	vendors := app.NewVendors(b.vendor)
	var errs [6]error
	b.submit, errs[0] = app.NewSubmit(app.SubmitDeps{Env: b.env, Transitions: transitions, Vendors: vendors, Tokens: b.tokens}, app.SubmitConfig{})
	b.submitter, errs[1] = app.NewSubmitter(app.SubmitterDeps{
		Env: b.env, Transitions: transitions, Work: work, Providers: b.vendor, Tokens: b.tokens, Gate: b.gate,
	}, app.SubmitterConfig{CallbackBase: "https://in.example", Insist: 300 * time.Millisecond})
	b.receive, errs[2] = app.NewReceive(app.ReceiveDeps{Env: b.env, Inbox: b.store, Vendors: vendors, Tokens: b.tokens}, app.ReceiveConfig{})
	b.process, errs[3] = app.NewProcess(app.ProcessDeps{Env: b.env, Inbox: b.store, Vendors: vendors}, app.ProcessConfig{})
	b.poll, errs[4] = app.NewPoll(app.PollDeps{Env: b.env, Transitions: transitions, Work: work, Vendors: vendors, Gate: b.gate}, app.PollConfig{})
	b.sweep, errs[5] = app.NewSweep(app.SweepDeps{
		Env: b.env, Transitions: transitions, Inbox: b.store, Work: work, Desk: b.store, Log: b.store, Vendors: vendors,
	}, app.SweepConfig{})
	b.must(errors.Join(errs[:]...))
}

func (b *bundle) ctx() context.Context { return b.t.Context() }

func (b *bundle) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

// step does one round and fails the test on an error.
func (b *bundle) step(s interface {
	Step(context.Context) (int, error)
}) int {
	b.t.Helper()
	n, err := s.Step(b.ctx())
	b.must(err)
	return n
}

func (b *bundle) command() app.CreateCommand {
	return app.CreateCommand{Project: b.project, Provider: "acme", Model: "kite-1", Input: ports.TaskInput{Prompt: "a red kite"}}
}

// create stores a new task.
func (b *bundle) create() ports.TaskView {
	b.t.Helper()
	res, err := b.submit.Create(b.ctx(), b.command())
	b.must(err)
	return res.View
}

// submitted stores a new task and has the vendor accept it.
func (b *bundle) submitted() ports.TaskView {
	b.t.Helper()
	view := b.create()
	b.step(b.submitter)
	return b.view(view.Task.ID)
}

func (b *bundle) view(task domain.TaskID) ports.TaskView {
	b.t.Helper()
	view, err := b.store.FindTask(b.ctx(), task)
	b.must(err)
	return view
}

// want checks the task's public status and its current attempt's.
func (b *bundle) want(task domain.TaskID, status domain.Status, attempt domain.AttemptStatus) ports.TaskView {
	b.t.Helper()
	view := b.view(task)
	if view.Task.Status() != status || view.Attempt.Status != attempt {
		b.t.Fatalf("task is %s with attempt %s, want %s with %s", view.Task.Status(), view.Attempt.Status, status, attempt)
	}
	return view
}

// deliver sends a delivery to the attempt's callback URL.
func (b *bundle) deliver(attempt domain.AttemptID, body string) app.Ack {
	b.t.Helper()
	ack, err := b.receive.Deliver(b.ctx(), deliveryTo(b, attempt, body))
	b.must(err)
	return ack
}

// deliveryTo is a delivery to the attempt's callback URL.
func deliveryTo(b *bundle, attempt domain.AttemptID, body string) app.DeliverCommand {
	return app.DeliverCommand{Provider: "acme", Token: b.tokens.Make(attempt), Body: []byte(body)}
}

// flaky is a store that fails when told to.
type flaky struct {
	*memory.Store
	// before and after are called around Apply with the number of the call; an
	// error of before hides the call, one of after hides only its answer.
	before func(n int, items []ports.Item) error
	after  func(n int, items []ports.Item) error

	mu sync.Mutex
	n  int
}

func (f *flaky) Apply(ctx context.Context, items []ports.Item) ([]ports.Result, error) {
	f.mu.Lock()
	f.n++
	n := f.n
	f.mu.Unlock()
	if f.before != nil {
		if err := f.before(n, items); err != nil {
			return nil, err
		}
	}
	results, err := f.Store.Apply(ctx, items)
	if err == nil && f.after != nil {
		if err := f.after(n, items); err != nil {
			return nil, err
		}
	}
	return results, err
}
