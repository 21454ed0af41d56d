package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProviderAccounts shows the accounts of a server that is named, and none where
// there is no server.
func TestProviderAccounts(t *testing.T) {
	t.Parallel()
	var posted []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, _ := io.ReadAll(r.Body)
			posted = append(posted, r.URL.EscapedPath()+" "+string(body))
		}
		_, _ = io.WriteString(w, `{"providers":[{"provider":"replicate","account":"main","breaker":"open","breaker_reason":"auth","breaker_until":"2026-01-02T03:04:05.000Z","concurrency_limit":4,"throttled_until":null,"quarantined_at":null,"last_callback_at":null}]}`)
	}))
	t.Cleanup(srv.Close)
	at := []string{"--url", srv.URL, "--api-key", "ak_x"}

	code, out, errs := ran(t, append([]string{"provider", "list"}, at...)...)
	if code != exitOK || !strings.Contains(out, "LONGEST NORMAL") || !strings.Contains(out, "2026-01-02T03:04:05.000Z") || !strings.Contains(out, "auth") {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	if code, out, errs = ran(t, append([]string{"provider", "list", "--json"}, at...)...); code != exitOK || !strings.Contains(out, `"accounts":[{"provider":"replicate"`) {
		t.Errorf("exit %d: %s%s", code, out, errs)
	}
	for _, action := range []string{"open", "close", "release"} {
		if code, _, errs := ran(t, append([]string{"provider", action, "replicate", "a/b", "--reason", "new key"}, at...)...); code != exitOK {
			t.Errorf("%s: exit %d: %s", action, code, errs)
		}
		if want := `/admin/providers/replicate/a%2Fb/` + action + ` {"reason":"new key"}`; len(posted) == 0 || posted[len(posted)-1] != want {
			t.Errorf("posted %q, want %q", posted, want)
		}
	}

	if code, out, errs = ran(t, "provider", "list", "--data", t.TempDir()); code != exitOK || strings.Contains(out, "BREAKER") {
		t.Errorf("without a server: exit %d: %s%s", code, out, errs)
	}
	srv.Close()
	if code, _, _ = ran(t, append([]string{"provider", "list"}, at...)...); code == exitOK {
		t.Error("a server that is named does not answer, and nothing is said")
	}
}
