package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestInboxShow: what a vendor sent is shown as what it is, and never as commands
// for a terminal.
func TestInboxShow(t *testing.T) {
	t.Parallel()
	for payload, want := range map[string]string{
		`{"status":"done","n":1}`: `"status": "done"`,
		"a=1\nb=2":                `"payload": "a=1\nb=2"`,
		"\xff\x00":                `"payload": "/wA="`,
		"\"\u009b31m\"":           `"payload": "IsKbMzFtIg=="`,
	} {
		encoded := base64.StdEncoding.EncodeToString([]byte(payload))
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Query().Get("payload") != "full" {
				fmt.Fprint(w, `{"inbox":{"id":7,"payload_shape":{"status":"string of 4 bytes"}}}`)
				return
			}
			fmt.Fprintf(w, `{"inbox":{"id":7,"payload":"%s"}}`, encoded)
		}))
		t.Cleanup(srv.Close)
		at := []string{"inbox", "show", "7", "--url", srv.URL, "--api-key", "ak_x"}
		if code, out, errs := ran(t, at...); code != exitOK || !strings.Contains(out, "string of 4 bytes") {
			t.Errorf("the shape: exit %d: %s%s", code, out, errs)
		}
		if code, out, errs := ran(t, append(at, "--full", "--reason", "ticket 4")...); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d: %s%s", payload, code, out, errs)
		}
		if _, out, _ := ran(t, append(at, "--raw")...); out != payload {
			t.Errorf("--raw gives %q, want %q", out, payload)
		}
	}
}

// TestInboxRequeue: one row by its number, many by a filter, and nothing without a
// reason.
func TestInboxRequeue(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		asked = append(asked, r.URL.Path+" "+string(body))
		mu.Unlock()
		if r.URL.Path == "/admin/inbox/7/requeue" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		fmt.Fprint(w, `{"requeue":{"dry_run":true,"rows":3,"last_due_at":"2026-01-02T03:04:05.000Z","groups":[{"provider":"acme","status":"dead","code":null,"rows":3,"oldest":"2026-01-01T00:00:00.000Z","newest":"2026-01-01T00:00:00.000Z"}]}}`)
	}))
	t.Cleanup(srv.Close)
	at := []string{"--url", srv.URL, "--api-key", "ak_x"}
	for _, tt := range []struct {
		args []string
		code int
		out  string
	}{
		{[]string{"7", "--reason", "r"}, exitOK, "done"},
		{[]string{"--dry-run", "--provider", "acme", "--older-than", "24h", "--rate", "5"}, exitOK, "3 would be requeued, the last of them at 2026-01-02T03:04:05.000Z"},
		{[]string{"--reason", "mended", "--limit", "9"}, exitOK, "3 requeued"},
		{[]string{"--provider", "acme"}, exitUsage, "--reason"},
		{[]string{"7", "--dry-run"}, exitUsage, "filter"},
	} {
		code, out, errs := ran(t, append(append([]string{"inbox", "requeue"}, tt.args...), at...)...)
		if code != tt.code || !strings.Contains(out+errs, tt.out) {
			t.Errorf("%v: exit %d: %s%s", tt.args, code, out, errs)
		}
	}
	want := []string{
		`/admin/inbox/7/requeue {"reason":"r"}`,
		`/admin/inbox/requeue {"dry_run":true,"limit":1000,"older_than":"24h","provider":"acme","rate":5,"reason":""}`,
		`/admin/inbox/requeue {"dry_run":false,"limit":9,"rate":100,"reason":"mended"}`,
	}
	if diff := cmp.Diff(want, asked); diff != "" {
		t.Errorf("asked (-want +got):\n%s", diff)
	}
}

// FuzzReadable: whatever a vendor sent, the answer stays JSON and holds no command
// for a terminal.
func FuzzReadable(f *testing.F) {
	for _, seed := range []string{"", "{}", `{"a":[1,"b"]}`, "a=1", "\xff", "\x1b[2J", "\"\u009b\"", "\"payload\":\"e30=\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		encoded := base64.StdEncoding.EncodeToString(payload)
		got := readable(json.RawMessage(`{"inbox":{"id":1,"payload":"`+encoded+`"}}`), encoded, payload)
		if !json.Valid(got) || !printable(got) {
			t.Errorf("%q gives %q", payload, got)
		}
	})
}
