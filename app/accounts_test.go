package app_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func newAccounts(b *bundle, health ports.Health) *app.Accounts {
	b.t.Helper()
	a, err := app.NewAccounts(app.AccountsDeps{
		Env: b.env, Health: health, Vendors: app.NewVendors(b.vendor),
		Submits: app.QuotaConfig{Account: app.Rate{PerSecond: 1, Burst: 2}, Accounts: map[string]app.Rate{"acme:main": {PerSecond: 5, Burst: 6}}},
	})
	b.must(err)
	return a
}

func TestAccountsList(t *testing.T) {
	t.Parallel()
	b := setup(t)
	gone := ports.AccountHealth{AccountRef: ports.AccountRef{Provider: "gone", AccountID: "x"}, Health: domain.Health{Limit: 3}}
	if saved, err := b.store.SaveAccountHealth(b.ctx(), gone, nil); err != nil || !saved {
		t.Fatal(saved, err)
	}
	list, err := newAccounts(b, b.store).List(b.ctx())
	b.must(err)
	rule := app.Rate{PerSecond: 1, Burst: 2}
	gone.Version, gone.Breaker, gone.UpdatedAt = 1, domain.BreakerClosed, b.clock.Now()
	want := []app.AccountView{
		{AccountHealth: ports.AccountHealth{AccountRef: acmeMain}, Configured: true, Submits: app.Rate{PerSecond: 5, Burst: 6}},
		{AccountHealth: ports.AccountHealth{AccountRef: ports.AccountRef{Provider: "acme", AccountID: "spare"}}, Configured: true, Submits: rule},
		{AccountHealth: gone, Submits: rule},
	}
	if diff := cmp.Diff(want, list); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAccountsByHand: what a person decides stops and starts the calls.
func TestAccountsByHand(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	a := newAccounts(b, b.store)
	b.submitted()
	do := func(action app.AccountAction) app.AccountView {
		t.Helper()
		v, err := a.Do(b.ctx(), app.AccountCommand{AccountRef: acmeMain, Action: action, Actor: "key:test", Reason: "maintenance"})
		b.must(err)
		return v
	}
	if v := do(app.AccountOpen); v.Breaker != domain.BreakerOpen || v.Reason != domain.BreakerOperator || !v.Until.IsZero() {
		t.Errorf("opened: %+v", v)
	}
	for range 3 {
		if n := b.polled(time.Hour); n != 0 {
			t.Errorf("%d queries of an account that a person shut", n)
		}
	}
	do(app.AccountRelease)
	if n := b.polled(time.Hour); n != 0 {
		t.Error("a release opened the account")
	}
	if v := do(app.AccountClose); v.State() != domain.BreakerClosed || v.Reason != "" {
		t.Errorf("closed: %+v", v)
	}
	if n := b.polled(0); n != 1 {
		t.Errorf("%d queries of an account that a person opened, want 1", n)
	}

	b.vendor.onQuery = failing(ports.ClassMalformed)
	for range 8 {
		b.polled(2 * time.Minute)
	}
	if row := b.account(); !row.Quarantined() {
		t.Fatalf("account %+v", row)
	}
	if v := do(app.AccountRelease); v.Quarantined() || v.Sample != "" {
		t.Errorf("released: %+v", v)
	}
	b.vendor.onQuery = nil
	if n := b.polled(3 * time.Minute); n != 1 {
		t.Errorf("%d queries after the release, want 1", n)
	}
}

// racingHealth has somebody change the row before each of the first saves.
type racingHealth struct {
	ports.Health
	races int
}

func (h *racingHealth) SaveAccountHealth(ctx context.Context, row ports.AccountHealth, audit *ports.Audit) (bool, error) {
	if h.races > 0 {
		h.races--
		other := row
		other.Health, _ = domain.Health{}.Quarantine(5, "x", time.Now(), domain.HealthPolicy{}.WithDefaults())
		if _, err := h.Health.SaveAccountHealth(ctx, other, nil); err != nil {
			return false, err
		}
	}
	return h.Health.SaveAccountHealth(ctx, row, audit)
}

func TestAccountsRefuse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a := newAccounts(b, b.store)
	for name, cmd := range map[string]app.AccountCommand{
		"no reason": {AccountRef: acmeMain, Action: app.AccountOpen},
		"no action": {AccountRef: acmeMain, Reason: "r"},
	} {
		var faults *app.FieldErrors
		if _, err := a.Do(b.ctx(), cmd); !errors.As(err, &faults) {
			t.Errorf("%s: %v", name, err)
		}
	}
	nobody := app.AccountCommand{AccountRef: ports.AccountRef{Provider: "acme", AccountID: "nobody"}, Action: app.AccountOpen, Reason: "r"}
	if _, err := a.Do(b.ctx(), nobody); !errors.Is(err, ports.ErrNotFound) {
		t.Errorf("an unknown account: %v", err)
	}
	cmd := app.AccountCommand{AccountRef: acmeMain, Action: app.AccountOpen, Reason: "r"}
	v, err := newAccounts(b, &racingHealth{b.store, 2}).Do(b.ctx(), cmd)
	if err != nil || v.Breaker != domain.BreakerOpen || !v.Quarantined() {
		t.Errorf("against others: %+v, %v", v, err)
	}
	if _, err := newAccounts(b, &racingHealth{b.store, 100}).Do(b.ctx(), cmd); !errors.Is(err, ports.ErrUnavailable) {
		t.Errorf("against others without end: %v", err)
	}
	if _, err := app.NewAccounts(app.AccountsDeps{}); err == nil {
		t.Error("accounts without anything are accepted")
	}
}
