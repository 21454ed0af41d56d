package memory

import (
	"context"
	"fmt"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// grant is what an action gave to whom.
type grant struct {
	tenant  domain.TenantID
	credits int64
}

// TenantByName implements ports.Access.
func (s *Store) TenantByName(ctx context.Context, name string) (ports.Tenant, error) {
	var found ports.Tenant
	err := s.read(ctx, func() error {
		for _, t := range s.tenants {
			if t.Name == name {
				found = t
				return nil
			}
		}
		return fmt.Errorf("tenant: %w", ports.ErrNotFound)
	})
	return found, err
}

// GrantCredits implements ports.Access. The audit has no reader here and is
// dropped.
func (s *Store) GrantCredits(ctx context.Context, tenant domain.TenantID, credits int64, audit ports.Audit) (ports.Balance, error) {
	var balance ports.Balance
	err := s.write(ctx, func(x *tx) error {
		t, ok := s.tenants[tenant]
		have, known := s.grants[audit.ActionID]
		switch {
		case credits <= 0 || audit.ActionID.IsZero():
			return fmt.Errorf("grant credits: %w: it needs an amount above 0 and an action", errData)
		case !ok:
			return fmt.Errorf("tenant: %w", ports.ErrNotFound)
		case known && have != grant{tenant, credits}:
			return fmt.Errorf("grant credits: %w", ports.ErrIdempotencyMismatch)
		case !known:
			t.Credits += credits
			put(x, s.tenants, tenant, t)
			put(x, s.balances, tenant, s.balances[tenant]+credits)
			put(x, s.grants, audit.ActionID, grant{tenant, credits})
		}
		balance = s.balance(tenant)
		return nil
	})
	if err != nil {
		return ports.Balance{}, err
	}
	return balance, nil
}

// Balance implements ports.Access.
func (s *Store) Balance(ctx context.Context, tenant domain.TenantID) (ports.Balance, error) {
	var balance ports.Balance
	err := s.read(ctx, func() error {
		if _, ok := s.tenants[tenant]; !ok {
			return fmt.Errorf("tenant: %w", ports.ErrNotFound)
		}
		balance = s.balance(tenant)
		return nil
	})
	return balance, err
}

// balance adds up what the ledger says.
func (s *Store) balance(tenant domain.TenantID) ports.Balance {
	b := ports.Balance{Granted: s.tenants[tenant].Credits, Available: s.balances[tenant]}
	for _, e := range s.ledger {
		if e.TenantID != tenant {
			continue
		}
		switch e.Type {
		case domain.LedgerReserve:
			b.Reserved += e.Credits
		case domain.LedgerRefund:
			b.Reserved -= e.Credits
		case domain.LedgerSettle:
			b.Reserved -= e.Credits
			b.Spent += e.Credits
		case domain.LedgerAdjust:
			if b.Spent += e.Credits; e.Back {
				b.Spent -= 2 * e.Credits
			}
		}
	}
	return b
}
