package app_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// fiveInARow trips at the fifth failure in a row.
type fiveInARow struct {
	mu sync.Mutex
	n  int
}

func (w *fiveInARow) Report(ok bool) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.n++; ok {
		w.n = 0
	}
	if w.n < 5 {
		return false
	}
	w.n = 0
	return true
}

func (w *fiveInARow) Reset() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.n = 0
}

// newGate is the gate of one process on the bundle's store.
func newGate(b *bundle, health ports.Health) *app.Gate {
	b.t.Helper()
	g, err := app.NewGate(app.GateDeps{
		Env: b.env, Health: health, NewTripwire: func() ports.Tripwire { return &fiveInARow{} },
	}, app.GateConfig{})
	b.must(err)
	return g
}

// guarded is a bundle whose roles ask a gate.
func guarded(t *testing.T) *bundle {
	b := setup(t)
	b.gate = newGate(b, b.store)
	b.build(b.store, b.store)
	b.step(b.gate)
	return b
}

// account is what is stored of the bundle's account, after the gate has stored it.
func (b *bundle) account() ports.AccountHealth {
	b.t.Helper()
	b.step(b.gate)
	rows, err := b.store.AccountHealth(b.ctx())
	b.must(err)
	if len(rows) == 0 {
		return ports.AccountHealth{}
	}
	return rows[0]
}

// polled lets the clock reach every timer and does one round of queries.
func (b *bundle) polled(wait time.Duration) (queries int) {
	b.t.Helper()
	before := b.vendor.queries
	b.clock.Advance(wait)
	b.step(b.gate)
	b.step(b.poll)
	return b.vendor.queries - before
}

func failing(class ports.ProviderClass) func(ports.QueryRequest) (ports.QueryResult, error) {
	return func(ports.QueryRequest) (ports.QueryResult, error) {
		return ports.QueryResult{}, &ports.ProviderError{Class: class, Shape: `{"id":text}`}
	}
}

func TestGateOpensOnFailuresAndProbes(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	for range 8 {
		b.submitted()
	}
	b.vendor.onQuery = failing(ports.ClassTransport)
	if n := b.polled(10 * time.Second); n < 5 || n > 8 { // some begin before the fifth has failed
		t.Fatalf("%d queries, want 5 to 8", n)
	}
	if row := b.account(); row.Breaker != domain.BreakerOpen || row.Reason != domain.BreakerTransport {
		t.Fatalf("account %+v", row)
	}
	late := b.create()
	if n := b.polled(14 * time.Second); n != 0 {
		t.Errorf("%d queries of an open account", n)
	}
	b.step(b.submitter)
	if got := b.view(late.Task.ID).Attempt; got.Status != domain.AttemptCreated || got.NextSubmitAt == nil || b.vendor.creates[got.ID] != 0 {
		t.Errorf("an attempt of an open account: %+v", got)
	}
	if n := b.polled(2 * time.Second); n != 1 {
		t.Errorf("%d queries probed, want 1", n)
	}
	if row := b.account(); row.Breaker != domain.BreakerOpen || row.Opens != 2 {
		t.Errorf("after a failed probe: %+v", row)
	}
	b.vendor.onQuery = nil
	if n := b.polled(31 * time.Second); n != 1 {
		t.Errorf("%d queries probed, want 1", n)
	}
	if row := b.account(); row.Breaker != domain.BreakerClosed || row.Opens != 0 {
		t.Errorf("after an answered probe: %+v", row)
	}
	if n := b.polled(2 * time.Minute); n < 7 {
		t.Errorf("%d queries once it is closed", n)
	}
	b.step(b.submitter)
	if b.vendor.creates[late.Attempt.ID] != 1 {
		t.Error("what waited was not submitted")
	}
}

// TestGateCountsNoMissedPoll: while an account is shut nothing is asked, so nothing
// fails and every timer stays.
func TestGateCountsNoMissedPoll(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	view := b.submitted()
	b.vendor.onQuery = failing(ports.ClassAuth)
	if n := b.polled(10 * time.Second); n != 1 {
		t.Fatalf("%d queries", n)
	}
	row := b.account()
	if row.Breaker != domain.BreakerOpen || row.Reason != domain.BreakerAuth || row.Until.Sub(b.clock.Now()) != time.Minute {
		t.Fatalf("account %+v", row)
	}
	for range 5 {
		if n := b.polled(10 * time.Second); n != 0 {
			t.Fatal("an account whose credential was refused is asked")
		}
	}
	got := b.want(view.Task.ID, queued, domain.AttemptSubmitted)
	if got.Attempt.PollFailures != 1 || got.Attempt.NextPollAt == nil {
		t.Errorf("attempt %+v", got.Attempt)
	}
	b.vendor.onQuery = succeeded
	if n := b.polled(10 * time.Second); n != 1 {
		t.Errorf("%d queries, want the probe", n)
	}
	b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
}

// TestGateProbesBySubmit: where nothing is at the vendor, a create is the probe,
// one alone and later than a query.
func TestGateProbesBySubmit(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) {
		return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassTransport, NotSent: true}
	}
	for range 6 {
		b.create()
	}
	b.step(b.submitter)
	if row := b.account(); row.Breaker != domain.BreakerOpen {
		t.Fatalf("account %+v", row)
	}
	creates := func() (n int) {
		for _, c := range b.vendor.creates {
			n += c
		}
		return n
	}
	before := creates()
	b.vendor.onSubmit = nil
	b.clock.Advance(16 * time.Second)
	b.step(b.submitter)
	if n := creates() - before; n != 0 {
		t.Errorf("%d creates while a query may still probe", n)
	}
	b.clock.Advance(15 * time.Second)
	b.step(b.submitter)
	if n := creates() - before; n != 1 {
		t.Errorf("%d creates probed, want 1", n)
	}
	if row := b.account(); row.Breaker != domain.BreakerClosed {
		t.Errorf("account %+v", row)
	}
	b.clock.Advance(time.Minute)
	b.step(b.submitter)
	if n := creates() - before; n != 6 {
		t.Errorf("%d creates, want all 6", n)
	}
}

// crowdedVendor answers nobody before all have asked.
type crowdedVendor struct {
	*vendor
	arrive sync.WaitGroup
}

func (v *crowdedVendor) Provider(name string) (ports.Provider, bool) {
	_, ok := v.vendor.Provider(name)
	return v, ok
}

func (v *crowdedVendor) Query(ctx context.Context, req ports.QueryRequest) (ports.QueryResult, error) {
	v.arrive.Done()
	v.arrive.Wait()
	return v.vendor.Query(ctx, req)
}

func TestGateThrottles(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	for range 16 {
		b.submitted()
	}
	crowd := &crowdedVendor{vendor: b.vendor}
	crowd.arrive.Add(16) // all are under way when the first is refused
	poll, err := app.NewPoll(app.PollDeps{Env: b.env, Transitions: b.store, Work: b.store, Vendors: app.NewVendors(crowd), Gate: b.gate}, app.PollConfig{})
	b.must(err)
	b.vendor.onQuery = func(ports.QueryRequest) (ports.QueryResult, error) {
		return ports.QueryResult{}, &ports.ProviderError{Class: ports.ClassThrottled, RetryAfter: 40 * time.Second}
	}
	patient := b.poll
	b.poll = poll
	if n := b.polled(10 * time.Second); n != 16 {
		t.Fatalf("%d queries", n)
	}
	b.poll = patient
	row := b.account()
	if row.Limit != 8 || row.ThrottledUntil.Sub(b.clock.Now()) != 40*time.Second || row.State() != domain.BreakerClosed {
		t.Fatalf("account %+v", row)
	}
	late := b.create()
	b.step(b.submitter)
	if n := b.polled(39 * time.Second); n != 0 || b.vendor.creates[late.Attempt.ID] != 0 {
		t.Errorf("%d queries and %d creates before the vendor's wish", n, b.vendor.creates[late.Attempt.ID])
	}
	b.vendor.onQuery = nil
	if n := b.polled(2 * time.Second); n != 8 {
		t.Errorf("%d queries at once, want 8", n)
	}
	if row := b.account(); row.Limit != 9 {
		t.Errorf("limit %d after a round of answers, want 9", row.Limit)
	}
	if n := b.polled(3 * time.Second); n > 9 {
		t.Errorf("%d queries at once, want at most 9", n)
	}
}

func TestGateQuarantines(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	views := []ports.TaskView{b.submitted(), b.submitted()}
	b.vendor.onQuery = failing(ports.ClassMalformed)
	asked := 0
	for range 20 {
		asked += b.polled(14 * time.Second) // ends before the quarantine's probe
	}
	row := b.account()
	if asked < 5 || asked > 6 || !row.Quarantined() || row.Malformed < 5 || row.Sample != `{"id":text}` || row.State() != domain.BreakerClosed {
		t.Fatalf("%d queries, account %+v", asked, row)
	}
	b.clock.Advance(row.QuarantineUntil.Sub(b.clock.Now()))
	if n := b.polled(0); n != 1 {
		t.Errorf("%d queries probed, want 1", n)
	}
	if row := b.account(); !row.Quarantined() || row.QuarantineUntil.Sub(b.clock.Now()) != 5*time.Minute {
		t.Errorf("after another malformed answer: %+v", row)
	}
	b.vendor.onQuery = nil
	b.polled(5 * time.Minute)
	if row := b.account(); row.Quarantined() || row.Sample != "" {
		t.Errorf("after a good answer: %+v", row)
	}
	b.polled(5 * time.Minute)
	for _, v := range views {
		b.want(v.Task.ID, inProgress, domain.AttemptRunning)
	}
}

// TestGateKeepsCancellations: a cancellation waits for a shut account for as long
// as it takes, and that does not use up its tries.
func TestGateKeepsCancellations(t *testing.T) {
	t.Parallel()
	b := guarded(t)
	c := newCommands(b)
	view := b.submitted()
	row := b.account()
	row.AccountRef = ports.AccountRef{Provider: "acme", AccountID: "main"}
	byHand := func(h domain.Health) {
		t.Helper()
		row.Health = h
		if saved, err := b.store.SaveAccountHealth(b.ctx(), row, nil); err != nil || !saved {
			t.Fatalf("saved %v, %v", saved, err)
		}
		row.Version++
		b.step(b.gate)
	}
	byHand(row.OpenByHand())
	_, err := c.cancel.Request(b.ctx(), about(b, view.Task.ID))
	b.must(err)
	for range 8 { // more often than it may be tried
		b.clock.Advance(31 * time.Second)
		b.step(b.gate)
		if n := b.step(c.sender); n != 1 {
			t.Errorf("%d cancellations were looked at", n)
		}
	}
	if b.vendor.cancels != 0 {
		t.Errorf("%d cancellations of a shut account", b.vendor.cancels)
	}
	b.want(view.Task.ID, cancelPending, domain.AttemptSubmitted)
	byHand(row.CloseByHand())
	b.clock.Advance(31 * time.Second)
	if b.step(c.sender); b.vendor.cancels != 1 {
		t.Errorf("%d cancellations", b.vendor.cancels)
	}
}

// muteHealth does not answer while it is away.
type muteHealth struct {
	ports.Health
	away bool
}

func (h *muteHealth) AccountHealth(ctx context.Context) ([]ports.AccountHealth, error) {
	if h.away {
		return nil, errAway
	}
	return h.Health.AccountHealth(ctx)
}

func (h *muteHealth) SaveAccountHealth(ctx context.Context, row ports.AccountHealth, audit *ports.Audit) (bool, error) {
	if h.away {
		return false, errAway
	}
	return h.Health.SaveAccountHealth(ctx, row, audit)
}

// TestGateOutlivesTheStore: what one process has decided holds there while the
// store is away, and is stored when it is back.
func TestGateOutlivesTheStore(t *testing.T) {
	t.Parallel()
	b := setup(t)
	health := &muteHealth{Health: b.store}
	b.gate = newGate(b, health)
	b.build(b.store, b.store)
	b.step(b.gate)
	b.submitted()
	b.vendor.onQuery = failing(ports.ClassAuth)
	health.away = true
	b.clock.Advance(10 * time.Second)
	b.step(b.poll)
	if _, err := b.gate.Step(b.ctx()); !errors.Is(err, errAway) {
		t.Fatalf("error %v", err)
	}
	b.clock.Advance(time.Minute)
	if b.step(b.poll); b.vendor.queries != 1 {
		t.Errorf("%d queries", b.vendor.queries)
	}
	b.clock.Advance(10 * time.Minute) // a probe needs the store
	if b.step(b.poll); b.vendor.queries != 1 {
		t.Errorf("%d queries without a store", b.vendor.queries)
	}
	health.away = false
	if row := b.account(); row.Breaker != domain.BreakerOpen || row.Reason != domain.BreakerAuth {
		t.Errorf("account %+v", row)
	}
}

// TestGatesShareOneState: what one process sees, the other follows within a
// second; one of them probes; a restarted one knows at once.
func TestGatesShareOneState(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.env.Now = time.Now
		b.store = memory.NewStore(time.Now)
		b.must(seed(b))
		b.gate = newGate(b, b.store)
		b.build(b.store, b.store)
		mine := b.poll
		other := newGate(b, b.store)
		theirs, err := app.NewPoll(app.PollDeps{Env: b.env, Transitions: b.store, Work: b.store, Vendors: app.NewVendors(b.vendor), Gate: other}, app.PollConfig{})
		b.must(err)
		ctx, cancel := context.WithCancel(b.ctx())
		defer cancel()
		go func() { b.must(b.gate.Run(ctx)) }()
		go func() { b.must(other.Run(ctx)) }()
		synctest.Wait()
		for range 4 {
			b.submitted()
		}
		b.vendor.onQuery = failing(ports.ClassAuth)
		time.Sleep(10 * time.Second)
		b.step(mine)
		asked := b.vendor.queries
		time.Sleep(time.Second)
		if n := b.step(theirs); n != 0 || b.vendor.queries != asked {
			t.Errorf("the other process claimed %d attempts and asked %d times", n, b.vendor.queries-asked)
		}
		time.Sleep(time.Minute)
		done := make(chan int, 2)
		for _, poll := range []*app.Poll{mine, theirs} {
			go func() { n, _ := poll.Step(ctx); done <- n }()
		}
		<-done
		<-done
		if n := b.vendor.queries - asked; n != 1 {
			t.Errorf("%d queries probed, want 1", n)
		}
		time.Sleep(time.Second)
		fresh := newGate(b, b.store)
		b.step(fresh)
		restarted, err := app.NewPoll(app.PollDeps{Env: b.env, Transitions: b.store, Work: b.store, Vendors: app.NewVendors(b.vendor), Gate: fresh}, app.PollConfig{})
		b.must(err)
		if n := b.step(restarted); n != 0 {
			t.Errorf("a restarted process claimed %d attempts", n)
		}
	})
}

func TestGateConfig(t *testing.T) {
	t.Parallel()
	if err := (app.GateConfig{}).Validate(); err != nil {
		t.Error(err)
	}
	for _, bad := range []app.GateConfig{
		{Malformed: -1}, {Refresh: -1}, {Policy: domain.HealthPolicy{Ceiling: -1}},
		{Policy: domain.HealthPolicy{Auth: domain.Interval{Base: time.Hour, Cap: time.Minute}}},
	} {
		if bad.Validate() == nil {
			t.Errorf("%+v is accepted", bad)
		}
	}
	if _, err := app.NewGate(app.GateDeps{}, app.GateConfig{}); err == nil {
		t.Error("a gate without anything is accepted")
	}
}
