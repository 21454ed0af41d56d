package memory

import (
	"fmt"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ledgerKey is what is unique in the ledger: an attempt's entry of one type,
// and of adjustments one per action.
type ledgerKey struct {
	attempt domain.AttemptID
	kind    domain.LedgerType
	action  domain.ActionID
}

// book writes an entry once and moves the tenant's balance. A reservation that
// the balance does not cover is ErrCredits.
func (x *tx) book(e domain.LedgerEntry) error {
	key := ledgerKey{e.AttemptID, e.Type, e.ActionID}
	if _, ok := x.ledger[key]; ok {
		return nil
	}
	balance := x.balances[e.TenantID]
	switch e.Type {
	case domain.LedgerReserve:
		if balance < e.Credits {
			return fmt.Errorf("reserve %d of %d: %w", e.Credits, balance, ports.ErrCredits)
		}
		balance -= e.Credits
	case domain.LedgerRefund:
		balance += e.Credits
	case domain.LedgerAdjust:
		if balance -= e.Credits; e.Back {
			balance += 2 * e.Credits
		}
	case domain.LedgerSettle: // was reserved
	}
	put(x, x.balances, e.TenantID, balance)
	put(x, x.ledger, key, e)
	x.remember(e.TaskID, ports.TimelineEntry{
		At: x.at, Kind: "ledger", AttemptNo: x.attempts[e.AttemptID].No,
		Status: string(e.Type), Detail: fmt.Sprintf("%d credits", e.Credits),
	})
	return nil
}
