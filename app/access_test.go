package app_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// countingAccess counts what the cache lets through.
type countingAccess struct {
	ports.Access
	asked int
	fail  error
}

func (c *countingAccess) KeyByHash(ctx context.Context, hash []byte) (ports.APIKey, error) {
	c.asked++
	if c.fail != nil {
		return ports.APIKey{}, c.fail
	}
	return c.Access.KeyByHash(ctx, hash)
}

func newAccess(b *bundle) (*app.Access, *countingAccess) {
	b.t.Helper()
	store := &countingAccess{Access: b.store}
	a, err := app.NewAccess(app.AccessDeps{Env: b.env, Access: store}, app.AccessConfig{})
	b.must(err)
	return a, store
}

func TestAccessKeys(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, store := newAccess(b)
	raw, key, err := a.CreateKey(b.ctx(), app.KeyCommand{TenantID: b.project.TenantID, Name: "ci", Scopes: []ports.Scope{ports.ScopeWrite}})
	b.must(err)
	if !strings.HasPrefix(raw, "ak_") || len(raw) != 55 || !strings.HasPrefix(raw, key.Prefix) || bytes.Contains(key.Hash, []byte(raw)) {
		t.Fatalf("key %q with prefix %q", raw, key.Prefix)
	}
	p, err := a.Authenticate(b.ctx(), raw)
	b.must(err)
	if p.KeyID != key.ID || p.TenantID != b.project.TenantID {
		t.Errorf("principal %+v", p)
	}
	if !p.Can(ports.ScopeRead) || !p.Can(ports.ScopeWrite) || p.Can(ports.ScopeOperator) || p.Can(ports.ScopePlatform) {
		t.Error("a writer may read and write")
	}
	for range 3 {
		_, err := a.Authenticate(b.ctx(), raw)
		b.must(err)
	}
	if store.asked != 1 {
		t.Errorf("asked %d times within the cache's time", store.asked)
	}
	for _, bad := range []string{"", "ak_", raw[:54], raw + "a", strings.ToUpper(raw), "ak_" + strings.Repeat("a", 52), "bk_" + raw[3:]} {
		if _, err := a.Authenticate(b.ctx(), bad); !errors.Is(err, app.ErrUnauthenticated) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// TestScopesInclude keeps what is of every tenant apart from what is of one.
func TestScopesInclude(t *testing.T) {
	t.Parallel()
	for have, want := range map[ports.Scope][]ports.Scope{
		ports.ScopeRead:     {ports.ScopeRead},
		ports.ScopeWrite:    {ports.ScopeRead, ports.ScopeWrite},
		ports.ScopeOperator: {ports.ScopeRead, ports.ScopeWrite, ports.ScopeOperator},
		ports.ScopePlatform: {ports.ScopePlatform},
	} {
		p := app.Principal{Scopes: []ports.Scope{have}}
		for _, scope := range ports.Scopes() {
			if p.Can(scope) != slices.Contains(want, scope) {
				t.Errorf("a key with %s may %s: %v", have, scope, p.Can(scope))
			}
		}
	}
}

func TestAccessRevocation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	here, _ := newAccess(b)
	there, _ := newAccess(b)
	raw, key, err := here.CreateKey(b.ctx(), app.KeyCommand{TenantID: b.project.TenantID, Scopes: []ports.Scope{ports.ScopeOperator}})
	b.must(err)
	for _, a := range []*app.Access{here, there} {
		_, err := a.Authenticate(b.ctx(), raw)
		b.must(err)
	}
	b.must(here.RevokeKey(b.ctx(), key.ID))
	if _, err := here.Authenticate(b.ctx(), raw); !errors.Is(err, app.ErrUnauthenticated) {
		t.Errorf("where it was revoked: %v", err)
	}
	b.clock.Advance(2 * time.Second)
	if _, err := there.Authenticate(b.ctx(), raw); !errors.Is(err, app.ErrUnauthenticated) {
		t.Errorf("elsewhere, two seconds later: %v", err)
	}
	if err := here.RevokeKey(b.ctx(), newID()); !errors.Is(err, ports.ErrNotFound) {
		t.Errorf("an unknown key: %v", err)
	}
}

func TestAccessStoreAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, store := newAccess(b)
	raw, _, err := a.CreateKey(b.ctx(), app.KeyCommand{TenantID: b.project.TenantID, Scopes: []ports.Scope{ports.ScopeRead}})
	b.must(err)
	store.fail = ports.ErrUnavailable
	if _, err := a.Authenticate(b.ctx(), raw); !errors.Is(err, ports.ErrUnavailable) || errors.Is(err, app.ErrUnauthenticated) {
		t.Errorf("got %v: an outage is no refusal", err)
	}
}

func TestAccessProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, _ := newAccess(b)
	p := app.Principal{TenantID: b.project.TenantID}
	got, err := a.Project(b.ctx(), p, b.project.ID)
	b.must(err)
	if got.OnLateSuccess != domain.LateSuccessKeep {
		t.Errorf("project %+v", got)
	}
	if !p.May(got) || !(app.Principal{TenantID: p.TenantID, ProjectID: got.ID}).May(got) {
		t.Error("the project's own callers may not go on")
	}
	for name, stranger := range map[string]app.Principal{
		"another tenant":  {TenantID: domain.TenantID{ID: newID()}},
		"another project": {TenantID: b.project.TenantID, ProjectID: domain.ProjectID{ID: newID()}},
	} {
		if _, err := a.Project(b.ctx(), stranger, b.project.ID); !errors.Is(err, ports.ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
		if stranger.May(got) {
			t.Errorf("%s may go on", name)
		}
	}
}

func TestAccessValidation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	a, _ := newAccess(b)
	for name, cmd := range map[string]app.KeyCommand{
		"no tenant":     {Scopes: []ports.Scope{ports.ScopeRead}},
		"no scope":      {TenantID: b.project.TenantID},
		"unknown scope": {TenantID: b.project.TenantID, Scopes: []ports.Scope{"root"}},
		"one project of the platform": {
			TenantID: b.project.TenantID, ProjectID: b.project.ID, Scopes: []ports.Scope{ports.ScopeRead, ports.ScopePlatform},
		},
		"bad name": {TenantID: b.project.TenantID, Scopes: []ports.Scope{ports.ScopeRead}, Name: "\x00"},
	} {
		var faults *app.FieldErrors
		if _, _, err := a.CreateKey(b.ctx(), cmd); !errors.As(err, &faults) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if (app.AccessConfig{CacheFor: time.Minute}).Validate() == nil {
		t.Error("a revoked key may work for a minute")
	}
}
