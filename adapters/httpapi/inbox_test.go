package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// failed stores deliveries that do not parse; each waits for a retry then.
func (f *fixture) failed(names ...string) {
	f.t.Helper()
	for _, name := range names {
		_, err := f.store.Receive(context.Background(), []ports.InboxRow{{
			Provider: "acme", AccountID: "main", DedupKey: name, Trust: "authentic", ReceivedAt: f.now,
			PayloadHash: []byte(name), Payload: []byte(`{"url":"https://x.example/s3cret?` + name + `"}`),
		}})
		if err != nil {
			f.t.Fatal(err)
		}
	}
	_, err := f.store.Process(context.Background(), ports.ProcessParams{Workers: 1, Limit: 100, Now: f.now}, func(ports.InboxRow) ports.Decoded {
		return ports.Decoded{Err: errors.New("cut"), Code: "cut"}
	})
	if err != nil {
		f.t.Fatal(err)
	}
}

type inboxPage struct {
	Inbox []inboxView `json:"inbox"`
	Next  *string     `json:"next"`
}

func TestInboxPages(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.failed("a", "b", "c")
	seen := 0
	for path := "/admin/inbox?status=retry&code=cut&provider=acme&limit=2"; path != ""; {
		page := decoded[inboxPage](t, f.do(request{path: path, key: f.platform}))
		seen += len(page.Inbox)
		for _, row := range page.Inbox {
			if row.Payload != nil || row.PayloadShape != nil {
				t.Errorf("a list shows payloads: %+v", row)
			}
		}
		path = ""
		if page.Next != nil {
			path = "/admin/inbox?status=retry&code=cut&provider=acme&limit=2&before=" + *page.Next
		}
	}
	if seen != 3 {
		t.Errorf("%d rows on all pages, want 3", seen)
	}
	for query, want := range map[string]int{"status=dead": 0, "code=other": 0, "provider=other": 0, "older_than=1h": 0, "older_than=0s": 0, "": 3} {
		if page := decoded[inboxPage](t, f.do(request{path: "/admin/inbox?" + query, key: f.platform})); len(page.Inbox) != want {
			t.Errorf("%s: %d rows, want %d", query, len(page.Inbox), want)
		}
	}
	for _, query := range []string{"status=done", "older_than=yesterday", "older_than=-1h", "before=x", "before=0", "code=%00"} {
		wantProblem(t, f.do(request{path: "/admin/inbox?" + query, key: f.platform}), http.StatusBadRequest, "invalid_query")
	}
}

// TestInboxShowsShapes: values only for those who ask for them, and say so.
func TestInboxShowsShapes(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.failed("a")
	id := decoded[inboxPage](t, f.do(request{path: "/admin/inbox", key: f.platform})).Inbox[0].ID
	path := fmt.Sprintf("/admin/inbox/%d", id)
	for _, p := range []string{path, path + "?payload=shape"} {
		w := f.do(request{path: p, key: f.platform})
		if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "s3cret") || !strings.Contains(w.Body.String(), `"payload_shape":{"url":"string of 26 bytes"}`) {
			t.Errorf("%s: %d %s", p, w.Code, w.Body)
		}
	}
	full := decoded[struct {
		Inbox inboxView `json:"inbox"`
	}](t, f.do(request{path: path + "?payload=full&reason=ticket", key: f.platform}))
	if full.Inbox.Payload == nil || !strings.Contains(string(*full.Inbox.Payload), "s3cret") {
		t.Errorf("full: %+v", full.Inbox)
	}
	wantProblem(t, f.do(request{path: path + "?payload=all", key: f.platform}), http.StatusBadRequest, "invalid_query")
	wantProblem(t, f.do(request{path: path + "?payload=full&reason=" + strings.Repeat("x", 1001), key: f.platform}), http.StatusBadRequest, "invalid_query")
}

func TestInboxRequeueMany(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.failed("a", "b", "c")
	requeue := func(body string) requeueView {
		t.Helper()
		w := f.do(request{method: http.MethodPost, path: "/admin/inbox/requeue", key: f.platform, body: body})
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", body, w.Code, w.Body)
		}
		return decoded[struct {
			Requeue requeueView `json:"requeue"`
		}](t, w).Requeue
	}
	dry := requeue(`{"status":"retry","code":"cut","rate":2,"dry_run":true}`)
	if !dry.DryRun || dry.Rows != 3 || len(dry.Groups) != 1 || dry.Groups[0].Rows != 3 || *dry.Groups[0].Code != "cut" || dry.LastDueAt == nil {
		t.Errorf("dry run %+v", dry)
	}
	if none := requeue(`{"dry_run":true}`); none.Rows != 0 || none.LastDueAt != nil || none.Groups == nil {
		t.Errorf("nothing is dead: %+v", none)
	}
	if done := requeue(`{"status":"retry","limit":2,"rate":2,"reason":"mended"}`); done.DryRun || done.Rows != 2 {
		t.Errorf("requeued %+v", done)
	}
	var due []time.Duration
	for _, row := range decoded[inboxPage](t, f.do(request{path: "/admin/inbox", key: f.platform})).Inbox {
		at, err := time.Parse(time.RFC3339Nano, row.NextRetryAt)
		if err != nil {
			t.Fatal(err)
		}
		due = append(due, at.Sub(f.now))
	}
	if len(due) != 3 || due[2] != 0 || due[1] != 500*time.Millisecond {
		t.Errorf("due after %v, the newest first; want the two oldest at once and half a second later", due)
	}
	for body, field := range map[string]string{
		`{"status":"retry"}`:                  "reason",
		`{"status":"done","reason":"r"}`:      "status",
		`{"limit":100001,"reason":"r"}`:       "limit",
		`{"rate":10001,"reason":"r"}`:         "rate",
		`{"older_than":"soon","reason":"r"}`:  "older_than",
		`{"provider":"a\u0000","reason":"r"}`: "provider",
		`{"limit":-1,"rate":-1,"reason":"r"}`: "limit,rate",
	} {
		p := wantProblem(t, f.do(request{method: http.MethodPost, path: "/admin/inbox/requeue", key: f.platform, body: body}), http.StatusUnprocessableEntity, "validation_failed")
		if got := faultFields(p); got != field {
			t.Errorf("%s: faults in %q, want %q", body, got, field)
		}
	}
}
