package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

// TestDeskIsForThePlatform keeps every tenant's keys, an operator's too, away from
// rows that belong to all.
func TestDeskIsForThePlatform(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	routes := 0
	for _, rt := range f.server.routes() {
		if !strings.HasPrefix(rt.pattern, "/admin") {
			continue
		}
		routes++
		q := request{method: rt.method, path: strings.ReplaceAll(rt.pattern, "{id}", "1")}
		if rt.method == http.MethodPost {
			q.body = `{"resolution":"ignore","reason":"r"}`
		}
		for _, key := range []string{f.operator, f.foreignOperator, f.key, f.reader} {
			q.key = key
			wantProblem(t, f.do(q), http.StatusForbidden, "scope_missing")
		}
		q.key = f.platform
		if w := f.do(q); w.Code == http.StatusUnauthorized || w.Code == http.StatusForbidden {
			t.Errorf("%s %s: the platform gets %d", rt.method, rt.pattern, w.Code)
		}
	}
	if routes == 0 {
		t.Fatal("no route of the desk was found")
	}
}

// TestAudited names the key in the form that the command line shows, and a reason
// only where there is one.
func TestAudited(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	detail := func(body string) string {
		id := f.submitted()
		if w := f.do(request{method: http.MethodPost, path: f.tasks("/", id, "/cancel"), key: f.key, body: body}); w.Code != http.StatusAccepted {
			t.Fatalf("cancel: %d %s", w.Code, w.Body)
		}
		for _, e := range decoded[timelineAnswer](t, f.do(request{path: f.tasks("/", id, "/timeline"), key: f.operator})).Entries {
			if e.Kind == "audit" && e.Detail != nil {
				return *e.Detail
			}
		}
		return "no audit"
	}
	if got := detail(""); !strings.HasPrefix(got, "key_") || len(got) != 30 {
		t.Errorf("without a reason: %q", got)
	}
	if got := detail(`{"reason":"wrong prompt"}`); !strings.HasSuffix(got, ": wrong prompt") {
		t.Errorf("with a reason: %q", got)
	}
}
