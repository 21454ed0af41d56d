package httpapi

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"
)

func TestCallbackRate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cfg := f.server.cfg
	cfg.CallbackRate, cfg.CallbackBurst = 2, 3
	f.handler = must(New(cfg)).Handler()
	bad := f.delivery("evt", "{}")
	bad.header["Acme-Signature"] = "no"
	for range 3 {
		wantProblem(t, f.do(bad), http.StatusUnauthorized, "delivery_refused")
	}
	w := f.do(bad)
	wantProblem(t, w, http.StatusTooManyRequests, "rate_limited")
	if got := w.Header().Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q", got)
	}
	good := f.delivery("evt", "{}")
	good.remote = "198.51.100.7:99"
	if w := f.do(good); w.Code != http.StatusNoContent {
		t.Errorf("another source: %d %s", w.Code, w.Body)
	}
	f.now = f.now.Add(500 * time.Millisecond)
	wantProblem(t, f.do(bad), http.StatusUnauthorized, "delivery_refused")
}

func TestProviderRate(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cfg := f.server.cfg
	cfg.CallbackRate, cfg.CallbackBurst, cfg.ProviderRate, cfg.ProviderBurst = 1, 2, 4, 4
	f.handler = must(New(cfg)).Handler()
	from := func(remote string) request {
		d := f.delivery("evt "+remote, "{}")
		d.remote = remote
		return d
	}
	for range 2 {
		if w := f.do(from("198.51.100.7:99")); w.Code != http.StatusNoContent {
			t.Fatalf("%d %s", w.Code, w.Body)
		}
	}
	for range 20 { // one address that sends too much uses up nothing of the others' share
		wantProblem(t, f.do(from("198.51.100.7:99")), http.StatusTooManyRequests, "rate_limited")
	}
	for _, remote := range []string{"198.51.100.8:99", "198.51.100.9:99"} {
		if w := f.do(from(remote)); w.Code != http.StatusNoContent {
			t.Errorf("%s: %d %s", remote, w.Code, w.Body)
		}
	}
	w := f.do(from("198.51.100.10:99"))
	wantProblem(t, w, http.StatusTooManyRequests, "rate_limited")
	if got := w.Header().Get("Retry-After"); got != "1" {
		t.Errorf("Retry-After %q", got)
	}
	f.now = f.now.Add(250 * time.Millisecond)
	if w := f.do(from("198.51.100.10:99")); w.Code != http.StatusNoContent {
		t.Errorf("after a while: %d %s", w.Code, w.Body)
	}
}

func TestSource(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for _, tt := range []struct{ remote, forwarded, want string }{
		{"198.51.100.7:1", "", "198.51.100.7/32"},
		{"198.51.100.7:1", "203.0.113.9", "198.51.100.7/32"}, // a stranger's claim
		{"10.0.0.1:1", "203.0.113.9", "203.0.113.9/32"},
		{"10.0.0.1:1", "1.1.1.1, 203.0.113.9, 10.0.0.2", "203.0.113.9/32"},
		{"10.0.0.1:1", "garbage", "10.0.0.1/32"},
		{"10.0.0.1:1", "", "10.0.0.1/32"},
		{"[::ffff:10.0.0.1]:1", "2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"},
		{"[2001:db8::1%eth0]:1", "", "2001:db8::/64"},
	} {
		r := httptest.NewRequest(http.MethodPost, "/callbacks/acme/x", nil)
		r.RemoteAddr = tt.remote
		if tt.forwarded != "" {
			r.Header.Set("X-Forwarded-For", tt.forwarded)
		}
		if got := f.server.source(r); got != netip.MustParsePrefix(tt.want) {
			t.Errorf("%s via %q: %s, want %s", tt.remote, tt.forwarded, got, tt.want)
		}
	}
}
