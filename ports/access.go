package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Access knows who may do what.
type Access interface {
	// KeyByHash returns a live key by the SHA-256 of its text. ErrNotFound for an
	// unknown or revoked key.
	KeyByHash(ctx context.Context, hash []byte) (APIKey, error)
	// CreateTenant, CreateProject and CreateKey store new ones; a name that exists
	// is returned as it is (tenant and project), so that a start may repeat them.
	CreateTenant(ctx context.Context, tenant Tenant) (Tenant, error)
	CreateProject(ctx context.Context, project Project) (Project, error)
	CreateKey(ctx context.Context, key APIKey) error
	// TenantByName finds a tenant without creating it. ErrNotFound.
	TenantByName(ctx context.Context, name string) (Tenant, error)
	// GrantCredits adds credits, more than 0, to the tenant's balance, books them in
	// the ledger and writes the audit, all in one transaction, and returns the
	// balance. A repeated ActionID grants nothing again; with another tenant or
	// amount it is ErrIdempotencyMismatch. ErrNotFound: no such tenant.
	GrantCredits(ctx context.Context, tenant domain.TenantID, credits int64, audit Audit) (Balance, error)
	// Balance returns what the tenant has. ErrNotFound.
	Balance(ctx context.Context, tenant domain.TenantID) (Balance, error)
	// ListKeys lists keys of a tenant, revoked ones too, newest first; all tenants'
	// when zero.
	ListKeys(ctx context.Context, tenant domain.TenantID) ([]APIKey, error)
	// RevokeKey ends a key at once. ErrNotFound.
	RevokeKey(ctx context.Context, id domain.ID, now time.Time) error
	// Project returns a project of the tenant. ErrNotFound also for another's.
	Project(ctx context.Context, tenant domain.TenantID, project domain.ProjectID) (Project, error)
	// Ping reports whether the store answers.
	Ping(ctx context.Context) error
}

// Scope is what a key may do.
type Scope string

// The scopes of API keys.
const (
	// ScopeRead, ScopeWrite and ScopeOperator are rights within the key's own tenant;
	// each includes those before it.
	ScopeRead     Scope = "read"
	ScopeWrite    Scope = "write"
	ScopeOperator Scope = "operator"
	// ScopePlatform is the right of those who run the service: the desk, with rows of
	// every tenant. It includes no other and no other includes it.
	ScopePlatform Scope = "platform"
)

// Scopes lists every scope.
func Scopes() []Scope { return []Scope{ScopeRead, ScopeWrite, ScopeOperator, ScopePlatform} }

// APIKey is a server's credential. Only its hash is stored.
type APIKey struct {
	ID       domain.ID
	TenantID domain.TenantID
	// ProjectID limits the key to one project when set.
	ProjectID domain.ProjectID
	Name      string
	// Prefix is the visible start of the key.
	Prefix    string
	Hash      []byte
	Scopes    []Scope
	CreatedAt time.Time
	RevokedAt *time.Time
}

// Tenant is a customer.
type Tenant struct {
	ID   domain.TenantID
	Name string
	// Credits is what was granted: at its creation, and of a stored tenant also
	// since.
	Credits   int64
	CreatedAt time.Time
}

// Balance is a tenant's money in the platform's unit:
// Granted = Available + Reserved + Spent.
type Balance struct {
	Granted int64
	// Available covers new reservations.
	Available int64
	// Reserved is held for attempts that are not closed.
	Reserved int64
	Spent    int64
}

// Project is the unit of event order and access.
type Project struct {
	ID            domain.ProjectID
	TenantID      domain.TenantID
	Name          string
	OnLateSuccess domain.LateSuccess
	CreatedAt     time.Time
}
