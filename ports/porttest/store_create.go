package porttest

import (
	"encoding/json"
	"errors"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func createTests() []storeTest {
	return []storeTest{
		{"StoresEverything", createStoresEverything},
		{"Replay", createReplay},
		{"Mismatch", createMismatch},
		{"KeyIsOfTenantAndScope", createKeyIsOfTenantAndScope},
		{"KeyExpires", createKeyExpires},
		{"ConcurrentReplay", createConcurrentReplay},
		{"Credits", createCredits},
		{"ForeignProject", createForeignProject},
		{"Rollback", createRollback},
	}
}

func createStoresEverything(t *testing.T, b *storeBench) {
	p := b.params()
	seed := int64(7)
	p.Input = ports.TaskInput{
		Prompt: "a red kite \U0001fa81 over the sea", ImageURL: "https://images.example/1.png", DurationSeconds: 5,
		AspectRatio: "16:9", Resolution: "720p", Seed: &seed, Extra: []byte(`{"mood": "calm"}`), Metadata: []byte(`{"order": 17}`),
	}
	result, err := b.Store.Create(b.ctx, p)
	if err != nil {
		t.Fatal(err)
	}
	task := result.View.Task
	if task.ID != p.Task.ID || task.Status() != domain.Status(domain.PhaseQueued) || task.Version != 1 || task.LastEventID != 1 || task.UserID != p.Task.UserID || task.TraceID != p.Task.TraceID {
		t.Errorf("created task: %+v", task)
	}
	if a := result.View.Attempt; a.ID != p.Attempt.ID || a.No != 1 || a.Status != domain.AttemptCreated || a.ClientRequestID != p.Attempt.ClientRequestID {
		t.Errorf("created attempt: %+v", a)
	}
	if result.Replayed || result.Cursor != b.head(b.project) || result.Cursor.EventID != 1 || result.Cursor.Tag == "" {
		t.Errorf("replayed %v, cursor %v, head %v", result.Replayed, result.Cursor, b.head(b.project))
	}
	if !sameJSON(result.View.Metadata, p.Input.Metadata) {
		t.Errorf("metadata %s, want %s", result.View.Metadata, p.Input.Metadata)
	}
	events := b.events(b.project)
	if len(events) != 1 || events[0].EventID != 1 || events[0].Version != 1 || events[0].TaskID != p.Task.ID || events[0].Type != domain.EventTaskStatusChanged || events[0].Source != domain.SourceUser {
		t.Errorf("events %+v", events)
	}
	job, err := b.Store.Attempt(b.ctx, p.Attempt.ID)
	if err != nil {
		t.Fatal(err)
	}
	if !sameJSON(job.Input.Extra, p.Input.Extra) {
		t.Errorf("extra %s, want %s", job.Input.Extra, p.Input.Extra)
	}
	job.Input.Extra, job.Input.Metadata, p.Input.Extra, p.Input.Metadata = nil, nil, nil, nil
	if !reflect.DeepEqual(job.Input, p.Input) {
		t.Errorf("input %+v, want %+v", job.Input, p.Input)
	}
	if got := ledgerOf(b, madeOf(p)); got != "reserve" {
		t.Errorf("ledger %q, want reserve", got)
	}
}

// key is an idempotency key of the bench's tenant.
func (b *storeBench) key(key, body string) *ports.Idempotency {
	return &ports.Idempotency{TenantID: b.tenant, Scope: "POST /tasks", Key: key, BodyHash: hash(body), ExpiresAt: b.Clock.Now().Add(24 * time.Hour)}
}

func createReplay(t *testing.T, b *storeBench) {
	first := b.params()
	first.Idempotency = b.key("k", "body")
	m := b.createWith(first)
	b.must(b.started(m), b.accepted(m))

	again := b.params()
	again.Idempotency = b.key("k", "body")
	result, err := b.Store.Create(b.ctx, again)
	if err != nil {
		t.Fatal(err)
	}
	if !result.Replayed || result.View.Task.ID != m.task {
		t.Errorf("replayed %v, task %s, want the task of the first request %s", result.Replayed, result.View.Task.ID, m.task)
	}
	if result.View.Task.Version != 2 || result.Cursor != b.head(b.project) {
		t.Errorf("version %d and cursor %v, want the task as it is now: 2, %v", result.View.Task.Version, result.Cursor, b.head(b.project))
	}
	if n := len(b.events(b.project)); n != 2 {
		t.Errorf("%d events after a replay, want 2", n)
	}
	_, err = b.Store.FindTask(b.ctx, again.Task.ID)
	wantErr(t, "the second task", err, ports.ErrNotFound)
}

func createMismatch(t *testing.T, b *storeBench) {
	p := b.params()
	p.Idempotency = b.key("k", "body")
	b.createWith(p)
	p = b.params()
	p.Idempotency = b.key("k", "another body")
	_, err := b.Store.Create(b.ctx, p)
	wantErr(t, "another body under a known key", err, ports.ErrIdempotencyMismatch)
	if n := len(b.events(b.project)); n != 1 {
		t.Errorf("%d events, want 1", n)
	}
}

func createKeyIsOfTenantAndScope(t *testing.T, b *storeBench) {
	p := b.params()
	p.Idempotency = b.key("k", "body")
	b.createWith(p)

	other := b.params()
	other.Idempotency = b.key("k", "other body")
	other.Idempotency.Scope = "POST /other"
	b.createWith(other)

	tenant := b.newTenant("another", 100)
	foreign := b.params()
	foreign.Task.TenantID, foreign.Task.ProjectID = tenant, b.newProject(tenant, "project")
	foreign.Idempotency = b.key("k", "third body")
	foreign.Idempotency.TenantID = tenant
	b.createWith(foreign)
}

func createKeyExpires(t *testing.T, b *storeBench) {
	p := b.params()
	p.Idempotency = b.key("k", "body")
	b.createWith(p)
	b.Clock.Advance(24*time.Hour + time.Second)
	p = b.params()
	p.Idempotency = b.key("k", "another body")
	result, err := b.Store.Create(b.ctx, p)
	if err != nil || result.Replayed || result.View.Task.ID != p.Task.ID {
		t.Errorf("an expired key: replayed %v, error %v, want a new task", result.Replayed, err)
	}
}

func createConcurrentReplay(t *testing.T, b *storeBench) {
	const n = 8
	ids := make([]domain.TaskID, n)
	var fresh int
	var mu sync.Mutex
	together(n, func(i int) {
		p := b.params()
		p.Idempotency = b.key("k", "body")
		result, err := retryUnavailable(func() (ports.CreateResult, error) { return b.Store.Create(b.ctx, p) })
		mu.Lock()
		defer mu.Unlock()
		if err != nil {
			t.Errorf("Create: %v", err)
			return
		}
		if ids[i] = result.View.Task.ID; !result.Replayed {
			fresh++
		}
	})
	for _, id := range ids[1:] {
		if id != ids[0] {
			t.Errorf("tasks %v under one key, want one", ids)
			break
		}
	}
	if fresh != 1 || len(b.events(b.project)) != 1 {
		t.Errorf("%d of %d requests created, %d events; want 1 and 1", fresh, n, len(b.events(b.project)))
	}
}

func createCredits(t *testing.T, b *storeBench) {
	tenant := b.newTenant("poor", 12)
	project := b.newProject(tenant, "project")
	params := func() ports.CreateParams {
		p := b.params()
		p.Task.TenantID, p.Task.ProjectID = tenant, project
		p.Attempt.Credits = 5
		return p
	}
	b.createWith(params())
	second := b.createWith(params())
	third := params()
	third.Idempotency = b.key("k", "body")
	third.Idempotency.TenantID = tenant
	_, err := b.Store.Create(b.ctx, third)
	wantErr(t, "a reservation above the balance", err, ports.ErrCredits)
	_, err = b.Store.FindTask(b.ctx, third.Task.ID)
	wantErr(t, "the task that was not paid for", err, ports.ErrNotFound)
	if head := b.head(project); head.EventID != 2 {
		t.Errorf("head %v, want 2", head)
	}

	b.must(b.cancel(second)) // its refund covers the third, under the key that was not used up
	if _, err := b.Store.Create(b.ctx, third); err != nil {
		t.Errorf("after a refund: %v", err)
	}
}

func createForeignProject(t *testing.T, b *storeBench) {
	p := b.params()
	p.Task.ProjectID = domain.ProjectID{ID: newID()}
	_, err := b.Store.Create(b.ctx, p)
	wantErr(t, "an unknown project", err, ports.ErrNotFound)

	tenant := b.newTenant("another", 100)
	p = b.params()
	p.Task.ProjectID = b.newProject(tenant, "project")
	_, err = b.Store.Create(b.ctx, p)
	wantErr(t, "a project of another tenant", err, ports.ErrNotFound)
}

func createRollback(t *testing.T, b *storeBench) {
	b.needRollback()
	p := b.params()
	p.Idempotency = b.key("k", "body")
	b.InjectRollback(1)
	_, err := b.Store.Create(b.ctx, p)
	wantErr(t, "a lost transaction", err, ports.ErrUnavailable)
	b.InjectRollback(0)
	_, err = b.Store.FindTask(b.ctx, p.Task.ID)
	wantErr(t, "the task of the lost transaction", err, ports.ErrNotFound)
	if head := b.head(b.project); head != (domain.Cursor{}) {
		t.Errorf("head %v after a lost transaction, want none", head)
	}
	if result, err := b.Store.Create(b.ctx, p); err != nil || result.Replayed || result.Cursor.EventID != 1 {
		t.Errorf("the same request again: replayed %v, cursor %v, error %v", result.Replayed, result.Cursor, err)
	}
}

// needRollback skips the test where no fault can be injected.
func (b *storeBench) needRollback() {
	b.t.Helper()
	if b.InjectRollback == nil {
		b.t.Skip("this store cannot lose a transaction on demand")
	}
}

// retryUnavailable repeats a call that nobody knows the outcome of, as every
// caller has to.
func retryUnavailable[T any](f func() (T, error)) (T, error) {
	for range 100 {
		if v, err := f(); !errors.Is(err, ports.ErrUnavailable) {
			return v, err
		}
	}
	return f()
}

// together runs f in n goroutines at the same time.
func together(n int, f func(i int)) {
	var wg sync.WaitGroup
	start := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-start
			f(i)
		})
	}
	close(start)
	wg.Wait()
}

// sameJSON compares documents, not their spelling.
func sameJSON(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}
