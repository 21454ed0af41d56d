package domain_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestCreate(t *testing.T) {
	t.Parallel()
	task := domain.Task{ID: domain.TaskID{ID: id(1)}, TraceID: domain.TraceID{ID: id(9)}, Phase: domain.PhaseReady, AttemptCount: 7}
	attempt := domain.Attempt{ID: domain.AttemptID{ID: id(101)}, Credits: 7, Status: domain.AttemptFailed}
	d := domain.Create(task, attempt, epoch)
	if d.Task.Version != 1 || d.Task.Status() != "queued" || d.Task.Stage != domain.StageSubmitting || d.Task.CurrentAttemptID != attempt.ID || !d.Task.CreatedAt.Equal(epoch) {
		t.Errorf("task %+v", d.Task)
	}
	if a := d.Attempt; a.No != 1 || a.Status != domain.AttemptCreated || a.TaskID != task.ID || a.Closing != domain.ClosingOpen || !a.NextSubmitAt.Equal(epoch) {
		t.Errorf("attempt %+v", a)
	}
	if d.NewAttempt != nil || len(d.Ledger) != 1 || d.Ledger[0].Type != domain.LedgerReserve || d.Ledger[0].Credits != 7 {
		t.Errorf("ledger %v, new attempt %v", d.Ledger, d.NewAttempt)
	}
	if e := d.Event; e == nil || e.Version != 1 || e.Source != domain.SourceUser || e.TraceID != task.TraceID || e.Type != domain.EventTaskStatusChanged {
		t.Errorf("event %+v", d.Event)
	}
}

// TestSubmit is the usual way, with its leases and timers.
func TestSubmit(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	d := s.start()
	if a := d.Attempt; a.Status != domain.AttemptSubmitting || a.SubmitCount != 1 || a.SubmitLease != leaseMine || a.NextSubmitAt != nil || a.Timer() == nil {
		t.Fatalf("submitting: %+v", a)
	}
	verdict(t, s.start(), domain.VerdictIgnored, domain.ReasonNotSubmittable) // I8
	d = s.do(domain.Input{Kind: domain.InputSubmitAccepted, Lease: leaseMine, ProviderTaskID: "job"})
	if a := d.Attempt; a.Status != domain.AttemptSubmitted || a.ProviderTaskID != "job" || !a.SubmitLease.IsZero() || a.SubmitLeaseUntil != nil || a.SubmittedAt == nil {
		t.Fatalf("submitted: %+v", a)
	}
	s.due(2 * time.Second)
	if s.task.Stage != domain.StageWaiting {
		t.Fatalf("stage %s", s.task.Stage)
	}
}

// TestSubmitNotSent gives the attempt back, later each time, or when the vendor
// wishes.
func TestSubmitNotSent(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	for _, want := range []time.Duration{2 * time.Second, 4 * time.Second, 8 * time.Second} {
		s.start()
		d := s.do(domain.Input{Kind: domain.InputSubmitNotSent, Lease: leaseMine})
		if d.Attempt.Status != domain.AttemptCreated || d.Attempt.NextSubmitAt.Sub(s.now) != want {
			t.Fatalf("%s again in %s, want %s", d.Attempt.Status, d.Attempt.NextSubmitAt.Sub(s.now), want)
		}
		s.tick(want)
	}
	s.start()
	d := s.do(domain.Input{Kind: domain.InputSubmitNotSent, Lease: leaseMine, RetryAfter: 5 * time.Minute})
	if got := d.Attempt.NextSubmitAt.Sub(s.now); got != 5*time.Minute {
		t.Fatalf("again in %s", got)
	}
	s.money(1, domain.LedgerReserve)
}

// TestCallbackBeforeSubmitResponse is specification 12.7.4, up to a verdict that
// comes before the answer to the submit.
func TestCallbackBeforeSubmitResponse(t *testing.T) {
	t.Parallel()
	answer := domain.Input{Kind: domain.InputSubmitAccepted, Lease: leaseMine, ProviderTaskID: "job"}
	tests := map[string]struct {
		news   domain.Input
		status domain.Status
		want   domain.Verdict // of the answer
	}{
		"queued":    {observation(domain.SourceWebhook, domain.ObservedQueued, nil), "queued", domain.Verdict{Kind: domain.VerdictUnchanged}},
		"running":   {observation(domain.SourceWebhook, domain.ObservedRunning, nil), "running", domain.Verdict{Kind: domain.VerdictUnchanged}},
		"thin":      {observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{thin}), "queued", domain.Verdict{Kind: domain.VerdictUnchanged}},
		"succeeded": {observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{clip}), "provider_succeeded", domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonTerminalAbsorbing}},
		"failed":    {observation(domain.SourceWebhook, domain.ObservedFailed, nil), "failed", domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonTerminalAbsorbing}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, domain.LateSuccessKeep)
			s.start()
			s.do(tt.news)
			s.is(tt.status)
			if a := s.attempt(); a.ProviderTaskID != "job" || !a.SubmitLease.IsZero() || a.SubmittedAt == nil && !a.Status.Terminal() {
				t.Fatalf("attempt %+v", a)
			}
			verdict(t, s.do(answer), tt.want.Kind, tt.want.Reason)
			s.is(tt.status)
			other := answer
			other.ProviderTaskID = "another job"
			verdict(t, s.do(other), domain.VerdictIgnored, domain.ReasonIdentityMismatch)
		})
	}
}

// TestSubmitResponseIsNews: a response that is already a verdict is an
// observation like any other; "no output" is believed from a query only.
func TestSubmitResponseIsNews(t *testing.T) {
	t.Parallel()
	s := submitted(t, domain.LateSuccessKeep)
	verdict(t, s.do(observation(domain.SourceSubmit, domain.ObservedSucceeded, nil)), domain.VerdictNeedsQuery, domain.ReasonOutputMissing)
	s.due(0)
	verdict(t, s.do(observation(domain.SourceSubmit, domain.ObservedSucceeded, []detail{clip})), domain.VerdictApplied, "")
	s.is("provider_succeeded")
}

// TestSubmitUnknownEnds: every way out of an unknown submit (design 2, decision
// 15), and that money and status follow.
func TestSubmitUnknownEnds(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		in     domain.Input
		status domain.Status
		money  []domain.LedgerType
		open   bool // the case
	}{
		{"a late answer", domain.Input{Kind: domain.InputSubmitAccepted, ProviderTaskID: "job"}, "queued", []domain.LedgerType{domain.LedgerReserve}, false},
		{"a late refusal", domain.Input{Kind: domain.InputSubmitRejected, ErrorClass: domain.ClassQuota}, "failed", []domain.LedgerType{domain.LedgerReserve, domain.LedgerRefund}, false},
		{"a lookup that finds it", observation(domain.SourceReconcile, domain.ObservedRunning, nil), "running", []domain.LedgerType{domain.LedgerReserve}, false},
		{"a lookup that finds it done", observation(domain.SourceReconcile, domain.ObservedSucceeded, []detail{clip}), "provider_succeeded", []domain.LedgerType{domain.LedgerReserve}, false},
		{"a callback", observation(domain.SourceWebhook, domain.ObservedFailed, nil), "failed", []domain.LedgerType{domain.LedgerReserve, domain.LedgerRefund}, false},
		{"a callback without a body", observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{thin}), "queued", []domain.LedgerType{domain.LedgerReserve}, false},
		{"a callback without its output", observation(domain.SourceWebhook, domain.ObservedSucceeded, nil), "queued", []domain.LedgerType{domain.LedgerReserve}, false},
		{"a callback with a strange word", observation(domain.SourceWebhook, domain.ObservedNone, nil), "queued", []domain.LedgerType{domain.LedgerReserve}, false},
		{"a callback that proves nothing", observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{clip, trust(domain.TrustBearer)}), "provider_status_unknown", []domain.LedgerType{domain.LedgerReserve}, true},
		{"a lookup that finds nothing", domain.Input{Kind: domain.InputLookupFailed}, "provider_status_unknown", []domain.LedgerType{domain.LedgerReserve}, true},
		{"a person has the id", resolution(domain.Resolution{Kind: domain.ResolveCreatedWithID, ProviderTaskID: "job"}), "queued", []domain.LedgerType{domain.LedgerReserve}, false},
		{"a person knows that there is none", resolution(domain.Resolution{Kind: domain.ResolveNotCreated}), "failed", []domain.LedgerType{domain.LedgerReserve, domain.LedgerRefund}, false},
		{"a person gives up", resolution(domain.Resolution{Kind: domain.ResolveAbandon}), "failed", []domain.LedgerType{domain.LedgerReserve, domain.LedgerRefund}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, domain.LateSuccessKeep)
			s.policy.CanLookup = true
			s.unknownSubmit()
			s.is("provider_status_unknown")
			if !s.hasCase(1, domain.CaseSubmitUnknown) || s.attempt().Timer() == nil {
				t.Fatal("nobody looks after it")
			}
			s.do(tt.in)
			s.is(tt.status)
			s.money(1, tt.money...)
			if got := s.hasCase(1, domain.CaseSubmitUnknown); got != tt.open {
				t.Errorf("case open: %v", got)
			}
			if s.attempt().Status.AtVendor() && s.attempt().NextPollAt == nil {
				t.Error("the job is known and never asked about")
			}
			if a := s.attempt(); a.Status != domain.AttemptSubmitUnknown && a.NextReconcileAt != nil {
				t.Error("the job is found and still looked for")
			}
		})
	}
}

// TestLookupsEnd: the vendor forgets after a while; then the case alone stands.
func TestLookupsEnd(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	s.policy.CanLookup = true
	s.unknownSubmit()
	rounds := 0
	for ; s.attempt().NextReconcileAt != nil; rounds++ {
		if rounds > 100 {
			t.Fatal("lookups never end")
		}
		s.now = *s.attempt().NextReconcileAt
		s.do(domain.Input{Kind: domain.InputLookupFailed})
	}
	if age := s.now.Sub(epoch); age < time.Hour || age > time.Hour+10*time.Minute {
		t.Fatalf("lookups end after %s", age)
	}
	s.is("provider_status_unknown")
	if !s.hasCase(1, domain.CaseSubmitUnknown) {
		t.Fatal("nobody looks after it (I16)")
	}
}

// TestExpiredSubmitLease: the sweep makes the submit unknown, and never gives the
// attempt back.
func TestExpiredSubmitLease(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	s.start()
	sweep := domain.Input{Kind: domain.InputSubmitUnknown}
	verdict(t, s.do(sweep), domain.VerdictIgnored, domain.ReasonStaleLease)
	s.tick(time.Minute)
	s.do(sweep)
	s.is("provider_status_unknown")
	// The caller is alive after all: its "not sent" is too late to be believed.
	verdict(t, s.do(domain.Input{Kind: domain.InputSubmitNotSent, Lease: leaseMine}), domain.VerdictIgnored, domain.ReasonRegressiveStatus)
	if s.attempt().Status != domain.AttemptSubmitUnknown {
		t.Fatal("an unknown submit was given back")
	}
}

// TestReplay: only where the vendor documents it; a replay that was not sent says
// nothing about the first request.
func TestReplay(t *testing.T) {
	t.Parallel()
	replay := domain.Input{Kind: domain.InputSubmitReplayed, Lease: leaseMine, LeaseUntil: epoch.Add(time.Hour)}
	s := begin(t, domain.LateSuccessKeep)
	s.unknownSubmit()
	verdict(t, s.do(replay), domain.VerdictIgnored, domain.ReasonNotSubmittable)

	s = begin(t, domain.LateSuccessKeep)
	s.policy.ReplaySafe = true
	s.unknownSubmit()
	if s.attempt().NextReconcileAt == nil {
		t.Fatal("no replay is due")
	}
	s.do(replay)
	s.do(domain.Input{Kind: domain.InputSubmitNotSent, Lease: leaseMine})
	if a := s.attempt(); a.Status != domain.AttemptSubmitUnknown || a.NextReconcileAt == nil || a.NextSubmitAt != nil || !s.hasCase(1, domain.CaseSubmitUnknown) {
		t.Fatalf("after a replay that was not sent: %s", a.Status)
	}
	s.is("provider_status_unknown")
	s.do(replay)
	s.do(domain.Input{Kind: domain.InputSubmitAccepted, Lease: leaseMine, ProviderTaskID: "job"})
	s.is("queued")
	if s.attempt().SubmitCount != 3 {
		t.Fatalf("%d calls are counted", s.attempt().SubmitCount)
	}
}

// TestReplayEnds: replays that stay without an answer become rarer, and end when
// the vendor may have forgotten the first request.
func TestReplayEnds(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	s.policy.ReplaySafe = true
	s.unknownSubmit()
	var waits []time.Duration
	for {
		s.tick(time.Minute)
		d := s.do(domain.Input{Kind: domain.InputSubmitReplayed, Lease: leaseMine, LeaseUntil: s.now.Add(time.Hour)})
		if d.Verdict.Reason == domain.ReasonNotSubmittable {
			break
		}
		s.do(domain.Input{Kind: domain.InputSubmitUnknown, Lease: leaseMine})
		waits = append(waits, s.attempt().NextReconcileAt.Sub(s.now))
	}
	if first, last := waits[0], waits[len(waits)-1]; first >= last || last != domain.DefaultPolicy().Lookup.Cap {
		t.Errorf("the next replay is due after %v at first and %v at last", first, last)
	}
	if got := s.now.Sub(s.attempt().CreatedAt); got != domain.DefaultPolicy().LookupRetention {
		t.Errorf("the last replay was refused after %v", got)
	}
	s.do(domain.Input{Kind: domain.InputLookupFailed})
	if a := s.attempt(); a.NextReconcileAt != nil || !s.hasCase(1, domain.CaseSubmitUnknown) {
		t.Error("a person is left to decide")
	}
}
