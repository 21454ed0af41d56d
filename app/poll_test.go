package app_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func TestPollErrorsNeverFailATask(t *testing.T) {
	t.Parallel()
	for _, class := range []ports.ProviderClass{
		ports.ClassTransport, ports.ClassThrottled, ports.ClassAuth, ports.ClassNotFound, ports.ClassMalformed, ports.ClassRejected,
	} {
		t.Run(string(class), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			view := b.submitted()
			b.vendor.onQuery = func(ports.QueryRequest) (ports.QueryResult, error) {
				return ports.QueryResult{}, &ports.ProviderError{Class: class}
			}
			for range 20 {
				b.clock.Advance(10 * time.Minute)
				b.step(b.poll)
			}
			got := b.want(view.Task.ID, domain.StatusProviderStatusUnknown, domain.AttemptSubmitted)
			if got.Attempt.Timer() == nil {
				t.Error("no timer is left")
			}
			if got.Attempt.PollCount+got.Attempt.PollFailures < 5 || b.vendor.creates[got.Attempt.ID] != 1 {
				t.Errorf("attempt %+v", got.Attempt)
			}
			b.vendor.onQuery = succeeded
			b.clock.Advance(time.Hour)
			b.step(b.poll)
			b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
		})
	}
}

func TestPollAdapterPanic(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.vendor.onQuery = func(ports.QueryRequest) (ports.QueryResult, error) { panic("adapter") }
	b.clock.Advance(time.Minute)
	b.step(b.poll)
	if got := b.view(view.Task.ID); got.Attempt.PollFailures != 1 || !got.Attempt.PollLease.IsZero() {
		t.Errorf("attempt %+v", got.Attempt)
	}
}

func TestPollVendorsWishCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
		return ports.QueryResult{NextAfter: 42 * time.Second, Observation: domain.Observation{Status: domain.ObservedRunning}}, nil
	}
	b.clock.Advance(time.Minute)
	b.step(b.poll)
	if got := b.view(view.Task.ID); !got.Attempt.NextPollAt.Equal(b.clock.Now().Add(42 * time.Second)) {
		t.Errorf("next poll at %v, now %v", got.Attempt.NextPollAt, b.clock.Now())
	}
}

func TestPollUnconfiguredAccount(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.vendor.accounts = b.vendor.accounts[1:]
	b.clock.Advance(time.Minute)
	b.step(b.poll)
	got := b.want(view.Task.ID, queued, domain.AttemptSubmitted)
	if b.vendor.queries != 0 || got.Attempt.PollFailures != 1 {
		t.Errorf("%d queries, %d failures", b.vendor.queries, got.Attempt.PollFailures)
	}
}

func TestPollLooksUpUnknownSubmits(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.caps.Policy.CanLookup = true
	b.vendor.onSubmit = func(req ports.SubmitRequest) (ports.SubmitResult, error) { return ports.SubmitResult{}, lost() }
	view := b.submitted()
	b.clock.Advance(10 * time.Second)
	b.step(b.poll)
	b.want(view.Task.ID, domain.StatusProviderStatusUnknown, domain.AttemptSubmitUnknown)
	b.vendor.start(view.Attempt.ClientRequestID) // it was only slow
	b.clock.Advance(time.Minute)
	b.step(b.poll)
	got := b.want(view.Task.ID, queued, domain.AttemptQueued)
	if got.Attempt.ProviderTaskID != "job-1" {
		t.Errorf("id %q", got.Attempt.ProviderTaskID)
	}
}

func TestPollQuotaLeavesTheRest(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 3 {
		b.submitted()
	}
	var err error
	b.poll, err = app.NewPoll(app.PollDeps{
		Env: b.env, Transitions: b.store, Work: b.store, Vendors: app.NewVendors(b.vendor), Quota: memory.NewQuota(b.clock.Now),
	}, app.PollConfig{Concurrency: 1, Quota: app.QuotaConfig{Tenant: app.Rate{PerSecond: .01, Burst: 2}}})
	b.must(err)
	b.clock.Advance(10 * time.Second)
	for range 3 {
		b.step(b.poll)
		b.clock.Advance(100 * time.Millisecond)
	}
	if b.vendor.queries != 2 {
		t.Errorf("%d queries, want 2", b.vendor.queries)
	}
	if n := b.step(b.poll); n != 0 {
		t.Error("an attempt that our limits held up was claimed again at once")
	}
	b.clock.Advance(10 * time.Minute) // a permit is there, and the one that was held up comes first
	b.step(b.poll)
	page, err := b.store.Tasks(b.ctx(), ports.ListParams{ProjectID: b.project.ID, Status: inProgress, Limit: 10})
	b.must(err)
	if len(page.Tasks) != 3 {
		t.Errorf("%d tasks are known to run, want 3", len(page.Tasks))
	}
}

func TestPollStoreAway(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.build(&flaky{Store: b.store, before: func(int, []ports.Item) error { return errAway }}, b.store)
	b.clock.Advance(time.Minute)
	if n, err := b.poll.Step(b.ctx()); n != 1 || err == nil {
		t.Errorf("worked %d, error %v", n, err)
	}
	b.build(b.store, b.store)
	if n := b.step(b.poll); n != 0 {
		t.Error("a leased attempt was queried again")
	}
	b.clock.Advance(time.Minute)
	b.step(b.poll)
	b.want(view.Task.ID, inProgress, domain.AttemptRunning)
}

func TestPollConfig(t *testing.T) {
	t.Parallel()
	if err := (app.PollConfig{}).Validate(); err != nil {
		t.Error(err)
	}
	if (app.PollConfig{QueryTimeout: time.Minute}).Validate() == nil {
		t.Error("a query may outlast its lease")
	}
}
