package domain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// TestSequence is specification 12.7.2 with the design's deviation: counters
// never repeat, timestamps may, and a terminal is too dear to drop.
func TestSequence(t *testing.T) {
	t.Parallel()
	const counter, timestamp = domain.SequenceCounter, domain.SequenceTimestamp
	tests := []struct {
		name   string
		source domain.Source
		status domain.Observed
		number int64
		kind   domain.SequenceKind
		want   domain.Verdict
	}{
		{"newer", domain.SourceWebhook, domain.ObservedSucceeded, 11, counter, domain.Verdict{Kind: domain.VerdictApplied}},
		{"older word", domain.SourceWebhook, domain.ObservedRunning, 9, counter, domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonStaleSequence}},
		{"same counter", domain.SourceWebhook, domain.ObservedRunning, 10, counter, domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonStaleSequence}},
		{"same second, same rank", domain.SourceWebhook, domain.ObservedRunning, 10, timestamp, domain.Verdict{Kind: domain.VerdictUnchanged}},
		{"same second, higher rank", domain.SourceWebhook, domain.ObservedSucceeded, 10, timestamp, domain.Verdict{Kind: domain.VerdictApplied}},
		{"same second, lower rank", domain.SourceWebhook, domain.ObservedQueued, 10, timestamp, domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonRegressiveStatus}},
		{"earlier second", domain.SourceWebhook, domain.ObservedRunning, 9, timestamp, domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonStaleSequence}},
		{"newer number, lower rank", domain.SourceWebhook, domain.ObservedQueued, 12, counter, domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonRegressiveStatus}},
		{"old verdict by delivery", domain.SourceWebhook, domain.ObservedFailed, 9, counter, domain.Verdict{Kind: domain.VerdictNeedsQuery, Reason: domain.ReasonStaleSequence}},
		{"old verdict by query", domain.SourcePoll, domain.ObservedFailed, 9, counter, domain.Verdict{Kind: domain.VerdictApplied}},
		{"old word by query", domain.SourcePoll, domain.ObservedRunning, 9, counter, domain.Verdict{Kind: domain.VerdictIgnored, Reason: domain.ReasonStaleSequence}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			s.webhook(domain.ObservedRunning, numbered(10, tt.kind))
			d := s.do(observation(tt.source, tt.status, []detail{clip, numbered(tt.number, tt.kind)}))
			verdict(t, d, tt.want.Kind, tt.want.Reason)
			if *d.Attempt.LastSequence < 10 {
				t.Fatalf("the sequence fell to %d", *d.Attempt.LastSequence)
			}
		})
	}
}

// TestVendorClockIsNotCompared: an earlier vendor time does not make news old.
func TestVendorClockIsNotCompared(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	at := func(moment time.Time) detail {
		return func(o *domain.Observation) { o.ProviderOccurredAt = &moment }
	}
	s.webhook(domain.ObservedRunning, percent(10), at(epoch.Add(24*time.Hour)))
	verdict(t, s.webhook(domain.ObservedSucceeded, clip, at(epoch.Add(-24*time.Hour))), domain.VerdictApplied, "")
}

// TestContradiction is specification 12.7.7: the first verdict stands, the other
// is kept, one more query is asked, a person is told.
func TestContradiction(t *testing.T) {
	t.Parallel()
	tests := []struct {
		first, second domain.Observed
		kind          domain.Reason
	}{
		{domain.ObservedFailed, domain.ObservedSucceeded, domain.ConflictTerminal},
		{domain.ObservedSucceeded, domain.ObservedFailed, domain.ConflictTerminal},
		{domain.ObservedSucceeded, domain.ObservedCanceled, domain.ConflictTerminal},
		{domain.ObservedFailed, domain.ObservedCanceled, domain.ConflictTerminal},
		{domain.ObservedCanceled, domain.ObservedFailed, domain.ConflictTerminal},
		{domain.ObservedCanceled, domain.ObservedSucceeded, domain.ConflictLate},
	}
	for _, tt := range tests {
		t.Run(string(tt.first)+" then "+string(tt.second), func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			s.webhook(tt.first, clip)
			status, ledger := s.task.Status(), len(s.ledger[s.attempt().ID])
			d := s.webhook(tt.second, clip)
			verdict(t, d, domain.VerdictConflict, tt.kind)
			if d.Conflict.Have != domain.AttemptStatus(tt.first) || d.Conflict.Got != domain.AttemptStatus(tt.second) || len(d.Conflict.Outputs) != 1 {
				t.Fatalf("the conflict says %+v", d.Conflict)
			}
			s.is(status)
			if len(s.ledger[s.attempt().ID]) != ledger {
				t.Fatal("a contradiction moved money")
			}
			if at := s.attempt().NextReconcileAt; at == nil || at.Sub(s.now) != 2*time.Second || !s.hasCase(1, domain.CaseConflict) {
				t.Fatalf("extra query %v, case %v", at, s.hasCase(1, domain.CaseConflict))
			}
			s.tick(2 * time.Second)
			verdict(t, s.poll(tt.first, clip), domain.VerdictUnchanged, "")
			if s.attempt().NextReconcileAt != nil || !s.hasCase(1, domain.CaseConflict) {
				t.Fatal("the extra query goes on, or it closed the case of a person")
			}
			verdict(t, s.webhook(tt.second, clip), domain.VerdictConflict, tt.kind)
			if s.attempt().NextReconcileAt != nil {
				t.Fatal("the extra query is asked twice")
			}
		})
	}
}

// TestExtraQueryFails: it is tried a few times, then the case alone stands.
func TestExtraQueryFails(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedFailed)
	s.webhook(domain.ObservedSucceeded, clip)
	tries := 0
	for s.attempt().NextReconcileAt != nil && tries < 50 {
		s.now = *s.attempt().NextReconcileAt
		s.queryFails(domain.QueryTransport, 0)
		tries++
	}
	if tries != 5 || !s.hasCase(1, domain.CaseConflict) {
		t.Fatalf("%d tries, case open %v", tries, s.hasCase(1, domain.CaseConflict))
	}
	s.is("failed")
}

// TestFailedQueryOfSettledAttempt: a query that was on its way when a delivery
// ended the attempt starts no new ones.
func TestFailedQueryOfSettledAttempt(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedSucceeded, clip)
	s.queryFails(domain.QueryTransport, 0)
	if s.attempt().Timer() != nil {
		t.Fatal("a settled attempt is asked about again")
	}
}

// TestThinContradiction: a name without a body is asked about once, and is a
// conflict only when the query says so.
func TestThinContradiction(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedFailed)
	d := s.webhook(domain.ObservedSucceeded, thin)
	verdict(t, d, domain.VerdictNeedsQuery, domain.ReasonThinEvent)
	if d.Attempt.NextReconcileAt == nil || d.Conflict != nil {
		t.Fatal("no extra query, or a conflict at once")
	}
	s.tick(2 * time.Second)
	verdict(t, s.poll(domain.ObservedSucceeded, clip), domain.VerdictConflict, domain.ConflictTerminal)
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedSucceeded, clip)
	later := []struct {
		name    string
		details []detail
		want    string
	}{
		{"an empty list", nil, "https://vendor.example/clip?sig=1"},
		{"a newly signed link", []detail{output("clip", "https://vendor.example/clip?sig=2")}, "https://vendor.example/clip?sig=2"},
		{"another output", []detail{output("other", "https://vendor.example/other")}, "https://vendor.example/clip?sig=2"},
	}
	for _, l := range later {
		verdict(t, s.poll(domain.ObservedSucceeded, l.details...), domain.VerdictUnchanged, "")
		if got := s.attempt().Outputs; len(got) != 1 || got[0].Ref != "clip" || got[0].URL != l.want {
			t.Errorf("after %s: %v", l.name, got)
		}
	}
}

// TestApplyChangesNothingInPlace: the caller's values stay as they were, down to
// the slices behind them.
func TestApplyChangesNothingInPlace(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedSucceeded, clip)
	task, attempt := s.task, s.attempt()
	links := slices.Clone(attempt.Outputs)
	s.poll(domain.ObservedSucceeded, output("clip", "https://vendor.example/clip?sig=2"))
	if attempt.Outputs[0] != links[0] || task.Phase != domain.PhaseProviderSucceeded {
		t.Fatal("Apply wrote through its arguments")
	}
}

func TestSuccessWithoutOutput(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	verdict(t, s.webhook(domain.ObservedSucceeded), domain.VerdictNeedsQuery, domain.ReasonOutputMissing)
	s.is("running")
	s.due(0)
	d := s.poll(domain.ObservedSucceeded)
	s.is("failed")
	if d.Task.Error.Code != domain.ClassOutputMissing || !d.Task.Error.Retryable || s.attempt().Timer() != nil {
		t.Fatalf("error %+v, timer %v", d.Task.Error, s.attempt().Timer())
	}
	s.money(1, domain.LedgerReserve, domain.LedgerRefund)
	verdict(t, s.poll(domain.ObservedSucceeded), domain.VerdictUnchanged, "")
	// The output turns up after all: kept for a person, who may adopt it.
	verdict(t, s.poll(domain.ObservedSucceeded, clip), domain.VerdictConflict, domain.ConflictTerminal)
}

// TestIdentity: news of another job never touches this one.
func TestIdentity(t *testing.T) {
	t.Parallel()
	strangers := map[string]detail{
		"attempt":   func(o *domain.Observation) { o.AttemptID = domain.AttemptID{ID: id(99)} },
		"vendor id": func(o *domain.Observation) { o.ProviderTaskID = "another job" },
		"vendor":    func(o *domain.Observation) { o.Provider = "another vendor" },
		"request":   func(o *domain.Observation) { o.ClientRequestID = "another request" },
	}
	for name, stranger := range strangers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			s.attempts[0].ClientRequestID = "our request"
			d := s.webhook(domain.ObservedSucceeded, clip, stranger)
			verdict(t, d, domain.VerdictIgnored, domain.ReasonIdentityMismatch)
			if d.AttemptChanged || !d.Recorded() {
				t.Fatal("it touched the attempt, or is not on the timeline")
			}
			// A query that answers for another job taught nothing: it counts as failed.
			s.poll(domain.ObservedSucceeded, clip, stranger)
			if s.attempt().PollFailures != 1 {
				t.Fatal("the query was not counted")
			}
			s.due(5 * time.Second)
		})
	}
}

// TestCorrections: a documented revision is taken while the task is open, signed
// and with a fresh number; everything else is a contradiction.
func TestCorrections(t *testing.T) {
	t.Parallel()
	revise := func(s *story, on bool, details ...detail) domain.Decision {
		in := observation(domain.SourceCorrection, domain.ObservedFailed, append([]detail{because(domain.ClassModerationOutput, "nsfw")}, details...))
		in.Policy.Corrections = on
		return s.do(in)
	}
	succeeded := func() *story {
		s := running(t, domain.LateSuccessKeep)
		s.webhook(domain.ObservedSucceeded, clip, numbered(5, domain.SequenceCounter))
		return s
	}
	s := succeeded()
	verdict(t, revise(s, true, numbered(6, domain.SequenceCounter)), domain.VerdictApplied, "")
	s.is("failed")
	s.money(1, domain.LedgerReserve, domain.LedgerRefund)

	verdict(t, revise(succeeded(), false), domain.VerdictConflict, domain.ConflictTerminal)
	verdict(t, revise(succeeded(), true, numbered(4, domain.SequenceCounter)), domain.VerdictConflict, domain.ConflictTerminal)
	verdict(t, revise(succeeded(), true, trust(domain.TrustBearer)), domain.VerdictIgnored, domain.ReasonNotTrusted)

	s = succeeded()
	s.ready()
	verdict(t, revise(s, true), domain.VerdictConflict, domain.ConflictTerminal)
	s.is("ready")
}

// TestWrongArguments: faults of the caller are errors, never verdicts.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	stranger := s.attempt()
	stranger.TaskID = domain.TaskID{ID: id(42)}
	if _, err := domain.Apply(s.task, stranger, domain.Input{Kind: domain.InputOverdue}, s.now); err == nil {
		t.Error("an attempt of another task was accepted")
	}
	incomplete := []domain.Input{
		{}, {Kind: "polish"}, {Kind: domain.InputObservation}, {Kind: domain.InputPollFailed}, {Kind: domain.InputRetryRequested},
		{Kind: domain.InputSubmitStarted, LeaseUntil: epoch}, {Kind: domain.InputSubmitReplayed, Lease: leaseMine},
		{Kind: domain.InputMediaReady},
		{Kind: domain.InputRetryRequested, NewAttempt: &domain.Attempt{}},
		{Kind: domain.InputRetryRequested, NewAttempt: &domain.Attempt{ID: s.attempt().ID}},
		{Kind: domain.InputResolution},
		{Kind: domain.InputResolution, Resolution: &domain.Resolution{Kind: domain.ResolveAbandon}}, // not audited
		resolution(domain.Resolution{Kind: "forgive"}),
		resolution(domain.Resolution{Kind: domain.ResolveCreatedWithID}),
		resolution(domain.Resolution{Kind: domain.ResolveAdopt}),
	}
	for _, in := range incomplete {
		d, err := domain.Apply(s.task, s.attempt(), in, s.now)
		if err == nil || d.Event != nil || d.Task.Version != 0 {
			t.Errorf("%+v: %v, %+v", in, err, d)
		}
	}
}

// TestStrangeWords: what an adapter lets through by mistake becomes no status, no
// trust and no public code.
func TestStrangeWords(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	verdict(t, s.poll("FINISHED"), domain.VerdictIgnored, domain.ReasonUnknownStatus)
	verdict(t, s.webhook("finished"), domain.VerdictNeedsQuery, domain.ReasonUnknownStatus)
	s.poll(domain.ObservedRunning)
	s.tick(time.Minute)
	verdict(t, s.do(observation("carrier pigeon", domain.ObservedFailed, []detail{trust("")})), domain.VerdictNeedsQuery, domain.ReasonNotTrusted)
	s.is("running")
	s.poll(domain.ObservedFailed, because("INTERNAL: gpu-17 at 10.0.0.3", "x"))
	if got := s.task.Error.Code; got != domain.ClassProvider {
		t.Fatalf("the public code is %q", got)
	}
	s = running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedSucceeded, clip)
	s.do(domain.Input{Kind: domain.InputMediaFailed, ErrorClass: "open /var/tmp/x: no space"})
	if got := s.task.Error.Code; got != domain.ClassMedia {
		t.Fatalf("the public code is %q", got)
	}
}
