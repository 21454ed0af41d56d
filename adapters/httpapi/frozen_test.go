package httpapi

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// frozenStore is a database that takes every question and answers none, like one
// that was stopped or lies behind a cut network.
type frozenStore struct {
	ports.Store
	// open: keys and projects are still told, as a cache or a replica would.
	open atomic.Bool
	thaw chan struct{}
	// asked is told of each question that is not answered.
	asked chan struct{}
}

// frozen waits for the end of the question.
func frozen[T any](ctx context.Context, s *frozenStore) (T, error) {
	select {
	case s.asked <- struct{}{}:
	default:
	}
	var nothing T
	select {
	case <-ctx.Done():
		return nothing, fmt.Errorf("ask: %w", ctx.Err())
	case <-s.thaw:
		return nothing, ports.ErrUnavailable
	}
}

func (s *frozenStore) KeyByHash(ctx context.Context, hash []byte) (ports.APIKey, error) {
	if s.open.Load() {
		return s.Store.KeyByHash(ctx, hash)
	}
	return frozen[ports.APIKey](ctx, s)
}

func (s *frozenStore) Ping(ctx context.Context) error {
	_, err := frozen[struct{}](ctx, s)
	return err
}

func (s *frozenStore) Create(ctx context.Context, _ ports.CreateParams) (ports.CreateResult, error) {
	return frozen[ports.CreateResult](ctx, s)
}

func (s *frozenStore) Receive(ctx context.Context, _ []ports.InboxRow) ([]ports.ReceiveResult, error) {
	return frozen[[]ports.ReceiveResult](ctx, s)
}

func (s *frozenStore) Task(ctx context.Context, _ domain.ProjectID, _ domain.TaskID) (ports.TaskView, domain.Cursor, error) {
	view, err := frozen[ports.TaskView](ctx, s)
	return view, domain.Cursor{}, err
}

func (s *frozenStore) Tasks(ctx context.Context, _ ports.ListParams) (ports.TaskPage, error) {
	return frozen[ports.TaskPage](ctx, s)
}

func (s *frozenStore) Timeline(ctx context.Context, _ domain.ProjectID, _ domain.TaskID) (ports.Timeline, error) {
	return frozen[ports.Timeline](ctx, s)
}

func (s *frozenStore) Asset(ctx context.Context, _ domain.ProjectID, _ domain.AssetID) (ports.Asset, error) {
	return frozen[ports.Asset](ctx, s)
}

func (s *frozenStore) Troubled(ctx context.Context, _ ports.TroubledFilter) ([]ports.InboxRow, error) {
	return frozen[[]ports.InboxRow](ctx, s)
}

func (s *frozenStore) InboxRow(ctx context.Context, _ int64) (ports.InboxRow, error) {
	return frozen[ports.InboxRow](ctx, s)
}

func (s *frozenStore) TroubledGroups(ctx context.Context, _ ports.TroubledFilter) ([]ports.TroubledGroup, error) {
	return frozen[[]ports.TroubledGroup](ctx, s)
}

func (s *frozenStore) Requeue(ctx context.Context, _ int64, _ ports.Audit) error {
	_, err := frozen[struct{}](ctx, s)
	return err
}

func (s *frozenStore) Cases(ctx context.Context, _ domain.CaseKind, _ int) ([]ports.Case, error) {
	return frozen[[]ports.Case](ctx, s)
}

func (s *frozenStore) Backlog(ctx context.Context) (ports.Backlog, error) {
	return frozen[ports.Backlog](ctx, s)
}

func (s *frozenStore) ParkedProject(ctx context.Context, _ domain.ProjectID) (ports.ParkedProject, error) {
	return frozen[ports.ParkedProject](ctx, s)
}

func (s *frozenStore) Durations(ctx context.Context) ([]ports.ModelDuration, error) {
	return frozen[[]ports.ModelDuration](ctx, s)
}

func (s *frozenStore) Case(ctx context.Context, _ int64) (ports.Case, error) {
	return frozen[ports.Case](ctx, s)
}

func (s *frozenStore) Conflicts(ctx context.Context, _ int) ([]ports.ConflictRow, error) {
	return frozen[[]ports.ConflictRow](ctx, s)
}

func (s *frozenStore) Sweeps(ctx context.Context) ([]ports.SweepRun, error) {
	return frozen[[]ports.SweepRun](ctx, s)
}

func (s *frozenStore) Conflict(ctx context.Context, _ int64) (ports.ConflictRow, error) {
	return frozen[ports.ConflictRow](ctx, s)
}

func (s *frozenStore) AccountHealth(ctx context.Context) ([]ports.AccountHealth, error) {
	return frozen[[]ports.AccountHealth](ctx, s)
}

// frozenFixture is a fixture whose store froze after a task was submitted.
func frozenFixture(t *testing.T, limit time.Duration) (f *fixture, store *frozenStore, task string) {
	t.Helper()
	f = newFixture(t)
	task = f.submitted()
	store = &frozenStore{Store: f.store, thaw: make(chan struct{}), asked: make(chan struct{}, 1)}
	t.Cleanup(func() { close(store.thaw) })
	cfg := f.config(store)
	cfg.RequestTimeout, cfg.CallbackTimeout, cfg.ReadyTimeout, cfg.Ready = limit, limit, limit, store.Ping
	f.server = must(New(cfg))
	f.handler = f.server.Handler()
	return f, store, task
}

// TestFrozenDatabase asks every route that needs the database: each answers 503 with
// a Retry-After within its time, whether the database froze before the key was
// looked up or after.
func TestFrozenDatabase(t *testing.T) {
	t.Parallel()
	f, store, task := frozenFixture(t, time.Millisecond)
	fill := strings.NewReplacer("{project_id}", f.project, "{task_id}", task, "{asset_id}", strings.Replace(task, "tsk_", "ast_", 1), "{id}", "1", "{project}", f.project,
		"{provider}", "acme", "{account}", "main")
	bodies := map[string]string{
		"/projects/{project_id}/tasks": goodSubmit, "/admin/inbox/{id}/requeue": `{"reason":"r"}`, "/admin/inbox/requeue": `{"reason":"r"}`,
		"/admin/conflicts/{id}/resolve": `{"resolution":"ignore","reason":"r"}`, "/admin/cases/{id}/resolve": `{"resolution":"abandon","reason":"r"}`,
		"/admin/outbox/{project}/unpark": `{"reason":"r"}`,
	}
	for _, action := range app.AccountActions() {
		bodies["/admin/providers/{provider}/{account}/"+string(action)] = `{"reason":"r"}`
	}
	skipped := map[string]bool{"/healthz": true, "/metrics": true, "/openapi.json": true, "/asyncapi.json": true}
	for _, rt := range f.server.routes() {
		q := request{method: rt.method, path: fill.Replace(rt.pattern), key: f.operator}
		switch {
		case skipped[rt.pattern]:
			continue
		case strings.HasPrefix(rt.pattern, "/admin"):
			q.key = f.platform
		case strings.HasPrefix(rt.pattern, "/callbacks"):
			q = f.delivery("evt", "{}")
		case strings.HasSuffix(rt.pattern, "/events"):
			q.path += "?task_id=" + task
			q.header = map[string]string{"Accept": "application/json"}
		}
		if rt.method == http.MethodPost && q.body == "" {
			q.body = bodies[rt.pattern]
		}
		for _, open := range []bool{false, true} {
			store.open.Store(open)
			w := f.do(q)
			wantProblem(t, w, http.StatusServiceUnavailable, "unavailable")
			if t.Failed() {
				t.Fatalf("%s %s, keys known: %v", rt.method, rt.pattern, open)
			}
		}
	}
}

// TestFrozenDelivery refuses a delivery within the callbacks' own limit, and counts it
// as what it is: the database does not answer.
func TestFrozenDelivery(t *testing.T) {
	t.Parallel()
	f, _, _ := frozenFixture(t, time.Minute)
	cfg := f.server.cfg
	cfg.CallbackTimeout = time.Millisecond
	f.handler = must(New(cfg)).Handler()
	w := f.do(f.delivery("evt", "{}"))
	wantProblem(t, w, http.StatusServiceUnavailable, "unavailable")
	if w.Header().Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
}

// TestFrozenStream tells a browser in the stream: its EventSource would not come back
// after a 503.
func TestFrozenStream(t *testing.T) {
	t.Parallel()
	f, store, task := frozenFixture(t, time.Millisecond)
	for _, open := range []bool{false, true} {
		store.open.Store(open)
		f.do(request{path: "/projects/" + f.project + "/events?task_id=" + task, key: f.key, header: map[string]string{"Accept": "text/event-stream"}})
	}
	for _, got := range f.streams {
		if !got.Unavailable || got.Denied || !got.Project.IsZero() {
			t.Errorf("%+v", got)
		}
	}
	if len(f.streams) != 2 {
		t.Errorf("%d streams, want 2", len(f.streams))
	}
}

// TestHalfClosed sends a whole delivery and closes its side at once. The server takes
// that for a client that hung up; what the client still reads must not be a 2xx
// while the delivery is not stored (I1).
func TestHalfClosed(t *testing.T) {
	t.Parallel()
	f, store, _ := frozenFixture(t, time.Minute)
	server := httptest.NewServer(f.handler)
	t.Cleanup(server.Close)
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	q := f.delivery("evt", `{"a":1}`)
	_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAcme-Signature: %s\r\nContent-Length: %d\r\n\r\n%s", q.path, q.header["Acme-Signature"], len(q.body), q.body)
	if err != nil {
		t.Fatal(err)
	}
	<-store.asked // the delivery is in the store's hands
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	answer, err := io.ReadAll(conn)
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 503") {
		t.Errorf("%q, %v; want a 503", answer, err)
	}
}
