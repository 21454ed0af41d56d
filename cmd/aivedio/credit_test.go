package main

import (
	"strings"
	"testing"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// TestCreditUsage: what cannot be granted is said before a database is asked.
func TestCreditUsage(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]string{
		"credit grant --tenant x --reason y":                           "--credits",
		"credit grant --tenant x --credits 5":                          "--reason",
		"credit grant --tenant x --credits 0 --reason y":               "above 0",
		"credit grant --tenant x --credits=-3 --reason y":              "above 0",
		"credit grant --tenant x --credits 5 --reason \u00a0":          "--reason must say why",
		"credit grant --tenant x --credits 5 --reason y --action x":    "--action",
		"credit grant --tenant x --credits 5 --reason y --action ten_": "--action",
		"credit show": "--tenant",
		"credit grant --tenant x --credits 5 --reason " + strings.Repeat("y", maxReason+1): "--reason must say why",
	} {
		code, out, errs := ran(t, strings.Split(args, " ")...)
		if code != exitUsage || out != "" || !strings.Contains(errs, want) {
			t.Errorf("%.60s: exit %d, %q, %q; want %q", args, code, out, errs, want)
		}
	}
}

// TestTenantFlag finds a tenant by its name and by its id, and says how to find
// another.
func TestTenantFlag(t *testing.T) {
	t.Parallel()
	store := memory.NewStore(nil)
	tenant, err := store.CreateTenant(t.Context(), ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: "acme", Credits: 3})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []label{"acme", label(wire.TenantID(tenant.ID))} {
		if got, err := (tenantFlag{name}).find(t.Context(), store); err != nil || got != tenant.ID {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
	if _, err := (tenantFlag{"ten_nobody"}).find(t.Context(), store); err == nil || !strings.Contains(err.Error(), "aivedio key list") {
		t.Errorf("an unknown name: %v", err)
	}
}

func TestPrintBalance(t *testing.T) {
	t.Parallel()
	b := ports.Balance{Granted: 10, Available: 5, Reserved: 2, Spent: 3}
	for asJSON, want := range map[bool][]string{
		false: {"tenant     ten_x", "available  5", "spent      3"},
		true:  {`"tenant":"ten_x"`, `"available":5`, `"granted":10`, `"reserved":2`, `"spent":3`},
	} {
		var out strings.Builder
		if err := printBalance(streams{out: &out}, asJSON, b, map[string]string{"tenant": "ten_x"}); err != nil {
			t.Fatal(err)
		}
		for _, s := range want {
			if !strings.Contains(out.String(), s) {
				t.Errorf("%q lacks %q", out.String(), s)
			}
		}
	}
}
