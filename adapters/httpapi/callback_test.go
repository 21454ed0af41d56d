package httpapi

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

// delivery is a good delivery to an attempt's URL.
func (f *fixture) delivery(id, body string) request {
	token := f.tokens.Make(domain.AttemptID{ID: wire.NewID()})
	return request{
		method: http.MethodPost, path: "/callbacks/acme/" + token, body: body,
		header: map[string]string{"Acme-Signature": acmeSignature([]byte(body)), "Acme-Id": id},
	}
}

func TestCallback(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	q := f.delivery("evt-1", `{"status":"succeeded"}`)
	for _, what := range []string{"first", "duplicate"} {
		if w := f.do(q); w.Code != http.StatusNoContent || w.Body.Len() != 0 {
			t.Errorf("%s: %d %s", what, w.Code, w.Body)
		}
	}
	row, err := f.store.InboxRow(context.Background(), 1)
	if err != nil || string(row.Payload) != q.body {
		t.Errorf("inbox row %+v: %v", row, err)
	}
	account := q
	account.path = "/callbacks/acme/a/main"
	if w := f.do(account); w.Code != http.StatusNoContent {
		t.Errorf("account URL: %d %s", w.Code, w.Body)
	}
}

func TestBadCallbacks(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		change func(*request)
		status int
		code   string
	}{
		{"unknown provider", func(q *request) { q.path = strings.Replace(q.path, "acme", "nobody", 1) }, 404, "unknown_callback"},
		{"unknown token", func(q *request) { q.path = "/callbacks/acme/guess" }, 404, "unknown_callback"},
		{"token of another key", func(q *request) {
			foreign := must(app.NewCallbackTokens([]byte("another key of 16")))
			q.path = "/callbacks/acme/" + foreign.Make(domain.AttemptID{ID: wire.NewID()})
		}, 404, "unknown_callback"},
		{"unknown account", func(q *request) { q.path = "/callbacks/acme/a/nobody" }, 404, "unknown_callback"},
		{"no token", func(q *request) { q.path = "/callbacks/acme" }, 404, "no_such_route"},
		{"trailing slash", func(q *request) { q.path += "/" }, 404, "no_such_route"},
		{"double slash", func(q *request) { q.path = strings.Replace(q.path, "acme/", "acme//", 1) }, 404, "no_such_route"},
		{"dots", func(q *request) { q.path = "/x/.." + q.path }, 404, "no_such_route"},
		{"one byte changed", func(q *request) { q.body = strings.Replace(q.body, "s", "S", 1) }, 401, "delivery_refused"},
		{"no signature", func(q *request) { q.header["Acme-Signature"] = "" }, 401, "delivery_refused"},
		{"stale", func(q *request) { q.header["Acme-Time"] = "old" }, 401, "delivery_refused"},
		{"text", func(q *request) { q.header["Content-Type"] = "text/html" }, 415, "unsupported_media_type"},
		{"compressed", func(q *request) { q.header["Content-Encoding"] = "br" }, 415, "unsupported_media_type"},
		{"too large", func(q *request) { q.body = strings.Repeat("x", 1<<20+1) }, 413, "body_too_large"},
		{"get", func(q *request) { q.method, q.body = http.MethodGet, "" }, 405, "method_not_allowed"},
		{"TLS ended outside", func(q *request) {
			q.remote = "10.0.0.1:1"
			q.header["X-Forwarded-Proto"] = "https, http"
		}, 403, "insecure_transport"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			q := f.delivery("evt", `{"status":"x"}`)
			tt.change(&q)
			for _, h := range []http.Handler{f.server.Handler(), f.server.Callbacks()} {
				f.handler = h
				w := f.do(q)
				wantProblem(t, w, tt.status, tt.code)
				if location := w.Header().Get("Location"); location != "" {
					t.Errorf("redirect to %q", location)
				}
			}
			if _, err := f.store.InboxRow(context.Background(), 1); err == nil {
				t.Error("a refused delivery was stored")
			}
		})
	}
}

// TestCallbacksAlone serves nothing but callbacks and health on their listener.
func TestCallbacksAlone(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.handler = f.server.Callbacks()
	if w := f.do(f.delivery("evt", "{}")); w.Code != http.StatusNoContent {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if w := f.do(request{path: "/readyz"}); w.Code != http.StatusOK {
		t.Errorf("readyz %d", w.Code)
	}
	wantProblem(t, f.do(request{path: f.tasks(), key: f.key}), http.StatusNotFound, "no_such_route")
	wantProblem(t, f.do(request{path: "/metrics"}), http.StatusNotFound, "no_such_route")
}

// TestTruncatedBody ends a body before its length, over a real connection.
func TestTruncatedBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	server := httptest.NewServer(f.handler)
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	q := f.delivery("evt", `{"a":1}`)
	if _, err := fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n%s", q.path, q.body); err != nil {
		t.Fatal(err)
	}
	if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 4096)
	_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
	n, err := conn.Read(answer)
	if err != nil || !strings.Contains(string(answer[:n]), "400 Bad Request") {
		t.Errorf("%q, %v; want 400", answer[:n], err)
	}
	if _, err := f.store.InboxRow(context.Background(), 1); err == nil {
		t.Error("a truncated delivery was stored")
	}
}

// FuzzCallbackPath posts to anything below /callbacks: never a redirect, a 500
// or a 2xx, since no signature is sent.
func FuzzCallbackPath(f *testing.F) {
	for _, seed := range []string{"acme/x", "acme//x", "acme/a/main", "acme/a/../b", "%2e%2e/x", "acme/%2f", "acme/x?y=//", "\x00", "acme/" + strings.Repeat("A", 64)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, rest string) {
		r, err := http.NewRequest(http.MethodPost, "http://x/callbacks/"+rest, strings.NewReader("{}"))
		if err != nil {
			return
		}
		x := newFixture(t)
		w := httptest.NewRecorder()
		x.handler.ServeHTTP(w, r)
		checkRefusal(t, w)
	})
}

// TestRefusalsDoNotFillTheLog warns once a minute and provider, whatever is sent.
func TestRefusalsDoNotFillTheLog(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	bad := f.delivery("evt", "{}")
	bad.header["Acme-Signature"] = "no"
	for range 50 {
		f.do(bad)
	}
	if n := strings.Count(f.log.String(), "\n"); n != 1 || !strings.Contains(f.log.String(), "level=WARN") || !strings.Contains(f.log.String(), "count=1 ") {
		t.Errorf("%d lines: %s", n, f.log)
	}
	f.log.Reset()
	f.now = f.now.Add(warnEvery)
	f.do(bad)
	if n := strings.Count(f.log.String(), "\n"); n != 1 || !strings.Contains(f.log.String(), "count=50 ") || !strings.Contains(f.log.String(), "provider=acme") {
		t.Errorf("a minute later %d lines: %s", n, f.log)
	}
	if page := f.do(request{path: "/metrics"}).Body.String(); !strings.Contains(page, `aivedio_callback_deliveries_total{outcome="bad_signature",provider="acme"} 51`) {
		t.Error("the refusals are not counted")
	}
}
