package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func TestNewNeedsWholeParts(t *testing.T) {
	t.Parallel()
	_, err := New(Config{Submit: &app.Submit{}, Media: files{}, Resolve: &app.Resolve{}, SigningKeys: [][]byte{{1}}})
	for _, want := range []string{"Cancel", "SigningKeys", "Inbox", "Access", "16 bytes"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not name %s", err, want)
		}
	}
}

// TestRolesDecideRoutes serves only what the process has.
func TestRolesDecideRoutes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.handler = must(New(Config{})).Handler()
	if w := f.do(request{path: "/healthz"}); w.Code != http.StatusOK {
		t.Errorf("healthz: %d", w.Code)
	}
	for role, q := range map[string]request{
		"api": {path: f.tasks(), key: f.key}, "gateway": {path: "/projects/" + f.project + "/events"}, "callback": f.delivery("evt", "{}"),
	} {
		p := wantProblem(t, f.do(q), http.StatusNotFound, "no_such_route")
		if !strings.HasSuffix(p.Detail, "with the role "+role+".") {
			t.Errorf("%s: %q does not name the role", role, p.Detail)
		}
	}
	if p := wantProblem(t, f.do(request{path: "/nothing"}), http.StatusNotFound, "no_such_route"); strings.Contains(p.Detail, "role") {
		t.Errorf("no role serves it: %q", p.Detail)
	}
}

func TestReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cfg := f.server.cfg
	var fault error
	cfg.Ready = func(context.Context) error { return fault }
	f.handler = must(New(cfg)).Handler()
	if w := f.do(request{path: "/readyz"}); w.Code != http.StatusOK {
		t.Errorf("ready: %d", w.Code)
	}
	fault = errors.New("postgres: " + vendorText)
	wantProblem(t, f.do(request{path: "/readyz"}), http.StatusServiceUnavailable, "unavailable")
	if w := f.do(request{path: "/healthz"}); w.Code != http.StatusOK {
		t.Errorf("healthz while not ready: %d", w.Code)
	}
}

func TestMetricsPage(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.do(f.delivery("evt", "{}"))
	f.do(request{path: "/nothing/" + vendorText})
	f.do(request{method: "PWN", path: "/healthz"})
	w := f.do(request{path: "/metrics"})
	body := w.Body.String()
	for _, want := range []string{
		`aivedio_http_requests_total{method="POST",route="/callbacks/{provider}/{token}",status="204"} 1`,
		`aivedio_http_requests_total{method="GET",route="none",status="404"} 1`,
		`aivedio_http_requests_total{method="other",route="none",status="405"} 1`,
		`aivedio_callback_deliveries_total{outcome="stored",provider="acme"} 1`,
		"aivedio_outbox_published_total 0", "go_goroutines",
	} {
		if !strings.Contains(body, want) {
			t.Errorf("no line %s", want)
		}
	}
	if w.Code != http.StatusOK || strings.Contains(body, vendorText) {
		t.Errorf("%d, or a path in a label", w.Code)
	}
}

// stuckReader is a database that takes a question and never answers.
type stuckReader struct{ ports.Reader }

func (stuckReader) Task(ctx context.Context, _ domain.ProjectID, _ domain.TaskID) (ports.TaskView, domain.Cursor, error) {
	<-ctx.Done()
	return ports.TaskView{}, domain.Cursor{}, ctx.Err()
}

// TestRequestTimeout answers when the database does not.
func TestRequestTimeout(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.submitted()
	cfg := f.server.cfg
	cfg.Reader, cfg.RequestTimeout = stuckReader{cfg.Reader}, time.Millisecond
	f.handler = must(New(cfg)).Handler()
	w := f.do(request{path: f.tasks("/", id), key: f.key})
	wantProblem(t, w, http.StatusServiceUnavailable, "unavailable")
	if w.Header().Get("Retry-After") == "" {
		t.Error("the client is not told when to come again")
	}
}
