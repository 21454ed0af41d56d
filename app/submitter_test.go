package app_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

const queued = domain.Status(domain.PhaseQueued)

func TestSubmitterAccepted(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.create()
	if n := b.step(b.submitter); n != 1 {
		t.Fatalf("worked %d, want 1", n)
	}
	view = b.want(view.Task.ID, queued, domain.AttemptSubmitted)
	if view.Attempt.ProviderTaskID != "job-1" || view.Attempt.NextPollAt == nil {
		t.Errorf("no id or no timer: %+v", view.Attempt)
	}
	if want := "https://in.example/callbacks/acme/" + b.tokens.Make(view.Attempt.ID); b.vendor.urls[view.Attempt.ID] != want {
		t.Errorf("callback URL %q, want %q", b.vendor.urls[view.Attempt.ID], want)
	}
	if n := b.step(b.submitter); n != 0 || b.vendor.creates[view.Attempt.ID] != 1 {
		t.Errorf("a second round worked %d and called %d times", n, b.vendor.creates[view.Attempt.ID])
	}
}

func TestSubmitterAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		answer  func(ports.SubmitRequest) (ports.SubmitResult, error)
		status  domain.Status
		attempt domain.AttemptStatus
	}{
		"throttled": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassThrottled, NotSent: true, RetryAfter: time.Minute}
		}, queued, domain.AttemptCreated},
		"bad credential": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassAuth}
		}, queued, domain.AttemptCreated},
		"rejected": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassRejected, ErrorClass: string(domain.ClassModerationInput)}
		}, domain.Status(domain.PhaseFailed), domain.AttemptFailed},
		"lost": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{}, lost()
		}, domain.StatusProviderStatusUnknown, domain.AttemptSubmitUnknown},
		"time-out of ours": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{}, context.DeadlineExceeded
		}, domain.StatusProviderStatusUnknown, domain.AttemptSubmitUnknown},
		"malformed": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassMalformed}
		}, domain.StatusProviderStatusUnknown, domain.AttemptSubmitUnknown},
		"no id": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{}, nil
		}, domain.StatusProviderStatusUnknown, domain.AttemptSubmitUnknown},
		"panic": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			panic("adapter")
		}, domain.StatusProviderStatusUnknown, domain.AttemptSubmitUnknown},
		"running at once": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{ProviderTaskID: "j", Observation: &domain.Observation{Status: domain.ObservedRunning}}, nil
		}, domain.Status(domain.PhaseRunning), domain.AttemptRunning},
		"finished at once": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{ProviderTaskID: "j", Observation: &domain.Observation{
				Status: domain.ObservedSucceeded, Outputs: []domain.OutputRef{{Ref: "o", URL: "https://x.example/o"}},
			}}, nil
		}, domain.Status(domain.PhaseProviderSucceeded), domain.AttemptSucceeded},
		"failed at once": {func(ports.SubmitRequest) (ports.SubmitResult, error) {
			return ports.SubmitResult{ProviderTaskID: "j", Observation: &domain.Observation{Status: domain.ObservedFailed, ErrorCode: "a\x00b"}}, nil
		}, domain.Status(domain.PhaseFailed), domain.AttemptFailed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.vendor.onSubmit = tc.answer
			view := b.submitted()
			b.want(view.Task.ID, tc.status, tc.attempt)
			if view.Attempt.Status == domain.AttemptCreated && !view.Attempt.NextSubmitAt.Equal(b.clock.Now().Add(time.Minute)) {
				t.Errorf("due again at %v", view.Attempt.NextSubmitAt)
			}
			b.step(b.submitter)
			if n := b.vendor.creates[view.Attempt.ID]; n != 1 {
				t.Errorf("%d creates, want 1", n)
			}
		})
	}
}

func TestSubmitterTriesAgainWhatWasNotSent(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) {
		return ports.SubmitResult{}, &ports.ProviderError{Class: ports.ClassTransport, NotSent: true}
	}
	view := b.submitted()
	b.vendor.onSubmit = nil
	b.clock.Advance(time.Minute)
	b.step(b.submitter)
	b.want(view.Task.ID, queued, domain.AttemptSubmitted)
}

func TestSubmitterReplaysWhereDocumented(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.caps.Policy.ReplaySafe = true
	answers := 0
	b.vendor.onSubmit = func(req ports.SubmitRequest) (ports.SubmitResult, error) {
		id := b.vendor.start(req.Attempt.ClientRequestID)
		if answers++; answers == 1 {
			return ports.SubmitResult{}, lost()
		}
		return ports.SubmitResult{ProviderTaskID: id}, nil
	}
	view := b.submitted()
	b.want(view.Task.ID, domain.StatusProviderStatusUnknown, domain.AttemptSubmitUnknown)
	url := b.vendor.urls[view.Attempt.ID]
	b.clock.Advance(time.Minute)
	if b.step(b.poll); b.vendor.queries != 0 {
		t.Error("the poller took the slow loop of a vendor whose create can be replayed")
	}
	b.step(b.submitter)
	b.want(view.Task.ID, queued, domain.AttemptSubmitted)
	if len(b.vendor.jobs) != 1 || b.vendor.urls[view.Attempt.ID] != url {
		t.Errorf("%d jobs, URL %q then %q", len(b.vendor.jobs), url, b.vendor.urls[view.Attempt.ID])
	}
}

func TestSubmitterQueriesWhatItCannotReplay(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.caps.Policy.ReplaySafe, b.vendor.caps.Policy.CanLookup = true, true
	b.vendor.onSubmit = func(req ports.SubmitRequest) (ports.SubmitResult, error) {
		b.vendor.start(req.Attempt.ClientRequestID)
		return ports.SubmitResult{}, lost()
	}
	view := b.submitted()
	cancel, err := app.NewCancel(app.CommandDeps{Env: b.env, Transitions: b.store, Reader: b.store, Vendors: app.NewVendors(b.vendor)})
	b.must(err)
	_, err = cancel.Request(b.ctx(), app.TaskCommand{Project: b.project, TaskID: view.Task.ID})
	b.must(err)
	b.clock.Advance(time.Minute)
	b.step(b.submitter)
	if n := b.vendor.creates[view.Attempt.ID]; n != 1 {
		t.Errorf("%d creates of a task that the user wants canceled", n)
	}
	b.want(view.Task.ID, domain.StatusCancelRequested, domain.AttemptQueued)
}

func TestSubmitterQuota(t *testing.T) {
	t.Parallel()
	b := setup(t)
	quota := memory.NewQuota(b.clock.Now)
	var err error
	b.submitter, err = app.NewSubmitter(app.SubmitterDeps{
		Env: b.env, Transitions: b.store, Work: b.store, Providers: b.vendor, Tokens: b.tokens, Quota: quota,
	}, app.SubmitterConfig{Quota: app.QuotaConfig{Account: app.Rate{PerSecond: 1, Burst: 2}}})
	b.must(err)
	for range 5 {
		b.create()
	}
	for round, want := range []int{2, 1, 1, 1, 0} {
		if n := b.step(b.submitter); n != want {
			t.Errorf("round %d submitted %d, want %d", round, n, want)
		}
		b.clock.Advance(time.Second)
	}
}

// A throttled vendor with many waiting tasks does not hold up another.
func TestSubmitterQuotaHoldsUpOnlyItsOwn(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.names = []string{"acme", "beta"}
	var err error
	b.submitter, err = app.NewSubmitter(app.SubmitterDeps{
		Env: b.env, Transitions: b.store, Work: b.store, Providers: b.vendor, Tokens: b.tokens, Quota: memory.NewQuota(b.clock.Now),
	}, app.SubmitterConfig{Concurrency: 2, Quota: app.QuotaConfig{
		Accounts: map[string]app.Rate{"acme:main": {PerSecond: .001, Burst: 1}}, Platform: app.Rate{PerSecond: 100, Burst: 100},
	}})
	b.must(err)
	for range 20 {
		b.create()
	}
	b.clock.Advance(time.Second)
	cmd := b.command()
	cmd.Provider = "beta"
	late, err := b.submit.Create(b.ctx(), cmd)
	b.must(err)
	if n := b.step(b.submitter); n != 2 {
		t.Errorf("submitted %d, want one of each vendor", n)
	}
	b.want(late.View.Task.ID, queued, domain.AttemptSubmitted)
}

// Where the store's clock is behind, an expired lease is no work yet: the loop
// must not spin.
func TestSubmitterClocksDiffer(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.create()
	dying := &flaky{Store: b.store, before: func(n int, _ []ports.Item) error {
		if n > 1 {
			return errAway
		}
		return nil
	}}
	b.build(dying, b.store)
	_, _ = b.submitter.Step(b.ctx())
	b.want(view.Task.ID, queued, domain.AttemptSubmitting)
	b.env.Now = func() time.Time { return b.clock.Now().Add(2 * time.Minute) }
	b.build(b.store, b.store)
	if n := b.step(b.submitter); n != 0 {
		t.Errorf("worked %d on nothing", n)
	}
	b.want(view.Task.ID, queued, domain.AttemptSubmitting)
}

// A commit whose answer is lost before the call: the lease may be stored, but
// this process knows that it called nobody.
func TestSubmitterKnowsWhatItDidNotCall(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.create()
	fl := &flaky{Store: b.store, after: func(n int, _ []ports.Item) error {
		if n == 1 {
			return ports.ErrUnavailable
		}
		return nil
	}}
	b.build(fl, fl)
	if _, err := b.submitter.Step(b.ctx()); err == nil {
		t.Fatal("the lost commit was not reported")
	}
	b.want(view.Task.ID, queued, domain.AttemptSubmitting)
	b.clock.Advance(2 * time.Minute)
	b.step(b.submitter)
	b.clock.Advance(time.Minute)
	b.step(b.submitter)
	b.want(view.Task.ID, queued, domain.AttemptSubmitted)
	if b.vendor.creates[view.Attempt.ID] != 1 {
		t.Errorf("%d creates", b.vendor.creates[view.Attempt.ID])
	}
}

// The process dies at every point around every call of the store: the attempt
// ends as submitted, as created again or as unknown, never with two creates, and
// never without a timer or a case (I8, I16).
func TestSubmitterCrashAtAnyPoint(t *testing.T) {
	t.Parallel()
	for call := 1; call <= 3; call++ {
		for _, where := range []string{"before", "after"} {
			t.Run(fmt.Sprintf("%s call %d", where, call), func(t *testing.T) {
				t.Parallel()
				b := setup(t)
				view := b.create()
				crashed := &flaky{Store: b.store}
				die := func(n int, _ []ports.Item) error {
					if n >= call { // a dead process stores nothing more
						return errAway
					}
					return nil
				}
				crashed.before = die
				if where == "after" {
					crashed.after = func(n int, items []ports.Item) error { return die(n, items) }
					crashed.before = func(n int, items []ports.Item) error { return die(n-1, items) }
				}
				b.build(crashed, crashed)
				_, _ = b.submitter.Step(b.ctx()) // dies

				b.build(b.store, b.store) // a new process
				for range 5 {
					b.step(b.submitter)
					b.clock.Advance(2 * time.Minute)
				}
				got := b.view(view.Task.ID)
				if n := b.vendor.creates[got.Attempt.ID]; n > 1 {
					t.Errorf("%d creates", n)
				}
				cases, err := b.store.Cases(b.ctx(), domain.CaseSubmitUnknown, 10)
				b.must(err)
				switch got.Attempt.Status {
				case domain.AttemptSubmitted:
				case domain.AttemptSubmitUnknown:
					if len(cases) != 1 {
						t.Error("an unknown submit without a case")
					}
				default:
					t.Errorf("ended as %s", got.Attempt.Status)
				}
			})
		}
	}
}

func TestSubmitterDoesNotCallWhenStopping(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.create()
	ctx, stop := context.WithCancel(b.ctx())
	fl := &flaky{Store: b.store, after: func(int, []ports.Item) error { stop(); return nil }}
	b.build(fl, b.store)
	_, _ = b.submitter.Step(ctx)
	b.want(view.Task.ID, queued, domain.AttemptCreated)
	if len(b.vendor.creates) != 0 {
		t.Error("the vendor was called")
	}
}

func TestSubmitterConfig(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]app.SubmitterConfig{
		"call longer than lease": {CallTimeout: time.Minute, Lease: time.Minute},
		"negative":               {Concurrency: -1},
		"relative base":          {CallbackBase: "/callbacks"},
		"half a rate":            {Quota: app.QuotaConfig{Tenant: app.Rate{PerSecond: 1}}},
	} {
		if cfg.Validate() == nil {
			t.Errorf("%s is accepted", name)
		}
	}
	if err := (app.SubmitterConfig{}).Validate(); err != nil {
		t.Errorf("the zero config: %v", err)
	}
}
