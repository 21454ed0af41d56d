package porttest

import (
	"bytes"
	"slices"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func accessTests() []storeTest {
	return []storeTest{
		{"Keys", accessKeys},
		{"Revocation", accessRevocation},
		{"NamesAreKept", accessNamesAreKept},
		{"Project", accessProject},
		{"Ping", accessPing},
		{"Credits", accessCredits},
		{"CreditsRefused", accessCreditsRefused},
	}
}

func (b *storeBench) newKey(tenant domain.TenantID, name string) ports.APIKey {
	b.t.Helper()
	key := ports.APIKey{
		ID: newID(), TenantID: tenant, Name: name, Prefix: "ak_" + name, Hash: hash("secret of " + name),
		Scopes: []ports.Scope{ports.ScopeRead, ports.ScopeWrite}, CreatedAt: b.Clock.Now(),
	}
	if err := b.Store.CreateKey(b.ctx, key); err != nil {
		b.t.Fatalf("CreateKey: %v", err)
	}
	return key
}

func accessKeys(t *testing.T, b *storeBench) {
	other := b.newTenant("another", 0)
	first := b.newKey(b.tenant, "first")
	b.Clock.Advance(time.Second)
	bound := ports.APIKey{
		ID: newID(), TenantID: b.tenant, ProjectID: b.project, Name: "bound", Prefix: "ak_bound", Hash: hash("bound"),
		Scopes: ports.Scopes(), CreatedAt: b.Clock.Now(),
	}
	if err := b.Store.CreateKey(b.ctx, bound); err != nil {
		t.Fatal(err)
	}
	b.Clock.Advance(time.Second)
	foreign := b.newKey(other, "foreign")
	for _, want := range []ports.APIKey{first, bound, foreign} {
		got, err := b.Store.KeyByHash(b.ctx, want.Hash)
		if err != nil || got.ID != want.ID || got.TenantID != want.TenantID || got.ProjectID != want.ProjectID || got.Name != want.Name ||
			got.Prefix != want.Prefix || !bytes.Equal(got.Hash, want.Hash) || !slices.Equal(got.Scopes, want.Scopes) ||
			!got.CreatedAt.Equal(want.CreatedAt) || got.RevokedAt != nil {
			t.Errorf("key %+v, %v\nwant %+v", got, err, want)
		}
	}
	_, err := b.Store.KeyByHash(b.ctx, hash("nobody's"))
	wantErr(t, "an unknown key", err, ports.ErrNotFound)
	b.wantKeys(b.tenant, bound, first)
	b.wantKeys(domain.TenantID{}, foreign, bound, first)
}

func (b *storeBench) wantKeys(tenant domain.TenantID, want ...ports.APIKey) {
	b.t.Helper()
	keys, err := b.Store.ListKeys(b.ctx, tenant)
	if err != nil {
		b.t.Fatal(err)
	}
	same := slices.EqualFunc(keys, want, func(a, w ports.APIKey) bool { return a.ID == w.ID })
	if !same {
		b.t.Errorf("keys %+v\nwant %+v", keys, want)
	}
}

func accessRevocation(t *testing.T, b *storeBench) {
	key, other := b.newKey(b.tenant, "key"), b.newKey(b.tenant, "other")
	at := b.Clock.Advance(time.Minute)
	if err := b.Store.RevokeKey(b.ctx, key.ID, at); err != nil {
		t.Fatal(err)
	}
	_, err := b.Store.KeyByHash(b.ctx, key.Hash)
	wantErr(t, "a revoked key", err, ports.ErrNotFound)
	if _, err := b.Store.KeyByHash(b.ctx, other.Hash); err != nil {
		t.Errorf("the other key: %v", err)
	}
	keys, err := b.Store.ListKeys(b.ctx, b.tenant)
	if err != nil || len(keys) != 2 {
		t.Fatalf("%d keys, %v; want the revoked one too", len(keys), err)
	}
	for _, k := range keys {
		if revoked := k.RevokedAt != nil; revoked != (k.ID == key.ID) || revoked && !k.RevokedAt.Equal(at) {
			t.Errorf("key %s revoked at %v", k.Name, k.RevokedAt)
		}
	}
	wantErr(t, "an unknown key", b.Store.RevokeKey(b.ctx, newID(), at), ports.ErrNotFound)
}

// accessNamesAreKept: a start may create its tenant and project again.
func accessNamesAreKept(t *testing.T, b *storeBench) {
	tenant, err := b.Store.CreateTenant(b.ctx, ports.Tenant{ID: domain.TenantID{ID: newID()}, Name: "tenant " + b.tenant.String(), Credits: 9_000_000, CreatedAt: b.Clock.Now()})
	if err != nil || tenant.ID != b.tenant || tenant.Credits != 1_000_000 {
		t.Errorf("the tenant again: %+v, %v", tenant, err)
	}
	project, err := b.Store.CreateProject(b.ctx, ports.Project{
		ID: domain.ProjectID{ID: newID()}, TenantID: b.tenant, Name: "project", OnLateSuccess: domain.LateSuccessDiscard, CreatedAt: b.Clock.Now(),
	})
	if err != nil || project.ID != b.project || project.OnLateSuccess != domain.LateSuccessKeep {
		t.Errorf("the project again: %+v, %v", project, err)
	}
	if other := b.newProject(b.newTenant("another", 0), "project"); other == b.project {
		t.Error("a project of another tenant under the same name is the same")
	}
}

func accessProject(t *testing.T, b *storeBench) {
	other := b.newTenant("another", 0)
	got, err := b.Store.Project(b.ctx, b.tenant, b.project)
	if err != nil || got.ID != b.project || got.TenantID != b.tenant || got.Name != "project" || got.OnLateSuccess != domain.LateSuccessKeep || got.CreatedAt.IsZero() {
		t.Errorf("project %+v, %v", got, err)
	}
	_, err = b.Store.Project(b.ctx, other, b.project)
	wantErr(t, "a project of another tenant", err, ports.ErrNotFound)
	_, err = b.Store.Project(b.ctx, b.tenant, domain.ProjectID{ID: newID()})
	wantErr(t, "an unknown project", err, ports.ErrNotFound)
	_, err = b.Store.Project(b.ctx, domain.TenantID{}, b.project)
	wantErr(t, "without a tenant", err, ports.ErrNotFound)
}

func accessPing(t *testing.T, b *storeBench) {
	if err := b.Store.Ping(b.ctx); err != nil {
		t.Errorf("Ping: %v", err)
	}
}
