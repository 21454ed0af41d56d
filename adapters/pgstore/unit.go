package pgstore

import (
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// unit is one transaction's work: the world that it has locked and the plan of
// what it will write. Deciding happens here, in memory.
type unit struct {
	*world
	plan
	decide         func(domain.Task, domain.Attempt, domain.Input, time.Time) (domain.Decision, error)
	newOperationID func() domain.OperationID
	now            time.Time
}

func (s *Store) newUnit() *unit {
	return &unit{world: newWorld(), plan: newPlan(), decide: s.cfg.Decide, newOperationID: s.newOperationID, now: s.now()}
}

// applyAll decides the items in their order.
func (u *unit) applyAll(items []ports.Item) []ports.Result {
	results := make([]ports.Result, len(items))
	for i, item := range items {
		results[i] = u.apply(item, 0)
		u.results = append(u.results, &results[i])
	}
	return results
}

// apply decides one item and plans its consequences; inboxID is the delivery that
// it came from, 0 for none. A panic of the decision is this item's fault: nothing
// of it has been planned, and the others go on.
func (u *unit) apply(item ports.Item, inboxID int64) (result ports.Result) {
	defer func() {
		if r := recover(); r != nil {
			result = ports.Result{Err: fmt.Errorf("decide: panic: %v", r)}
		}
	}()
	if id := item.Idempotency; id != nil {
		if known, ok := u.requests[keyOf(id)]; ok {
			return u.replay(known, id)
		}
	}
	attempt, reason, err := u.resolve(item.Ref)
	if err != nil {
		return ports.Result{Err: err}
	}
	if err := u.holds(item.Operation); err != nil {
		return ports.Result{Err: err}
	}
	if reason != "" {
		return u.refuse(item, attempt, reason, inboxID)
	}
	if item.Input.Kind == domain.InputResolution && item.Audit == nil {
		return ports.Result{Err: fmt.Errorf("%w: a resolution needs an audit", domain.ErrInvalidInput)}
	}
	before := u.tasks[attempt.TaskID]
	decision, err := u.decide(before, attempt, item.Input, u.now)
	if err != nil {
		return ports.Result{Err: err}
	}
	if err := u.covers(decision.Ledger); err != nil {
		return ports.Result{Err: err}
	}
	u.write(item, before, decision, inboxID)
	return ports.Result{Decision: decision}
}

// replay answers a known command with the task as it is now.
func (u *unit) replay(known request, id *ports.Idempotency) ports.Result {
	if !slices.Equal(known.bodyHash, id.BodyHash) {
		return ports.Result{Err: ports.ErrIdempotencyMismatch}
	}
	task := u.tasks[known.task]
	return ports.Result{Replayed: true, Decision: domain.Decision{
		Verdict: domain.Verdict{Kind: domain.VerdictUnchanged}, Task: task, Attempt: u.attempts[task.CurrentAttemptID],
	}}
}

// refuse is the verdict on an input whose attempt is not known for sure. A
// contradiction is put on the timeline of the attempt that was named first.
func (u *unit) refuse(item ports.Item, attempt domain.Attempt, reason domain.Reason, inboxID int64) ports.Result {
	decision := domain.Decision{Verdict: domain.Verdict{Kind: domain.VerdictIgnored, Reason: reason}}
	if reason == domain.ReasonIdentityMismatch {
		decision.Task, decision.Attempt = u.tasks[attempt.TaskID], attempt
		u.record(item, decision.Task.Version, decision, inboxID)
	}
	u.finish(item.Operation)
	return ports.Result{Decision: decision}
}

// holds checks the lease of the operation that an item ends.
func (u *unit) holds(f *ports.OperationFinish) error {
	if f == nil {
		return nil
	}
	if l := u.operations[f.ID]; !l.open || l.holder.IsZero() || l.holder != f.Lease {
		return fmt.Errorf("operation: %w", ports.ErrLeaseLost)
	}
	return nil
}

func (u *unit) finish(f *ports.OperationFinish) {
	if f == nil {
		return
	}
	u.operations[f.ID] = lease{}
	u.finished = append(u.finished, *f)
}

// covers refuses a reservation above the balance.
func (u *unit) covers(entries []domain.LedgerEntry) error {
	for _, e := range entries {
		balance, known := u.balances[e.TenantID]
		if known && e.Type == domain.LedgerReserve && balance < e.Credits {
			return fmt.Errorf("reserve %d of %d: %w", e.Credits, balance, ports.ErrCredits)
		}
	}
	return nil
}

// write plans a decision and shows it to the later items.
func (u *unit) write(item ports.Item, before domain.Task, d domain.Decision, inboxID int64) {
	u.finish(item.Operation)
	if d.AttemptChanged {
		u.know(d.Attempt, nil)
		u.changeAttempt(d.Attempt.ID)
	}
	if d.NewAttempt != nil {
		u.know(*d.NewAttempt, item.TokenHash)
		u.opened = append(u.opened, opened{*d.NewAttempt, item.TokenHash})
	}
	u.book(d)
	u.follow(d)
	u.record(item, before.Version, d, inboxID)
	if d.TaskChanged {
		u.tasks[d.Task.ID] = d.Task
		u.emit(before, d)
	}
	if item.Asset != nil && item.Input.Kind == domain.InputMediaReady && d.Verdict.Kind == domain.VerdictApplied {
		u.assets = append(u.assets, *item.Asset)
	}
	if item.Audit != nil {
		u.audits = append(u.audits, audited{*item.Audit, d.Task.ID, d.Attempt.ID, ""})
	}
	if id := item.Idempotency; id != nil {
		u.requests[keyOf(id)] = request{id.BodyHash, d.Task.ID}
		u.remembered = append(u.remembered, remembered{*id, d.Task.ID})
	}
}

// book plans the movements of credits and follows the balances that are known.
func (u *unit) book(d domain.Decision) {
	for _, e := range d.Ledger {
		reserved := d.Attempt.Credits
		if d.NewAttempt != nil && e.AttemptID == d.NewAttempt.ID {
			reserved = d.NewAttempt.Credits
		}
		u.booked = append(u.booked, booked{e, reserved})
		balance, known := u.balances[e.TenantID]
		if !known {
			continue
		}
		switch {
		case e.Type == domain.LedgerReserve, e.Type == domain.LedgerAdjust && !e.Back:
			balance -= e.Credits
		case e.Type == domain.LedgerRefund, e.Type == domain.LedgerAdjust:
			balance += e.Credits
		case e.Type == domain.LedgerSettle:
			balance += reserved - e.Credits
		}
		u.balances[e.TenantID] = balance
	}
}
