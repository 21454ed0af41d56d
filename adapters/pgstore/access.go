package pgstore

import (
	"context"
	"slices"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// KeyByHash implements ports.Access.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (ports.APIKey, error) {
	row, err := s.queries().KeyByHash(ctx, hash)
	if err != nil {
		return ports.APIKey{}, outward("key", missing("api key", err))
	}
	return keyRowOf(row), nil
}

func keyRowOf(r dbgen.ApiKey) ports.APIKey {
	key := ports.APIKey{
		ID: idOf(r.ID), TenantID: domain.TenantID{ID: idOf(r.TenantID)}, ProjectID: domain.ProjectID{ID: idOf(r.ProjectID)},
		Name: r.Name, Prefix: r.Prefix, Hash: r.KeyHash, CreatedAt: timeOf(r.CreatedAt), RevokedAt: timePtr(r.RevokedAt),
	}
	for _, scope := range r.Scopes {
		key.Scopes = append(key.Scopes, ports.Scope(scope))
	}
	return key
}

// CreateTenant implements ports.Access. Its credits are granted once, with the row.
func (s *Store) CreateTenant(ctx context.Context, tenant ports.Tenant) (ports.Tenant, error) {
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		id := uid(tenant.ID.ID)
		n, err := q.TenantInsert(ctx, &dbgen.TenantInsertParams{ID: id, Name: tenant.Name, CreatedAt: at(s.createdAt(tenant.CreatedAt))})
		if err != nil {
			return err
		}
		if n == 0 {
			row, err := q.TenantByName(ctx, tenant.Name)
			tenant = tenantOf(row)
			return err
		}
		if err := q.AccountInsert(ctx, id, tenant.Credits); err != nil {
			return err
		}
		_, err = q.LedgerGrant(ctx, &dbgen.LedgerGrantParams{TenantID: id, Credits: tenant.Credits, CreatedAt: at(s.now())})
		return err
	})
	return tenant, outward("create tenant", err)
}

func (s *Store) createdAt(t time.Time) time.Time { return firstTime(t, s.now()) }

// CreateProject implements ports.Access. Its stream begins with it.
func (s *Store) CreateProject(ctx context.Context, project ports.Project) (ports.Project, error) {
	if project.OnLateSuccess == "" {
		project.OnLateSuccess = domain.LateSuccessKeep
	}
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		if _, err := q.AccountGet(ctx, uid(project.TenantID.ID)); err != nil {
			return missing("tenant", err)
		}
		n, err := q.ProjectInsert(ctx, &dbgen.ProjectInsertParams{
			ID: uid(project.ID.ID), TenantID: uid(project.TenantID.ID), Name: project.Name,
			OnLateSuccess: string(project.OnLateSuccess), CreatedAt: at(s.createdAt(project.CreatedAt)),
		})
		if err != nil {
			return err
		}
		if n == 0 {
			row, err := q.ProjectByName(ctx, uid(project.TenantID.ID), project.Name)
			project = projectOf(row)
			return err
		}
		return q.StreamInsert(ctx, uid(project.ID.ID))
	})
	return project, outward("create project", err)
}

func projectOf(r dbgen.Project) ports.Project {
	return ports.Project{
		ID: domain.ProjectID{ID: idOf(r.ID)}, TenantID: domain.TenantID{ID: idOf(r.TenantID)}, Name: r.Name,
		OnLateSuccess: domain.LateSuccess(r.OnLateSuccess), CreatedAt: timeOf(r.CreatedAt),
	}
}

// Project implements ports.Access.
func (s *Store) Project(ctx context.Context, tenant domain.TenantID, project domain.ProjectID) (ports.Project, error) {
	row, err := s.queries().ProjectGet(ctx, uid(project.ID), uid(tenant.ID))
	if err != nil {
		return ports.Project{}, outward("project", missing("project", err))
	}
	return projectOf(row), nil
}

// CreateKey implements ports.Access.
func (s *Store) CreateKey(ctx context.Context, key ports.APIKey) error {
	scopes := make([]string, len(key.Scopes))
	for i, scope := range key.Scopes {
		scopes[i] = string(scope)
	}
	return outward("create key", s.queries().KeyInsert(ctx, &dbgen.KeyInsertParams{
		ID: uid(key.ID), TenantID: uid(key.TenantID.ID), ProjectID: uid(key.ProjectID.ID), Name: key.Name, Prefix: key.Prefix,
		KeyHash: slices.Clone(key.Hash), Scopes: scopes, CreatedAt: at(s.createdAt(key.CreatedAt)),
	}))
}

// ListKeys implements ports.Access.
func (s *Store) ListKeys(ctx context.Context, tenant domain.TenantID) ([]ports.APIKey, error) {
	rows, err := s.queries().KeysOfTenant(ctx, uid(tenant.ID))
	if err != nil {
		return nil, outward("list keys", err)
	}
	keys := make([]ports.APIKey, len(rows))
	for i, r := range rows {
		keys[i] = keyRowOf(r)
	}
	return keys, nil
}

// RevokeKey implements ports.Access. The revocation is written with it, for the
// gateways that hold connections of the key.
func (s *Store) RevokeKey(ctx context.Context, id domain.ID, now time.Time) error {
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		tenant, err := q.KeyRevoke(ctx, at(now), uid(id))
		if err != nil {
			return missing("api key", err)
		}
		return q.RevocationInsert(ctx, &dbgen.RevocationInsertParams{Kind: "api_key", Subject: id.String(), TenantID: tenant, RevokedAt: at(now)})
	})
	return outward("revoke key", err)
}
