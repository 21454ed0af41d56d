package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
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
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			fmt.Fprintf(w, `{"inbox":{"id":7,"payload":"%s"}}`, encoded)
		}))
		t.Cleanup(srv.Close)
		at := []string{"inbox", "show", "7", "--url", srv.URL, "--api-key", "ak_x"}
		if code, out, errs := ran(t, at...); code != exitOK || !strings.Contains(out, want) {
			t.Errorf("%q: exit %d: %s%s", payload, code, out, errs)
		}
		if _, out, _ := ran(t, append(at, "--raw")...); out != payload {
			t.Errorf("--raw gives %q, want %q", out, payload)
		}
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
