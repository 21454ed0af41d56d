package porttest

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func healthTests() []storeTest {
	return []storeTest{
		{"RoundTrip", healthRoundTrip},
		{"SavedByVersion", healthSavedByVersion},
		{"OneProbe", healthOneProbe},
		{"ByHand", healthByHand},
		{"Callers", healthCallers},
		{"ClaimByAccount", healthClaimByAccount},
		{"UntriedOperation", healthUntriedOperation},
	}
}

var acmeMain = ports.AccountRef{Provider: acme, AccountID: acmeAccount}

func (b *storeBench) accounts() []ports.AccountHealth {
	b.t.Helper()
	rows, err := b.Store.AccountHealth(b.ctx)
	if err != nil {
		b.t.Fatalf("AccountHealth: %v", err)
	}
	return rows
}

func (b *storeBench) save(row ports.AccountHealth) bool {
	b.t.Helper()
	saved, err := b.Store.SaveAccountHealth(b.ctx, row, nil)
	if err != nil {
		b.t.Fatalf("SaveAccountHealth: %v", err)
	}
	return saved
}

// sick is a health in which every field says something.
func sick(now time.Time) domain.Health {
	after := func(n int) time.Time { return now.Add(time.Duration(n) * time.Second) }
	return domain.Health{
		Breaker: domain.BreakerHalfOpen, Reason: domain.BreakerAuth, Until: after(1), Opens: 2, ProbeUntil: after(3),
		Limit: 4, HalvedAt: after(5), GrownAt: after(6), ThrottledUntil: after(7),
		QuarantinedAt: after(8), QuarantineUntil: after(9), Malformed: 10, Sample: `{"id":text}`,
	}
}

func healthRoundTrip(t *testing.T, b *storeBench) {
	if rows := b.accounts(); len(rows) != 0 {
		t.Fatalf("an empty store knows of %+v", rows)
	}
	second := ports.AccountHealth{AccountRef: ports.AccountRef{Provider: acme, AccountID: "z"}, Health: sick(b.Clock.Now())}
	first := ports.AccountHealth{AccountRef: acmeMain}
	if !b.save(second) || !b.save(first) {
		t.Fatal("a new row was not saved")
	}
	first.Breaker, first.Version, first.UpdatedAt = domain.BreakerClosed, 1, b.Clock.Now()
	second.Version, second.UpdatedAt = 1, b.Clock.Now()
	if diff := cmp.Diff([]ports.AccountHealth{first, second}, b.accounts()); diff != "" {
		t.Errorf("stored and read (-want +got):\n%s", diff)
	}
}

func healthSavedByVersion(t *testing.T, b *storeBench) {
	row := ports.AccountHealth{AccountRef: acmeMain, Health: domain.Health{Opens: 1}}
	if !b.save(row) || b.save(row) {
		t.Error("the same new row was saved twice, or never")
	}
	row.Version, row.Opens = 1, 2
	if !b.save(row) {
		t.Error("the next version was not saved")
	}
	row.Opens = 3
	if b.save(row) {
		t.Error("a version was saved over a newer one")
	}
	if rows := b.accounts(); len(rows) != 1 || rows[0].Opens != 2 || rows[0].Version != 2 {
		t.Errorf("rows %+v", rows)
	}
}

// healthOneProbe: of many who take the probe at once, one has it.
func healthOneProbe(t *testing.T, b *storeBench) {
	now := b.Clock.Now()
	row := ports.AccountHealth{AccountRef: acmeMain, Health: domain.Health{Breaker: domain.BreakerOpen, Reason: domain.BreakerTransport, Until: now}}
	if !b.save(row) {
		t.Fatal("not saved")
	}
	row.Version = 1
	var won atomic.Int32
	together(8, func(int) {
		next := row
		next.Health, _ = row.TakeProbe(now, false, time.Minute, domain.HealthPolicy{}.WithDefaults())
		saved, err := b.Store.SaveAccountHealth(b.ctx, next, nil)
		if err != nil {
			t.Errorf("SaveAccountHealth: %v", err)
		}
		if saved {
			won.Add(1)
		}
	})
	if won.Load() != 1 {
		t.Errorf("%d took the probe", won.Load())
	}
}

func healthByHand(t *testing.T, b *storeBench) {
	audit := &ports.Audit{ActionID: domain.ActionID{ID: newID()}, Actor: "operator", Action: "provider.open", Reason: "maintenance"}
	row := ports.AccountHealth{AccountRef: acmeMain, Health: domain.Health{}.OpenByHand()}
	saved, err := b.Store.SaveAccountHealth(b.ctx, row, audit)
	if err != nil || !saved {
		t.Fatalf("saved %v, %v", saved, err)
	}
	if saved, err = b.Store.SaveAccountHealth(b.ctx, row, audit); err != nil || saved {
		t.Errorf("over a newer row: saved %v, %v", saved, err)
	}
	if rows := b.accounts(); len(rows) != 1 || rows[0].Breaker != domain.BreakerOpen || rows[0].Reason != domain.BreakerOperator || !rows[0].Until.IsZero() {
		t.Errorf("rows %+v", rows)
	}
}

func healthCallers(t *testing.T, b *storeBench) {
	one, two := newID(), newID()
	attend := func(id domain.ID, want int) {
		t.Helper()
		now := b.Clock.Now()
		if n, err := b.Store.AttendCalls(b.ctx, id, now, now.Add(-10*time.Second)); err != nil || n != want {
			t.Errorf("%d callers, %v; want %d", n, err, want)
		}
	}
	attend(one, 1)
	attend(one, 1)
	attend(two, 2)
	b.Clock.Advance(9 * time.Second)
	attend(two, 2)
	b.Clock.Advance(2 * time.Second)
	attend(two, 1) // the other has not been seen for too long
}

func healthClaimByAccount(t *testing.T, b *storeBench) {
	mine := b.create()
	p := b.params()
	p.Attempt.AccountID = "second"
	second := b.createWith(p)
	submit := ports.ClaimParams{Kind: ports.WorkSubmit, Limit: 10}
	one := submit
	one.Provider, one.AccountID = acme, "second"
	wantJobs(t, "of one account", b.claimWith(one), second)
	but := submit
	but.Except = []ports.AccountRef{{Provider: acme, AccountID: "second"}, {Provider: "other", AccountID: acmeAccount}}
	wantJobs(t, "of all but one", b.claimWith(but), mine)
	but.Except = append(but.Except, acmeMain)
	wantJobs(t, "of none", b.claimWith(but))

	polled := b.submitted()
	b.due(polled)
	poll := ports.ClaimParams{Kind: ports.WorkPoll, Limit: 10, Lease: newID(), LeaseFor: time.Minute, Except: []ports.AccountRef{acmeMain}}
	wantJobs(t, "queries of none", b.claimWith(poll))
	poll.Except = nil
	poll.Provider, poll.AccountID = acme, acmeAccount
	wantJobs(t, "queries of one account, still due", b.claimWith(poll), polled)
}

// healthUntriedOperation: a claim that called nobody is not a try.
func healthUntriedOperation(t *testing.T, b *storeBench) {
	_, job, lease := b.fetching()
	if err := b.Store.ReleaseOperation(b.ctx, ports.OperationRelease{ID: job.ID, Lease: lease, NextAt: b.Clock.Now(), ErrorCode: "shut", Untried: true}); err != nil {
		t.Fatal(err)
	}
	lease = newID()
	jobs := b.claimOperations(domain.OperationFetchOutput, lease, 10)
	if len(jobs) != 1 || jobs[0].Tries != job.Tries {
		t.Errorf("claimed again: %+v, want try %d", jobs, job.Tries)
	}
}
