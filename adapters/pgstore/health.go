package pgstore

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// AccountHealth implements ports.Health.
func (s *Store) AccountHealth(ctx context.Context) ([]ports.AccountHealth, error) {
	rows, err := s.queries().HealthList(ctx)
	if err != nil {
		return nil, outward("account health", err)
	}
	accounts := make([]ports.AccountHealth, len(rows))
	for i, r := range rows {
		accounts[i] = healthOf(r)
	}
	return accounts, nil
}

// SaveAccountHealth implements ports.Health. A commit that was lost and happened
// all the same reads as somebody faster.
func (s *Store) SaveAccountHealth(ctx context.Context, row ports.AccountHealth, audit *ports.Audit) (bool, error) {
	now := s.now()
	params := healthSave(row, now)
	if audit == nil {
		n, err := s.queries().HealthSave(ctx, params)
		return n > 0, outward("save account health", err)
	}
	saved := false
	err := s.inTx(ctx, func(q *dbgen.Queries) error {
		n, err := q.HealthSave(ctx, params)
		if saved = n > 0; err != nil || !saved {
			return err
		}
		subject := "account:" + row.Provider + ":" + row.AccountID
		return q.AuditInsertMany(ctx, auditRows([]audited{{Audit: *audit, subject: subject}}, now))
	})
	return saved && err == nil, outward("save account health", err)
}

// AttendCalls implements ports.Health.
func (s *Store) AttendCalls(ctx context.Context, process domain.ID, now, since time.Time) (int, error) {
	q := s.queries()
	if err := q.CallersAttend(ctx, uid(process), at(now)); err != nil {
		return 0, outward("attend calls", err)
	}
	if err := q.CallersForget(ctx, at(since)); err != nil {
		return 0, outward("attend calls", err)
	}
	n, err := q.CallersCount(ctx, at(since))
	return int(n), outward("attend calls", err)
}

func healthOf(r dbgen.ProviderAccount) ports.AccountHealth {
	h := domain.Health{
		Breaker: domain.Breaker(r.Breaker), Reason: domain.BreakerReason(r.BreakerReason), Until: orZero(r.BreakerUntil),
		Opens: int(r.Failures), ProbeUntil: orZero(r.ProbeUntil),
		HalvedAt: orZero(r.HalvedAt), GrownAt: orZero(r.GrownAt), ThrottledUntil: orZero(r.ThrottledUntil),
		QuarantinedAt: orZero(r.QuarantinedAt), QuarantineUntil: orZero(r.QuarantineUntil),
		Malformed: int(r.MalformedCount), Sample: r.MalformedSample,
	}
	if r.ConcurrencyLimit != nil {
		h.Limit = int(*r.ConcurrencyLimit)
	}
	return ports.AccountHealth{
		AccountRef: ports.AccountRef{Provider: r.Provider, AccountID: r.AccountID}, Health: h,
		Version: r.Version, LastCallbackAt: timePtr(r.LastCallbackAt), WebhookSilentSince: timePtr(r.WebhookSilentSince), UpdatedAt: timeOf(r.UpdatedAt),
	}
}

func healthSave(row ports.AccountHealth, now time.Time) *dbgen.HealthSaveParams {
	p := &dbgen.HealthSaveParams{
		Provider: row.Provider, AccountID: row.AccountID, Version: row.Version, Now: at(now),
		Breaker: string(row.State()), BreakerUntil: orNil(row.Until), BreakerReason: string(row.Reason),
		Failures: int32(row.Opens), ProbeUntil: orNil(row.ProbeUntil),
		HalvedAt: orNil(row.HalvedAt), GrownAt: orNil(row.GrownAt), ThrottledUntil: orNil(row.ThrottledUntil),
		QuarantinedAt: orNil(row.QuarantinedAt), QuarantineUntil: orNil(row.QuarantineUntil),
		MalformedCount: int32(row.Malformed), MalformedSample: row.Sample,
	}
	if row.Limit > 0 {
		limit := int32(row.Limit)
		p.ConcurrencyLimit = &limit
	}
	return p
}

func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func orNil(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
