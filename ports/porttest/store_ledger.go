package porttest

import (
	"strings"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func ledgerTests() []storeTest {
	return []storeTest{
		{"SettledOnce", ledgerSettledOnce},
		{"RefundedOnce", ledgerRefundedOnce},
		{"Races", ledgerRaces},
		{"RetryReservesAnew", ledgerRetryReservesAnew},
		{"AdoptionChargesAgain", ledgerAdoptionChargesAgain},
		{"Balance", ledgerBalance},
	}
}

// ledgerOf lists a task's movements of credits in order.
func ledgerOf(b *storeBench, m made) string {
	b.t.Helper()
	var kinds []string
	for _, e := range entries(b.timeline(m), "ledger") {
		kinds = append(kinds, e.Status)
	}
	return strings.Join(kinds, " ")
}

// publish takes a succeeded attempt to ready.
func (b *storeBench) publish(m made) ports.Item {
	asset := b.asset(m)
	it := item(m, domain.Input{Kind: domain.InputMediaReady, AssetID: asset.ID})
	it.Asset = &asset
	return it
}

func ledgerSettledOnce(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedSucceeded))
	if got := ledgerOf(b, m); got != "reserve" {
		t.Errorf("ledger of a task that is not ready: %q", got)
	}
	b.must(b.publish(m))
	b.must(b.publish(m), b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded))
	if got := ledgerOf(b, m); got != "reserve settle" {
		t.Errorf("ledger %q, want reserve settle", got)
	}
}

func ledgerRefundedOnce(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded), b.saw(m, domain.ObservedCanceled))
	if got := ledgerOf(b, m); got != "reserve refund" {
		t.Errorf("ledger %q, want reserve refund", got)
	}
}

// ledgerRaces: whatever comes first, an attempt is closed exactly once (I9).
func ledgerRaces(t *testing.T, b *storeBench) {
	for range 5 {
		m := b.submitted()
		verdicts := []ports.Item{
			b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedCanceled), b.saw(m, domain.ObservedSucceeded),
			b.saw(m, domain.ObservedFailed), b.cancel(m), b.publish(m),
		}
		together(len(verdicts), func(i int) {
			_, err := retryUnavailable(func() ([]ports.Result, error) { return b.Store.Apply(b.ctx, verdicts[i:i+1]) })
			if err != nil {
				t.Errorf("Apply: %v", err)
			}
		})
		b.must(b.publish(m)) // closes what succeeded
		if got := ledgerOf(b, m); got != "reserve settle" && got != "reserve refund" {
			t.Errorf("ledger %q: not closed exactly once", got)
		}
		if v := b.task(m); !v.Task.Phase.Terminal() {
			t.Errorf("task is %s", v.Task.Phase)
		}
	}
	b.checkStream(b.events(b.project))
}

func ledgerRetryReservesAnew(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed))
	again, next := b.retry(m)
	b.must(again, b.started(next), b.accepted(next), b.saw(next, domain.ObservedSucceeded), b.publish(next))
	if got := ledgerOf(b, m); got != "reserve refund reserve settle" {
		t.Errorf("ledger %q, want reserve refund reserve settle", got)
	}
}

func ledgerAdoptionChargesAgain(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded)) // refunded, then a conflict
	adopt := b.resolve(m, domain.ResolveAdopt)
	adopt.Input.Resolution.Outputs = b.observation(m, domain.ObservedSucceeded).Outputs
	b.must(adopt, b.publish(m))
	if got := ledgerOf(b, m); got != "reserve refund adjust" {
		t.Errorf("ledger %q, want reserve refund adjust", got)
	}
	if v := b.task(m); v.Task.Phase != domain.PhaseReady || v.Attempt.Closing != domain.ClosingSettled {
		t.Errorf("adopted task %s, %s", v.Task.Phase, v.Attempt.Closing)
	}
}

// ledgerBalance follows a balance by what it still covers.
func ledgerBalance(t *testing.T, b *storeBench) {
	tenant := b.newTenant("careful", 10)
	project := b.newProject(tenant, "project")
	create := func(credits int64) (made, error) {
		p := b.params()
		p.Task.TenantID, p.Task.ProjectID, p.Attempt.Credits = tenant, project, credits
		_, err := b.Store.Create(b.ctx, p)
		return madeOf(p), err
	}
	covers := func(when string, credits int64) {
		t.Helper()
		_, err := create(credits + 1)
		wantErr(t, when+": one more than the balance", err, ports.ErrCredits)
		probe, err := create(credits)
		if err != nil {
			t.Fatalf("%s: the balance does not cover %d: %v", when, credits, err)
		}
		b.must(b.cancel(probe)) // gives it back
	}
	covers("at first", 10)
	m, err := create(4)
	if err != nil {
		t.Fatal(err)
	}
	covers("with 4 reserved", 6)
	b.must(b.started(m), b.accepted(m), b.saw(m, domain.ObservedSucceeded), b.publish(m))
	covers("with 4 settled", 6)
	failed, err := create(6)
	if err != nil {
		t.Fatal(err)
	}
	b.must(b.started(failed), b.accepted(failed), b.saw(failed, domain.ObservedFailed))
	covers("with 6 refunded", 6)
	b.must(b.resolve(m, domain.ResolveRefund))
	covers("with what was settled given back", 10)
	if got := ledgerOf(b, m); got != "reserve settle adjust" {
		t.Errorf("ledger %q, want reserve settle adjust", got)
	}
	balance, err := b.Store.Balance(b.ctx, tenant)
	if err != nil || balance.Available != 10 || balance.Reserved != 0 || balance.Spent != 0 {
		t.Errorf("balance %+v, %v", balance, err)
	}
	again := b.apply(b.resolve(m, domain.ResolveRefund))[0]
	wantErr(t, "a second refund", again.Err, domain.ErrInvalidTransition)
	covers("after a refused second refund", 10)
}
