package porttest

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// acme and acmeAccount are where the suite's attempts run.
const (
	acme        = "acme"
	acmeAccount = "main"
)

// storeBench is a store at work: helpers that say in one word what a test is not
// about.
type storeBench struct {
	StoreFixture
	t       *testing.T
	ctx     context.Context
	tenant  domain.TenantID
	project domain.ProjectID
}

var lastID atomic.Int64

// newID draws a UUIDv7 that is above all that this process has drawn before: no
// two share a millisecond.
func newID() domain.ID {
	var ms int64
	for {
		last := lastID.Load()
		if ms = max(last+1, time.Now().UnixMilli()); lastID.CompareAndSwap(last, ms) {
			break
		}
	}
	var id domain.ID
	rand.Read(id[:]) // never fails
	random := id[6:8:8]
	high := binary.BigEndian.Uint16(random)
	binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16|uint64(high))
	id[6], id[8] = id[6]&0x0f|0x70, id[8]&0x3f|0x80
	return id
}

func newTaskID() domain.TaskID       { return domain.TaskID{ID: newID()} }
func newAttemptID() domain.AttemptID { return domain.AttemptID{ID: newID()} }

func hash(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:]
}

// newTenant makes a tenant whose name nobody else has.
func (b *storeBench) newTenant(name string, credits int64) domain.TenantID {
	b.t.Helper()
	id := domain.TenantID{ID: newID()}
	tenant, err := b.Store.CreateTenant(b.ctx, ports.Tenant{ID: id, Name: name + " " + id.String(), Credits: credits, CreatedAt: b.Clock.Now()})
	if err != nil {
		b.t.Fatalf("CreateTenant: %v", err)
	}
	return tenant.ID
}

func (b *storeBench) newProject(tenant domain.TenantID, name string) domain.ProjectID {
	b.t.Helper()
	project, err := b.Store.CreateProject(b.ctx, ports.Project{
		ID: domain.ProjectID{ID: newID()}, TenantID: tenant, Name: name,
		OnLateSuccess: domain.LateSuccessKeep, CreatedAt: b.Clock.Now(),
	})
	if err != nil {
		b.t.Fatalf("CreateProject: %v", err)
	}
	return project.ID
}

// made is a task that the suite has created.
type made struct {
	task    domain.TaskID
	attempt domain.AttemptID
	project domain.ProjectID
	// token is the text of the callback token; vendorID the vendor's name of the
	// job, known to the store only after submit.
	token    string
	client   string
	vendorID string
}

// params are those of a new task in the bench's project.
func (b *storeBench) params() ports.CreateParams {
	now, task, attempt := b.Clock.Now(), newTaskID(), newAttemptID()
	return ports.CreateParams{
		Task: domain.Task{
			ID: task, TenantID: b.tenant, ProjectID: b.project, UserID: domain.UserID{ID: newID()},
			OnLateSuccess: domain.LateSuccessKeep, TraceID: domain.TraceID{ID: newID()}, CreatedAt: now, UpdatedAt: now,
		},
		Attempt:   newAttempt(task, attempt),
		TokenHash: hash("token-" + attempt.String()),
		Input:     ports.TaskInput{Prompt: "a red kite over the sea"},
	}
}

func newAttempt(task domain.TaskID, id domain.AttemptID) domain.Attempt {
	return domain.Attempt{
		ID: id, TaskID: task, Provider: acme, Model: "video-1", AccountID: acmeAccount,
		BaseURL: "https://api.acme.example", ClientRequestID: "req-" + id.String(), Credits: 5,
	}
}

func madeOf(p ports.CreateParams) made {
	id := p.Attempt.ID.String()
	return made{task: p.Task.ID, attempt: p.Attempt.ID, project: p.Task.ProjectID, token: "token-" + id, client: "req-" + id, vendorID: "job-" + id}
}

// create stores a task.
func (b *storeBench) create() made {
	b.t.Helper()
	return b.createWith(b.params())
}

// createIn stores a task of another project of the tenant.
func (b *storeBench) createIn(project domain.ProjectID) made {
	b.t.Helper()
	p := b.params()
	p.Task.ProjectID = project
	return b.createWith(p)
}

func (b *storeBench) createWith(p ports.CreateParams) made {
	b.t.Helper()
	if _, err := b.Store.Create(b.ctx, p); err != nil {
		b.t.Fatalf("Create: %v", err)
	}
	return madeOf(p)
}

// submitted stores a task and has the vendor accept it.
func (b *storeBench) submitted() made {
	b.t.Helper()
	m := b.create()
	b.must(b.started(m), b.accepted(m))
	return m
}

// apply applies items and fails the test when the call does.
func (b *storeBench) apply(items ...ports.Item) []ports.Result {
	b.t.Helper()
	results, err := b.Store.Apply(b.ctx, items)
	if err != nil {
		b.t.Fatalf("Apply: %v", err)
	}
	if len(results) != len(items) {
		b.t.Fatalf("Apply of %d items gave %d results", len(items), len(results))
	}
	return results
}

// must applies items none of which may have an error, and returns the last
// result.
func (b *storeBench) must(items ...ports.Item) ports.Result {
	b.t.Helper()
	results := b.apply(items...)
	for i, r := range results {
		if r.Err != nil {
			b.t.Fatalf("Apply: item %d (%s): %v", i, items[i].Input.Kind, r.Err)
		}
	}
	return results[len(results)-1]
}

// item is an input about an attempt by our own id.
func item(m made, in domain.Input) ports.Item {
	return ports.Item{Ref: ports.Ref{AttemptID: m.attempt}, Input: in}
}

func (b *storeBench) started(m made) ports.Item {
	return item(m, domain.Input{Kind: domain.InputSubmitStarted, Lease: newID(), LeaseUntil: b.Clock.Now().Add(time.Minute)})
}

func (b *storeBench) accepted(m made) ports.Item {
	return item(m, domain.Input{Kind: domain.InputSubmitAccepted, ProviderTaskID: m.vendorID})
}

// saw is the answer of a query.
func (b *storeBench) saw(m made, status domain.Observed) ports.Item {
	return item(m, domain.Input{Kind: domain.InputObservation, Policy: domain.Policy{CanCancel: true}, Observation: b.observation(m, status)})
}

// progressed is the answer of a query with a percentage.
func (b *storeBench) progressed(m made, percent int) ports.Item {
	it := b.saw(m, domain.ObservedRunning)
	it.Input.Observation.Progress = &percent
	return it
}

func (b *storeBench) observation(m made, status domain.Observed) *domain.Observation {
	o := &domain.Observation{
		Provider: acme, ProviderTaskID: m.vendorID, ReceivedAt: b.Clock.Now(), Status: status,
		Source: domain.SourcePoll, Trust: domain.TrustAuthentic, PayloadHash: fmt.Sprintf("%x", hash("body")),
	}
	switch status {
	case domain.ObservedSucceeded:
		o.Outputs = []domain.OutputRef{{Kind: "video", Ref: "out-" + m.vendorID, URL: "https://files.acme.example/" + m.vendorID + ".mp4"}}
	case domain.ObservedFailed:
		o.ErrorClass = domain.ClassProvider
	}
	return o
}

// command is a request of the user about the task's current attempt.
func command(m made, in domain.Input) ports.Item {
	return ports.Item{Ref: ports.Ref{TaskID: m.task, ProjectID: m.project}, Input: in}
}

func (b *storeBench) cancel(m made) ports.Item {
	return command(m, domain.Input{Kind: domain.InputCancelRequested, Policy: domain.Policy{CanCancel: true}})
}

// retry opens a new attempt; the second value describes it.
func (b *storeBench) retry(m made) (ports.Item, made) { return retryOf(m) }

func retryOf(m made) (ports.Item, made) {
	attempt := newAttempt(m.task, newAttemptID())
	next := madeOf(ports.CreateParams{Task: domain.Task{ID: m.task, ProjectID: m.project}, Attempt: attempt})
	it := command(m, domain.Input{Kind: domain.InputRetryRequested, NewAttempt: &attempt})
	it.TokenHash = hash(next.token)
	return it, next
}

// resolve is a person's decision about an attempt.
func (b *storeBench) resolve(m made, kind domain.ResolutionKind) ports.Item {
	action := domain.ActionID{ID: newID()}
	it := item(m, domain.Input{Kind: domain.InputResolution, Resolution: &domain.Resolution{Kind: kind, ActionID: action}})
	it.Audit = &ports.Audit{ActionID: action, Actor: "op@example.com", Action: string(kind), Reason: "looked it up at the vendor"}
	return it
}

// task reads a task as it is now.
func (b *storeBench) task(m made) ports.TaskView {
	b.t.Helper()
	view, err := b.Store.FindTask(b.ctx, m.task)
	if err != nil {
		b.t.Fatalf("FindTask: %v", err)
	}
	return view
}

// attempt reads an attempt as it is now.
func (b *storeBench) attempt(m made) domain.Attempt {
	b.t.Helper()
	job, err := b.Store.Attempt(b.ctx, m.attempt)
	if err != nil {
		b.t.Fatalf("Attempt: %v", err)
	}
	return job.Attempt
}

// head reads the end of the stream.
func (b *storeBench) head(project domain.ProjectID) domain.Cursor {
	b.t.Helper()
	head, err := b.Store.Head(b.ctx, project)
	if err != nil {
		b.t.Fatalf("Head: %v", err)
	}
	return head
}

// events reads a whole stream, in pages of an odd size.
func (b *storeBench) events(project domain.ProjectID) []ports.StoredEvent {
	b.t.Helper()
	var all []ports.StoredEvent
	var cursor domain.Cursor
	for {
		page, err := b.Store.After(b.ctx, project, cursor, 7)
		if err != nil {
			b.t.Fatalf("After: %v", err)
		}
		if page.Reset != "" {
			b.t.Fatalf("After(%v): reset %q in the middle of a stream", cursor, page.Reset)
		}
		if len(page.Events) == 0 {
			return all
		}
		all = append(all, page.Events...)
		cursor = all[len(all)-1].Cursor()
	}
}

// timeline reads a task's history.
func (b *storeBench) timeline(m made) ports.Timeline {
	b.t.Helper()
	timeline, err := b.Store.Timeline(b.ctx, m.project, m.task)
	if err != nil {
		b.t.Fatalf("Timeline: %v", err)
	}
	return timeline
}

// entries are those of a kind.
func entries(timeline ports.Timeline, kind string) []ports.TimelineEntry {
	var found []ports.TimelineEntry
	for _, e := range timeline.Entries {
		if e.Kind == kind {
			found = append(found, e)
		}
	}
	return found
}

// wantErr fails the test unless err is want.
func wantErr(t *testing.T, what string, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%s: error %v, want %v", what, err, want)
	}
}

// wantVerdict fails the test unless the item was digested so.
func wantVerdict(t *testing.T, what string, r ports.Result, kind domain.VerdictKind, reason domain.Reason) {
	t.Helper()
	if r.Err != nil {
		t.Errorf("%s: error %v, want verdict %s %s", what, r.Err, kind, reason)
	} else if got := r.Decision.Verdict; got.Kind != kind || got.Reason != reason {
		t.Errorf("%s: verdict %s %s, want %s %s", what, got.Kind, got.Reason, kind, reason)
	}
}

// stamp is a time as details spell it.
func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
