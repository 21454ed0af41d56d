package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func TestProviderAccounts(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	list := func() accountView {
		t.Helper()
		all := decoded[struct {
			Providers []accountView `json:"providers"`
		}](t, f.do(request{path: "/admin/providers", key: f.platform})).Providers
		if len(all) != 1 || all[0].Provider != "acme" || all[0].Account != "main" {
			t.Fatalf("accounts %+v", all)
		}
		return all[0]
	}
	healthy := list()
	if !healthy.Configured || healthy.Breaker != domain.BreakerClosed || healthy.Reason != nil || healthy.ConcurrencyLimit != nil ||
		healthy.Quotas.Submits != nil || *healthy.Quotas.Queries != (quotaView{PerSecond: 2.5, Burst: 5}) {
		t.Errorf("nothing is known, and %+v", healthy)
	}

	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	policy := domain.HealthPolicy{}.WithDefaults()
	h, _ := domain.Health{}.Open(domain.BreakerAuth, false, now, policy)
	h, _ = h.Quarantine(5, "{id:text}", now, policy)
	h, _ = h.Throttle(time.Minute, 8, now, policy)
	saved, err := f.store.SaveAccountHealth(context.Background(), ports.AccountHealth{AccountRef: ports.AccountRef{Provider: "acme", AccountID: "main"}, Health: h}, nil)
	if err != nil || !saved {
		t.Fatal(saved, err)
	}
	sick := list()
	raw, err := json.Marshal(sick)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`"breaker":"open","breaker_reason":"auth","breaker_until":"2026-01-02T03:05:05.000Z","openings":1`,
		`"concurrency_limit":4,"throttled_until":"2026-01-02T03:05:05.000Z"`,
		`"quarantined_at":"2026-01-02T03:04:05.000Z","quarantine_until":"2026-01-02T03:09:05.000Z","malformed":5,"malformed_sample":"{id:text}"`,
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s\nlacks %s", raw, want)
		}
	}

	act := func(action string) accountView {
		t.Helper()
		w := f.do(request{method: http.MethodPost, path: "/admin/providers/acme/main/" + action, key: f.platform, body: `{"reason":"new key"}`})
		if w.Code != http.StatusOK {
			t.Fatalf("%s: %d %s", action, w.Code, w.Body)
		}
		return decoded[struct {
			Provider accountView `json:"provider"`
		}](t, w).Provider
	}
	if v := act("close"); v.Breaker != domain.BreakerClosed || v.ThrottledUntil != nil || v.QuarantinedAt == nil {
		t.Errorf("closed: %+v", v)
	}
	if v := act("release"); v.QuarantinedAt != nil || v.Sample != nil {
		t.Errorf("released: %+v", v)
	}
	if v := act("open"); v.Breaker != domain.BreakerOpen || *v.Reason != domain.BreakerOperator || v.BreakerUntil != nil {
		t.Errorf("opened: %+v", v)
	}
}

func TestProviderAccountsRefuse(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	post := func(path, body string) *http.Response {
		t.Helper()
		return f.do(request{method: http.MethodPost, path: "/admin/providers/" + path, key: f.platform, body: body}).Result()
	}
	for path, tt := range map[string]struct {
		body string
		want int
	}{
		"acme/main/open":    {`{}`, http.StatusUnprocessableEntity},
		"acme/main/close":   {`{"reason":"r","more":1}`, http.StatusBadRequest},
		"acme/nobody/open":  {`{"reason":"r"}`, http.StatusNotFound},
		"acme/main/explode": {`{"reason":"r"}`, http.StatusNotFound},
	} {
		if got := post(path, tt.body).StatusCode; got != tt.want {
			t.Errorf("%s: %d, want %d", path, got, tt.want)
		}
	}
}
