package httpapi

import (
	"context"
	"errors"
	"net/http"
	"testing"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/ports"
)

func TestEvents(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.submitted()
	f.do(request{method: http.MethodPost, path: f.tasks("/", id, "/cancel"), key: f.key})
	path := "/projects/" + f.project + "/events"
	f.do(request{path: path, key: f.reader})
	f.do(request{path: path + "?task_id=" + id, key: f.key})
	f.do(request{path: path, header: map[string]string{"Accept": "text/event-stream"}})
	if len(f.streams) != 3 {
		t.Fatalf("%d streams, want 3", len(f.streams))
	}
	all, one, denied := f.streams[0], f.streams[1], f.streams[2]
	if all.Project != f.projectID || !all.Task.IsZero() || all.Denied {
		t.Errorf("all: %+v", all)
	}
	if one.Task.IsZero() || !one.TaskTerminal || one.TaskLastEventID != 2 {
		t.Errorf("one: %+v", one)
	}
	if !denied.Denied || !denied.Project.IsZero() {
		t.Errorf("denied: %+v", denied)
	}
}

// TestRecheck ends a live stream's right with the key.
func TestRecheck(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.do(request{path: "/projects/" + f.project + "/events", key: f.key})
	auth := f.streams[0].Auth
	if err := auth(context.Background()); err != nil {
		t.Fatalf("live key: %v", err)
	}
	f.now = f.now.Add(1e9)
	f.store.fail(ports.ErrUnavailable)
	if err := auth(context.Background()); !errors.Is(err, ports.ErrUnavailable) {
		t.Errorf("store away: %v", err)
	}
	f.store.heal()
	if err := f.access.RevokeKey(context.Background(), f.keyID); err != nil {
		t.Fatal(err)
	}
	if err := auth(context.Background()); !errors.Is(err, app.ErrUnauthenticated) {
		t.Errorf("revoked key: %v", err)
	}
	wantProblem(t, f.do(request{path: f.tasks(), key: f.key}), http.StatusUnauthorized, "unauthenticated")
}

// TestEventErrors maps what the gateway returns.
func TestEventErrors(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cfg := f.server.cfg
	var fault error
	cfg.Events = EventsFunc(func(http.ResponseWriter, *http.Request, EventRequest) error { return fault })
	f.handler = must(New(cfg)).Handler()
	for _, tt := range []struct {
		err    error
		status int
		code   string
	}{
		{&app.FieldErrors{Fields: []app.FieldError{{Field: "wait", Code: "invalid", Detail: "use a time"}}}, 400, "invalid_query"},
		{app.ErrOverloaded, 503, "overloaded"},
		{ports.ErrUnavailable, 503, "unavailable"},
	} {
		fault = tt.err
		wantProblem(t, f.do(request{path: "/projects/" + f.project + "/events", key: f.key}), tt.status, tt.code)
	}
}
