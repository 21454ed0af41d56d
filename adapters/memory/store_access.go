package memory

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// KeyByHash implements ports.Access.
func (s *Store) KeyByHash(ctx context.Context, hash []byte) (ports.APIKey, error) {
	var found ports.APIKey
	err := s.read(ctx, func() error {
		for _, key := range s.keys {
			if key.RevokedAt == nil && bytes.Equal(key.Hash, hash) {
				found = copyKey(key)
				return nil
			}
		}
		return fmt.Errorf("api key: %w", ports.ErrNotFound)
	})
	return found, err
}

// CreateTenant implements ports.Access.
func (s *Store) CreateTenant(ctx context.Context, tenant ports.Tenant) (ports.Tenant, error) {
	err := s.write(ctx, func(x *tx) error {
		for _, t := range s.tenants {
			if t.Name == tenant.Name {
				tenant = t
				return nil
			}
		}
		put(x, s.tenants, tenant.ID, tenant)
		put(x, s.balances, tenant.ID, tenant.Credits)
		return checkText(tenant.Name)
	})
	return tenant, err
}

// CreateProject implements ports.Access. Names are unique within the tenant.
func (s *Store) CreateProject(ctx context.Context, project ports.Project) (ports.Project, error) {
	err := s.write(ctx, func(x *tx) error {
		if _, ok := s.tenants[project.TenantID]; !ok {
			return fmt.Errorf("tenant: %w", ports.ErrNotFound)
		}
		for _, p := range s.projects {
			if p.TenantID == project.TenantID && p.Name == project.Name {
				project = p
				return nil
			}
		}
		put(x, s.projects, project.ID, project)
		return checkText(project.Name)
	})
	return project, err
}

// CreateKey implements ports.Access.
func (s *Store) CreateKey(ctx context.Context, key ports.APIKey) error {
	return s.write(ctx, func(x *tx) error {
		for _, k := range s.keys {
			if k.ID == key.ID || bytes.Equal(k.Hash, key.Hash) {
				return fmt.Errorf("api key: %w: it exists", errData)
			}
		}
		put(x, s.keys, key.ID, copyKey(key))
		return checkText(key.Name, key.Prefix)
	})
}

// ListKeys implements ports.Access.
func (s *Store) ListKeys(ctx context.Context, tenant domain.TenantID) ([]ports.APIKey, error) {
	var keys []ports.APIKey
	err := s.read(ctx, func() error {
		for _, key := range s.keys {
			if tenant.IsZero() || key.TenantID == tenant {
				keys = append(keys, copyKey(key))
			}
		}
		return nil
	})
	slices.SortFunc(keys, func(a, b ports.APIKey) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), bytes.Compare(b.ID[:], a.ID[:]))
	})
	return keys, err
}

// RevokeKey implements ports.Access.
func (s *Store) RevokeKey(ctx context.Context, id domain.ID, now time.Time) error {
	return s.write(ctx, func(x *tx) error {
		key, ok := s.keys[id]
		if !ok || key.RevokedAt != nil {
			return fmt.Errorf("api key: %w", ports.ErrNotFound)
		}
		key.RevokedAt = &now
		put(x, s.keys, id, key)
		return nil
	})
}

// Project implements ports.Access.
func (s *Store) Project(ctx context.Context, tenant domain.TenantID, project domain.ProjectID) (ports.Project, error) {
	var found ports.Project
	err := s.read(ctx, func() error {
		p, ok := s.projects[project]
		if !ok || p.TenantID != tenant {
			return fmt.Errorf("project: %w", ports.ErrNotFound)
		}
		found = p
		return nil
	})
	return found, err
}

func copyKey(k ports.APIKey) ports.APIKey {
	k.Hash, k.Scopes = slices.Clone(k.Hash), slices.Clone(k.Scopes)
	return k
}
