package app

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ErrUnauthenticated: the key is unknown, revoked or no key at all. It never says
// which.
var ErrUnauthenticated = errors.New("not authenticated")

// keyPrefix marks an API key, so that scanners find a leaked one.
const keyPrefix = "ak_"

// keyBytes is the size of the random part.
const keyBytes = 32

// keyText is the form of a key's random part: lower case base 32.
var keyText = base32.StdEncoding.WithPadding(base32.NoPadding)

// AccessConfig bounds what is remembered.
type AccessConfig struct {
	// CacheFor is how long a key is believed without asking the store: the longest
	// that a revoked key still works. 1 s when zero, and not more than 2 s. A live
	// stream asks once a second, so it ends within two.
	CacheFor time.Duration
	// CacheSize is how many keys are remembered; 10 000 when zero.
	CacheSize int
}

// maxCacheFor is the promise to whoever revokes a key.
const maxCacheFor = 2 * time.Second

// WithDefaults returns a copy with every zero field set.
func (c AccessConfig) WithDefaults() AccessConfig {
	c.CacheFor = cmp.Or(c.CacheFor, time.Second)
	c.CacheSize = cmp.Or(c.CacheSize, 10_000)
	return c
}

// Validate joins every fault.
func (c AccessConfig) Validate() error {
	if c.CacheFor < 0 || c.CacheFor > maxCacheFor || c.CacheSize < 0 {
		return fmt.Errorf("access: cache_for is between 0 and %v, cache_size not negative", maxCacheFor)
	}
	return nil
}

// AccessDeps are what [Access] works with. Random is crypto/rand when nil, the
// rest is required.
type AccessDeps struct {
	Env
	Access ports.Access
	Random io.Reader
}

// Access says who is calling and what they may see.
type Access struct {
	deps AccessDeps
	cfg  AccessConfig

	mu    sync.Mutex
	cache map[[sha256.Size]byte]cachedKey
}

type cachedKey struct {
	principal Principal
	until     time.Time
}

// NewAccess checks what it is given.
func NewAccess(deps AccessDeps, cfg AccessConfig) (*Access, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("access", map[string]bool{"Access": deps.Access != nil}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	if deps.Random == nil {
		deps.Random = rand.Reader
	}
	return &Access{deps: deps, cfg: cfg.WithDefaults(), cache: map[[sha256.Size]byte]cachedKey{}}, nil
}

// Principal is a caller who has shown a live key.
type Principal struct {
	KeyID    domain.ID
	TenantID domain.TenantID
	// ProjectID limits the caller to one project when set.
	ProjectID domain.ProjectID
	Name      string
	Scopes    []ports.Scope
}

// Can reports whether the caller has the scope. Within a tenant an operator may do
// everything and a writer may read; what is of every tenant needs the scope itself.
func (p Principal) Can(scope ports.Scope) bool {
	switch {
	case slices.Contains(p.Scopes, scope):
		return true
	case scope == ports.ScopePlatform:
		return false
	case slices.Contains(p.Scopes, ports.ScopeOperator):
		return true
	}
	return scope == ports.ScopeRead && slices.Contains(p.Scopes, ports.ScopeWrite)
}

// May reports whether the caller may use a project that [Access.Project] has
// returned to the caller of the same key. It asks nobody, so that a live stream
// can be checked often: a project never changes its tenant.
func (p Principal) May(project ports.Project) bool {
	return p.TenantID == project.TenantID && (p.ProjectID.IsZero() || p.ProjectID == project.ID)
}

// Authenticate returns the caller of a key's text. ErrUnauthenticated for
// anything but a live key, ports.ErrUnavailable when the store does not answer.
func (a *Access) Authenticate(ctx context.Context, rawKey string) (Principal, error) {
	if !strings.HasPrefix(rawKey, keyPrefix) || len(rawKey) != len(keyPrefix)+keyText.EncodedLen(keyBytes) {
		return Principal{}, ErrUnauthenticated
	}
	hash := sha256.Sum256([]byte(rawKey))
	if p, ok := a.cached(hash); ok {
		return p, nil
	}
	asked := a.deps.Now()
	key, err := a.deps.Access.KeyByHash(ctx, hash[:])
	switch {
	case errors.Is(err, ports.ErrNotFound):
		return Principal{}, ErrUnauthenticated
	case err != nil:
		return Principal{}, fmt.Errorf("authenticate: %w", err)
	case key.RevokedAt != nil:
		return Principal{}, ErrUnauthenticated
	}
	p := Principal{KeyID: key.ID, TenantID: key.TenantID, ProjectID: key.ProjectID, Name: key.Name, Scopes: key.Scopes}
	a.remember(hash, p, asked)
	return p, nil
}

// Project returns a project that the caller may use. ports.ErrNotFound also for
// another tenant's, and for one that the key is not limited to: neither may be
// told apart from one that does not exist (I14).
func (a *Access) Project(ctx context.Context, p Principal, project domain.ProjectID) (ports.Project, error) {
	if !p.ProjectID.IsZero() && p.ProjectID != project {
		return ports.Project{}, ports.ErrNotFound
	}
	found, err := a.deps.Access.Project(ctx, p.TenantID, project)
	if err != nil {
		return ports.Project{}, fmt.Errorf("project: %w", err)
	}
	return found, nil
}

// KeyCommand asks for a new key.
type KeyCommand struct {
	TenantID  domain.TenantID
	ProjectID domain.ProjectID
	Name      string
	Scopes    []ports.Scope
}

// CreateKey makes a key and returns its text, which is shown once and stored
// nowhere. A *FieldErrors holds the faults of the command.
func (a *Access) CreateKey(ctx context.Context, cmd KeyCommand) (rawKey string, key ports.APIKey, err error) {
	if err := validateKey(cmd); err != nil {
		return "", ports.APIKey{}, err
	}
	random := make([]byte, keyBytes)
	if _, err := io.ReadFull(a.deps.Random, random); err != nil {
		return "", ports.APIKey{}, fmt.Errorf("draw key: %w", err)
	}
	rawKey = keyPrefix + strings.ToLower(keyText.EncodeToString(random))
	hash := sha256.Sum256([]byte(rawKey))
	key = ports.APIKey{
		ID: a.deps.NewID(), TenantID: cmd.TenantID, ProjectID: cmd.ProjectID, Name: cmd.Name,
		Prefix: rawKey[:len(keyPrefix)+6], Hash: hash[:], Scopes: slices.Clone(cmd.Scopes), CreatedAt: a.deps.Now(),
	}
	if err := a.deps.Access.CreateKey(ctx, key); err != nil {
		return "", ports.APIKey{}, fmt.Errorf("create key: %w", err)
	}
	return rawKey, key, nil
}

// ListKeys lists keys of a tenant, revoked ones too, newest first; all tenants'
// when zero.
func (a *Access) ListKeys(ctx context.Context, tenant domain.TenantID) ([]ports.APIKey, error) {
	return a.deps.Access.ListKeys(ctx, tenant)
}

// RevokeKey ends a key: at once here, within AccessConfig.CacheFor elsewhere.
// ports.ErrNotFound.
func (a *Access) RevokeKey(ctx context.Context, id domain.ID) error {
	if err := a.deps.Access.RevokeKey(ctx, id, a.deps.Now()); err != nil {
		return fmt.Errorf("revoke key: %w", err)
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for hash, c := range a.cache {
		if c.principal.KeyID == id {
			delete(a.cache, hash)
		}
	}
	return nil
}

func validateKey(cmd KeyCommand) error {
	faults := &FieldErrors{}
	faults.check(!cmd.TenantID.IsZero(), "tenant", "required", "name the tenant")
	faults.check(len(cmd.Name) <= maxModel && clean(cmd.Name), "name", "invalid", fmt.Sprintf("use at most %d bytes of UTF-8", maxModel))
	faults.check(len(cmd.Scopes) > 0, "scopes", "required", "give at least one scope")
	for _, s := range cmd.Scopes {
		faults.check(slices.Contains(ports.Scopes(), s), "scopes", "unknown", "use read, write, operator or platform")
	}
	// The desk is not about one project, and shows rows of every tenant.
	faults.check(cmd.ProjectID.IsZero() || !slices.Contains(cmd.Scopes, ports.ScopePlatform), "scopes", "invalid",
		"a platform key sees every tenant and cannot be limited to a project: leave out the project or the scope")
	return faults.err()
}

func (a *Access) cached(hash [sha256.Size]byte) (Principal, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.cache[hash]
	if !ok || !a.deps.Now().Before(c.until) {
		delete(a.cache, hash)
		return Principal{}, false
	}
	return c.principal, true
}

// remember counts from when the store was asked: its answer is that old. A full
// cache is emptied, since its entries are short-lived anyway.
func (a *Access) remember(hash [sha256.Size]byte, p Principal, asked time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.cache) >= a.cfg.CacheSize {
		clear(a.cache)
	}
	a.cache[hash] = cachedKey{principal: p, until: asked.Add(a.cfg.CacheFor)}
}
