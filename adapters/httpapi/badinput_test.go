package httpapi

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// TestBadBodies is every way in which a submit can be wrong.
func TestBadBodies(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 10_001)
	submit := func(more string) string {
		return `{"provider":"acme","model":"m","input":{"prompt":"p"}` + more + `}`
	}
	tests := []struct {
		name, body string
		header     map[string]string
		status     int
		code       string
		fields     string
	}{
		{"empty", "", nil, 400, "malformed_json", ""},
		{"not JSON", "hello", nil, 400, "malformed_json", ""},
		{"cut off", `{"provider":"acme","model`, nil, 400, "malformed_json", ""},
		{"a list", `[1]`, nil, 400, "malformed_json", ""},
		{"null", `null`, nil, 400, "malformed_json", ""},
		{"trailing garbage", submit("") + "x", nil, 400, "malformed_json", ""},
		{"two objects", submit("") + submit(""), nil, 400, "malformed_json", ""},
		{"not UTF-8", "{\"provider\":\"\xff\"}", nil, 400, "malformed_json", ""},
		{"deep nesting", `{"metadata":` + strings.Repeat("[", 20_000), nil, 400, "malformed_json", ""},
		{"unknown field", submit(`,"modle":"x"`), nil, 400, "unknown_field", "modle"},
		{"unknown inner field", `{"provider":"acme","model":"m","input":{"prompt":"p","promt":"x"}}`, nil, 400, "unknown_field", "input.promt"},
		{"field in another case", `{"Provider":"acme","model":"m","input":{"prompt":"p","SEED":1}}`, nil, 400, "unknown_field", "Provider,input.SEED"},
		{"unknown field beside a wrong type", `{"provider":5,"modle":"m"}`, nil, 400, "unknown_field", "modle"},
		{"field twice", `{"provider":"acme","provider":"acme","model":"m","input":{"prompt":"p","prompt":"q"}}`, nil, 422, "validation_failed", "provider,input.prompt"},
		{"half a character", `{"provider":"acme","model":"m","input":{"prompt":"\ud83d"}}`, nil, 400, "malformed_json", ""},
		{"metadata of 33 levels", submit(`,"metadata":` + strings.Repeat(`{"a":`, 32) + "{}" + strings.Repeat("}", 32)), nil, 422, "validation_failed", "metadata"},
		{"extra of 2,500 levels", `{"provider":"acme","model":"m","input":{"prompt":"p","extra":{"a":` + strings.Repeat("[", 2500) + strings.Repeat("]", 2500) + `}}}`, nil, 422, "validation_failed", "input.extra"},
		{"too large a number in metadata", submit(`,"metadata":{"a":1e999999}`), nil, 422, "validation_failed", "metadata"},
		{"a name twice in metadata", submit(`,"metadata":{"a":1,"a":2}`), nil, 422, "validation_failed", "metadata"},
		{"long unknown field", submit(`,"` + strings.Repeat("y", 500) + `":1`), nil, 400, "unknown_field", strings.Repeat("y", 64) + "…"},
		{"wrong type", `{"provider":5}`, nil, 422, "validation_failed", "provider"},
		{"wrong inner type", `{"provider":"acme","model":"m","input":{"duration_seconds":"5"}}`, nil, 422, "validation_failed", "input.duration_seconds"},
		{"half a second", `{"provider":"acme","model":"m","input":{"duration_seconds":5.5}}`, nil, 422, "validation_failed", "input.duration_seconds"},
		{"huge seed", `{"provider":"acme","model":"m","input":{"prompt":"p","seed":99999999999999999999}}`, nil, 422, "validation_failed", "input.seed"},
		{"nothing", `{}`, nil, 422, "validation_failed", "provider,model,input.prompt"},
		{"unknown provider", `{"provider":"nobody","model":"m","input":{"prompt":"p"}}`, nil, 422, "validation_failed", "provider"},
		{"too long prompt", `{"provider":"acme","model":"m","input":{"prompt":"` + long + `"}}`, nil, 422, "validation_failed", "input.prompt"},
		{"NUL in the prompt", `{"provider":"acme","model":"m","input":{"prompt":"a\u0000b"}}`, nil, 422, "validation_failed", "input.prompt"},
		{"inside address", `{"provider":"acme","model":"m","input":{"image_url":"http://169.254.169.254/"}}`, nil, 422, "validation_failed", "input.image_url"},
		{"metadata is no object", submit(`,"metadata":[1]`), nil, 422, "validation_failed", "metadata"},
		{"NUL in metadata", submit(`,"metadata":{"a":"\u0000"}`), nil, 422, "validation_failed", "metadata"},
		{"extra is no object", `{"provider":"acme","model":"m","input":{"prompt":"p","extra":"x"}}`, nil, 422, "validation_failed", "input.extra"},
		{"large metadata", submit(`,"metadata":{"a":"` + strings.Repeat("x", 17<<10) + `"}`), nil, 422, "validation_failed", "metadata"},
		{"too large", submit(`,"metadata":{"a":"` + strings.Repeat("x", 300<<10) + `"}`), nil, 413, "body_too_large", ""},
		{"form", "a=b", map[string]string{"Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported_media_type", ""},
		{"text", submit(""), map[string]string{"Content-Type": "text/plain"}, 415, "unsupported_media_type", ""},
		{"broken content type", submit(""), map[string]string{"Content-Type": "///"}, 415, "unsupported_media_type", ""},
		{"UTF-16", submit(""), map[string]string{"Content-Type": "application/json; charset=utf-16"}, 415, "unsupported_media_type", ""},
		{"compressed", submit(""), map[string]string{"Content-Encoding": "gzip"}, 415, "unsupported_media_type", ""},
		{"long idempotency key", submit(""), map[string]string{"Idempotency-Key": strings.Repeat("k", 256)}, 422, "validation_failed", "Idempotency-Key"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			w := f.do(request{method: http.MethodPost, path: f.tasks(), key: f.key, body: tt.body, header: tt.header})
			p := wantProblem(t, w, tt.status, tt.code)
			if got := faultFields(p); got != tt.fields {
				t.Errorf("fields %q, want %q", got, tt.fields)
			}
			if page := decoded[taskPage](t, f.do(request{path: f.tasks(), key: f.key})); len(page.Tasks) != 0 {
				t.Error("something was stored")
			}
		})
	}
}

// TestBadAddresses is every way in which an address or a right can be wrong.
func TestBadAddresses(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.submitted()
	other := wire.TaskID(domain.TaskID{ID: wire.NewID()})
	tests := []struct {
		name   string
		q      request
		status int
		code   string
	}{
		{"no key", request{path: f.tasks()}, 401, "unauthenticated"},
		{"no key at all, bad project", request{path: "/projects/x/tasks"}, 401, "unauthenticated"},
		{"unknown key", request{path: f.tasks(), key: "ak_" + strings.Repeat("a", 52)}, 401, "unauthenticated"},
		{"garbage key", request{path: f.tasks(), key: "ak_\x01"}, 401, "unauthenticated"},
		{"basic auth", request{path: f.tasks(), header: map[string]string{"Authorization": "Basic YTpi"}}, 401, "unauthenticated"},
		{"reader submits", request{method: "POST", path: f.tasks(), key: f.reader, body: goodSubmit}, 403, "scope_missing"},
		{"reader cancels", request{method: "POST", path: f.tasks("/", id, "/cancel"), key: f.reader}, 403, "scope_missing"},
		{"writer reads the timeline", request{path: f.tasks("/", id, "/timeline"), key: f.key}, 403, "scope_missing"},
		{"writer on the desk", request{path: "/admin/inbox", key: f.key}, 403, "scope_missing"},
		{"platform reads tasks", request{path: "/projects/" + f.foreign + "/tasks", key: f.platform}, 403, "scope_missing"},
		{"another tenant's project", request{path: "/projects/" + f.foreign + "/tasks", key: f.key}, 404, "not_found"},
		{"another tenant's project, submit", request{method: "POST", path: "/projects/" + f.foreign + "/tasks", key: f.key, body: goodSubmit}, 404, "not_found"},
		{"another tenant's task", request{path: f.tasks("/", id), key: f.foreignKey}, 404, "not_found"},
		{"a key of another project", request{path: f.tasks(), key: f.onlyForOne}, 404, "not_found"},
		{"project id of a bad form", request{path: "/projects/main/tasks", key: f.key}, 404, "not_found"},
		{"task id of a bad form", request{path: f.tasks("/17"), key: f.key}, 404, "not_found"},
		{"task id of another kind", request{path: f.tasks("/", f.project), key: f.key}, 404, "not_found"},
		{"unknown task", request{path: f.tasks("/", other), key: f.key}, 404, "not_found"},
		{"unknown task, cancel", request{method: "POST", path: f.tasks("/", other, "/cancel"), key: f.key}, 404, "not_found"},
		{"unknown task, retry", request{method: "POST", path: f.tasks("/", other, "/retry"), key: f.key}, 404, "not_found"},
		{"unknown task, timeline", request{path: f.tasks("/", other, "/timeline"), key: f.operator}, 404, "not_found"},
		{"bad list cursor", request{path: f.tasks("?after=garbage"), key: f.key}, 400, "invalid_cursor"},
		{"negative list cursor", request{path: f.tasks("?after=-1"), key: f.key}, 400, "invalid_cursor"},
		{"bad limit", request{path: f.tasks("?limit=0"), key: f.key}, 400, "invalid_query"},
		{"large limit", request{path: f.tasks("?limit=201"), key: f.key}, 400, "invalid_query"},
		{"bad status", request{path: f.tasks("?status=happy"), key: f.key}, 400, "invalid_query"},
		{"cancel with a bad body", request{method: "POST", path: f.tasks("/", id, "/cancel"), key: f.key, body: "{"}, 400, "malformed_json"},
		{"cancel with an unknown field", request{method: "POST", path: f.tasks("/", id, "/cancel"), key: f.key, body: `{"x":1}`}, 400, "unknown_field"},
		{"retry with a number for a reason", request{method: "POST", path: f.tasks("/", id, "/retry"), key: f.key, body: `{"reason":5}`}, 422, "validation_failed"},
		{"stream of another tenant", request{path: "/projects/" + f.foreign + "/events", key: f.key}, 404, "not_found"},
		{"stream without a key", request{path: "/projects/" + f.project + "/events"}, 401, "unauthenticated"},
		{"long-poll without a key", request{path: "/projects/" + f.project + "/events", header: map[string]string{"Accept": "application/json"}}, 401, "unauthenticated"},
		{"stream of an unknown task", request{path: "/projects/" + f.project + "/events?task_id=" + other, key: f.key}, 404, "not_found"},
		{"stream of a bad task id", request{path: "/projects/" + f.project + "/events?task_id=x", key: f.key}, 404, "not_found"},
		{"asset id of a bad form", request{path: "/projects/" + f.project + "/assets/x", key: f.key}, 404, "not_found"},
		{"no such route", request{path: "/nothing", key: f.key}, 404, "no_such_route"},
		{"root", request{path: "/"}, 404, "no_such_route"},
		{"trailing slash", request{path: f.tasks("/"), key: f.key}, 404, "no_such_route"},
		{"double slash", request{path: "//projects/" + f.project + "/tasks", key: f.key}, 404, "no_such_route"},
		{"dots", request{path: "/projects/../metrics"}, 404, "no_such_route"},
		{"method", request{method: "DELETE", path: f.tasks("/", id), key: f.key}, 405, "method_not_allowed"},
		{"post to health", request{method: "POST", path: "/healthz", body: "x"}, 405, "method_not_allowed"},
		{"desk: bad id", request{path: "/admin/inbox/x", key: f.platform}, 404, "not_found"},
		{"desk: unknown row", request{path: "/admin/inbox/999", key: f.platform}, 404, "not_found"},
		{"desk: no reason", request{method: "POST", path: "/admin/inbox/1/requeue", key: f.platform, body: `{"reason":""}`}, 422, "validation_failed"},
		{"desk: unknown conflict", request{path: "/admin/conflicts/9", key: f.platform}, 404, "not_found"},
		{"desk: bad resolution", request{method: "POST", path: "/admin/conflicts/9/resolve", key: f.platform, body: `{"resolution":"x","reason":"r"}`}, 422, "validation_failed"},
		{"desk: unknown conflict resolved", request{method: "POST", path: "/admin/conflicts/9/resolve", key: f.platform, body: `{"resolution":"ignore","reason":"r"}`}, 404, "not_found"},
		{"desk: unknown case", request{path: "/admin/cases/9", key: f.platform}, 404, "not_found"},
		{"desk: bad kind", request{path: "/admin/cases?kind=x", key: f.platform}, 400, "invalid_query"},
		{"desk: unknown case resolved", request{method: "POST", path: "/admin/cases/9/resolve", key: f.platform, body: `{"resolution":"abandon","reason":"r"}`}, 404, "not_found"},
		{"desk: bad case resolution", request{method: "POST", path: "/admin/cases/9/resolve", key: f.platform, body: `{"resolution":"x","reason":"r"}`}, 422, "validation_failed"},
		{"TLS ended outside", request{path: f.tasks(), key: f.key, remote: "10.1.2.3:4", header: map[string]string{"X-Forwarded-Proto": "http"}}, 403, "insecure_transport"},
	}
	for _, tt := range tests {
		p := wantProblem(t, f.do(tt.q), tt.status, tt.code)
		if want := map[string]string{"desk: bad case resolution": "resolution", "retry with a number for a reason": "reason"}[tt.name]; want != "" && faultFields(p) != want {
			t.Errorf("fields %q, want %q", faultFields(p), want)
		}
		if t.Failed() {
			t.Fatalf("in %q", tt.name)
		}
	}
	for want, q := range map[string]request{
		"queued, running": {path: f.tasks("?status=bogus"), key: f.key}, "submit_unknown, lost": {path: "/admin/cases?kind=x", key: f.platform},
	} {
		if detail := decoded[Problem](t, f.do(q)).Errors[0].Detail; !strings.Contains(detail, want) {
			t.Errorf("%s: %q does not list the words", q.path, detail)
		}
	}
	w := f.do(request{path: f.tasks()})
	if w.Header().Get("WWW-Authenticate") == "" {
		t.Error("401 without WWW-Authenticate")
	}
	if allow := f.do(request{method: "DELETE", path: f.tasks("/", id)}).Header().Get("Allow"); !strings.Contains(allow, "GET") {
		t.Errorf("Allow %q", allow)
	}
	if w := f.do(request{path: f.tasks(), key: f.key, remote: "192.0.2.1:4", header: map[string]string{"X-Forwarded-Proto": "http"}}); w.Code != http.StatusOK {
		t.Errorf("X-Forwarded-Proto of a stranger counts: %d", w.Code)
	}
}

func TestTooManyHeaders(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	header := map[string]string{}
	for i := range 101 {
		header[fmt.Sprintf("X-Header-%d", i)] = "x"
	}
	wantProblem(t, f.do(request{path: "/healthz", header: header}), http.StatusRequestHeaderFieldsTooLarge, "too_many_headers")
}

// TestStoreAway answers 503 while the database is away and recovers by itself.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.submitted()
	f.store.fail(fmt.Errorf("dial tcp 10.0.0.5:5432: %s: %w", vendorText, ports.ErrUnavailable))
	for _, q := range []request{
		{path: f.tasks("/", id), key: f.key},
		{method: "POST", path: f.tasks(), key: f.key, body: goodSubmit},
		f.delivery("evt", `{"a":1}`),
	} {
		f.now = f.now.Add(1e9) // no cached key
		wantProblem(t, f.do(q), http.StatusServiceUnavailable, "unavailable")
	}
	f.store.heal()
	if w := f.do(request{path: f.tasks("/", id), key: f.key}); w.Code != http.StatusOK {
		t.Errorf("after the outage: %d %s", w.Code, w.Body)
	}
}

// TestUnknownError keeps the text of an error that no table knows in the log.
func TestUnknownError(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.submitted()
	f.store.fail(errors.New(vendorText))
	w := f.do(request{path: f.tasks("/", id), key: f.key})
	p := decoded[Problem](t, w)
	if w.Code != http.StatusInternalServerError || p.Code != "internal" || strings.Contains(w.Body.String(), vendorText) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(f.log.String(), vendorText) || !strings.Contains(f.log.String(), p.TraceID) {
		t.Errorf("the log does not tell: %s", f.log)
	}
	// On a callback nothing may be acknowledged, and the vendor shall come again.
	wantProblem(t, f.do(f.delivery("evt", `{"a":1}`)), http.StatusServiceUnavailable, "unavailable")
}

func TestPanic(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.handler = f.server.handler([]route{{method: "GET", pattern: "/boom", handle: func(http.ResponseWriter, *http.Request, *call) error {
		panic(vendorText)
	}}})
	w := f.do(request{path: "/boom"})
	if p := decoded[Problem](t, w); w.Code != http.StatusInternalServerError || p.Code != "internal" || strings.Contains(w.Body.String(), vendorText) {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	if !strings.Contains(f.log.String(), vendorText) {
		t.Error("the panic is not in the log")
	}
}

// FuzzSubmit sends anything as the body of a submit: it is stored or refused
// with a problem, never a 500.
func FuzzSubmit(f *testing.F) {
	f.Add(goodSubmit)
	f.Add(`{"provider":"acme","model":"m","input":{"prompt":"\u0000","extra":{"a":1e999},"seed":1}}`)
	f.Add("{\"\xff\":1}")
	f.Add(`{"metadata":{"a":{"b":[1,2,{"c":null}]}},"input":null}`)
	f.Fuzz(func(t *testing.T, body string) {
		x := newFixture(t)
		w := x.do(request{method: http.MethodPost, path: x.tasks(), key: x.key, body: body})
		if w.Code == http.StatusCreated {
			return
		}
		checkRefusal(t, w)
	})
}

func checkRefusal(t *testing.T, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code < 400 || w.Code >= 500 {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	if p := decoded[Problem](t, w); p.Code == "" || p.Detail == "" {
		t.Errorf("incomplete problem %s", w.Body)
	}
}
