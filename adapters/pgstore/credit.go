package pgstore

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// TenantByName implements ports.Access.
func (s *Store) TenantByName(ctx context.Context, name string) (ports.Tenant, error) {
	row, err := s.queries().TenantByName(ctx, name)
	if err != nil {
		return ports.Tenant{}, outward("tenant", missing("tenant", err))
	}
	return tenantOf(row), nil
}

func tenantOf(r dbgen.TenantByNameRow) ports.Tenant {
	return ports.Tenant{ID: domain.TenantID{ID: idOf(r.ID)}, Name: r.Name, Credits: r.Credits, CreatedAt: timeOf(r.CreatedAt)}
}

// GrantCredits implements ports.Access. The account is locked first, so two calls
// of one action wait for each other and the second finds the first's entry.
func (s *Store) GrantCredits(ctx context.Context, tenant domain.TenantID, credits int64, audit ports.Audit) (ports.Balance, error) {
	if credits <= 0 || audit.ActionID.IsZero() {
		return ports.Balance{}, fmt.Errorf("grant credits: %w: it needs an amount above 0 and an action", errData)
	}
	var balance ports.Balance
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		id, now := uid(tenant.ID), s.now()
		accounts, err := q.AccountLock(ctx, []pgtype.UUID{id})
		if err != nil {
			return err
		}
		if len(accounts) == 0 {
			return fmt.Errorf("tenant: %w", ports.ErrNotFound)
		}
		balance = balanceOf(accounts[0])
		action := uid(audit.ActionID.ID)
		fresh, err := q.LedgerGrant(ctx, &dbgen.LedgerGrantParams{TenantID: id, ActionID: action, Credits: credits, CreatedAt: at(now)})
		if err != nil {
			return err
		}
		if fresh == 0 {
			return sameGrant(ctx, q, action, tenant, credits)
		}
		account, err := q.AccountGrant(ctx, &dbgen.AccountGrantParams{TenantID: id, Credits: credits, Now: at(now)})
		if err != nil {
			return err
		}
		balance = balanceOf(account)
		return q.AuditInsertMany(ctx, auditRows([]audited{{Audit: audit, subject: "tenant:" + tenant.String()}}, now))
	})
	if err != nil {
		return ports.Balance{}, outward("grant credits", err)
	}
	return balance, nil
}

// sameGrant refuses an action whose first call was about something else.
func sameGrant(ctx context.Context, q *dbgen.Queries, action pgtype.UUID, tenant domain.TenantID, credits int64) error {
	have, err := q.LedgerGrantGet(ctx, action)
	if err != nil {
		return err
	}
	if idOf(have.TenantID) != tenant.ID || have.Credits != credits {
		return ports.ErrIdempotencyMismatch
	}
	return nil
}

// Balance implements ports.Access.
func (s *Store) Balance(ctx context.Context, tenant domain.TenantID) (ports.Balance, error) {
	row, err := s.queries().AccountGet(ctx, uid(tenant.ID))
	if err != nil {
		return ports.Balance{}, outward("balance", missing("tenant", err))
	}
	return balanceOf(row), nil
}

func balanceOf(r dbgen.LedgerAccount) ports.Balance {
	return ports.Balance{Granted: -r.Granted, Available: r.Available, Reserved: r.Reserved, Spent: r.Spent}
}
