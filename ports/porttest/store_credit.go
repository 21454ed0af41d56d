package porttest

import (
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// granting is an audited grant under a new action.
func granting() ports.Audit {
	return ports.Audit{ActionID: domain.ActionID{ID: newID()}, Actor: "operator", Action: "credit.grant", Reason: "paid invoice"}
}

func (b *storeBench) wantBalance(what string, tenant domain.TenantID, want ports.Balance) {
	b.t.Helper()
	got, err := b.Store.Balance(b.ctx, tenant)
	if err != nil || got != want {
		b.t.Errorf("%s: balance %+v, %v; want %+v", what, got, err, want)
	}
}

// accessCredits: a tenant without credits can work once it was granted some, and
// the four figures add up at every step.
func accessCredits(t *testing.T, b *storeBench) {
	tenant := b.newTenant("poor", 5)
	other := b.newTenant("another", 7)
	b.wantBalance("at the beginning", tenant, ports.Balance{Granted: 5, Available: 5})

	action := granting()
	for range 2 { // the second is a repetition
		got, err := b.Store.GrantCredits(b.ctx, tenant, 20, action)
		if want := (ports.Balance{Granted: 25, Available: 25}); err != nil || got != want {
			t.Fatalf("grant: %+v, %v; want %+v", got, err, want)
		}
	}
	if _, err := b.Store.GrantCredits(b.ctx, tenant, 1, granting()); err != nil {
		t.Fatalf("another grant: %v", err)
	}
	b.wantBalance("after both", tenant, ports.Balance{Granted: 26, Available: 26})
	b.wantBalance("of another tenant", other, ports.Balance{Granted: 7, Available: 7})

	b.tenant, b.project = tenant, b.newProject(tenant, "project")
	p := b.params()
	p.Attempt.Credits = 26
	m := b.createWith(p)
	b.wantBalance("with a task", tenant, ports.Balance{Granted: 26, Reserved: 26})
	b.must(item(m, domain.Input{Kind: domain.InputCancelRequested}))
	b.wantBalance("once it is canceled", tenant, ports.Balance{Granted: 26, Available: 26})

	found, err := b.Store.TenantByName(b.ctx, "poor "+tenant.String())
	if err != nil || found.ID != tenant || found.Credits != 26 {
		t.Errorf("tenant by name: %+v, %v", found, err)
	}
}

func accessCreditsRefused(t *testing.T, b *storeBench) {
	other := b.newTenant("another", 0)
	action := granting()
	if _, err := b.Store.GrantCredits(b.ctx, b.tenant, 10, action); err != nil {
		t.Fatal(err)
	}
	before, err := b.Store.Balance(b.ctx, b.tenant)
	if err != nil {
		t.Fatal(err)
	}
	_, err = b.Store.GrantCredits(b.ctx, b.tenant, 11, action)
	wantErr(t, "the same action with another amount", err, ports.ErrIdempotencyMismatch)
	_, err = b.Store.GrantCredits(b.ctx, other, 10, action)
	wantErr(t, "the same action for another tenant", err, ports.ErrIdempotencyMismatch)
	for _, credits := range []int64{0, -1} {
		if _, err := b.Store.GrantCredits(b.ctx, b.tenant, credits, granting()); err == nil {
			t.Errorf("%d credits were granted", credits)
		}
	}
	if _, err := b.Store.GrantCredits(b.ctx, b.tenant, 1, ports.Audit{}); err == nil {
		t.Error("a grant without an action passed")
	}
	nobody := domain.TenantID{ID: newID()}
	_, err = b.Store.GrantCredits(b.ctx, nobody, 1, granting())
	wantErr(t, "a grant for nobody", err, ports.ErrNotFound)
	_, err = b.Store.Balance(b.ctx, nobody)
	wantErr(t, "the balance of nobody", err, ports.ErrNotFound)
	_, err = b.Store.TenantByName(b.ctx, "nobody")
	wantErr(t, "a tenant of no such name", err, ports.ErrNotFound)
	b.wantBalance("after all that", b.tenant, before)
}
