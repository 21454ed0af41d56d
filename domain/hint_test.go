package domain_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestHintAsksAtOnce(t *testing.T) {
	t.Parallel()
	for _, level := range []domain.Trust{domain.TrustReplayable, domain.TrustEnvelope, domain.TrustBearer, ""} {
		s := running(t, domain.LateSuccessKeep)
		verdict(t, s.webhook(domain.ObservedSucceeded, clip, trust(level)), domain.VerdictNeedsQuery, domain.ReasonNotTrusted)
		s.is("running")
		s.due(0)
		s.poll(domain.ObservedSucceeded, clip)
		s.is("provider_succeeded")
	}
}

// TestHintFlood: whoever knows the URL can shout; only the first shout of each
// query is written.
func TestHintFlood(t *testing.T) {
	t.Parallel()
	flood := map[string]func(*testing.T) *story{
		"at the vendor": func(t *testing.T) *story { return running(t, domain.LateSuccessKeep) },
		"not sent yet":  func(t *testing.T) *story { return begin(t, domain.LateSuccessKeep) },
		"unknown submit": func(t *testing.T) *story {
			s := begin(t, domain.LateSuccessKeep)
			s.policy.CanLookup = true
			s.unknownSubmit()
			return s
		},
	}
	for name, prepare := range flood {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := prepare(t)
			if d := s.hint(domain.ObservedSucceeded); !d.AttemptChanged {
				t.Fatal("the first hint is lost")
			}
			for i := range 100 {
				s.tick(50 * time.Millisecond)
				if d := s.hint(domain.ObservedSucceeded); d.AttemptChanged || d.TaskChanged || d.Recorded() {
					t.Fatalf("hint %d is written", i+2)
				}
			}
		})
	}
	t.Run("superseded", func(t *testing.T) {
		t.Parallel()
		s := supersededRunning(t)
		bearer := observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{trust(domain.TrustBearer)})
		if d := s.on(1, bearer); !d.Attempt.NextReconcileAt.Equal(s.now) {
			t.Fatal("the first hint is lost")
		}
		for range 100 {
			s.tick(50 * time.Millisecond)
			if d := s.on(1, bearer); d.AttemptChanged {
				t.Fatal("a repeated hint is written")
			}
		}
	})
}

// supersededRunning is a story in which attempt 1 runs at the vendor and attempt
// 2 is the task's.
func supersededRunning(t *testing.T) *story {
	t.Helper()
	s := begin(t, domain.LateSuccessKeep)
	s.unknownSubmit()
	s.do(s.retryInput(true))
	s.on(1, observation(domain.SourceWebhook, domain.ObservedRunning, nil))
	return s
}

func TestHintKeepsTheLeastGap(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.poll(domain.ObservedRunning)
	s.tick(500 * time.Millisecond)
	s.hint(domain.ObservedSucceeded)
	s.due(1500 * time.Millisecond)
}

func TestHintClaimsSomethingNew(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	for _, status := range []domain.Observed{domain.ObservedQueued, domain.ObservedRunning, domain.ObservedNone} {
		if d := s.hint(status); d.AttemptChanged || d.Verdict.Kind != domain.VerdictIgnored {
			t.Errorf("%q: %v", status, d.Verdict)
		}
	}
	s.poll(domain.ObservedSucceeded, clip)
	if d := s.hint(domain.ObservedFailed); d.AttemptChanged || d.Conflict != nil {
		t.Error("a shout about a settled attempt costs a query or a conflict")
	}
}

// TestOlderQueryDoesNotAnswerHint: the query was on its way when the delivery
// came, so its answer is from before.
func TestOlderQueryDoesNotAnswerHint(t *testing.T) {
	t.Parallel()
	answers := map[string]func(*story, time.Time) domain.Decision{
		"an answer": func(s *story, began time.Time) domain.Decision {
			in := observation(domain.SourcePoll, domain.ObservedRunning, nil)
			in.QueryStartedAt, in.RetryAfter = began, time.Minute
			return s.do(in)
		},
		"a failure": func(s *story, began time.Time) domain.Decision {
			return s.do(domain.Input{Kind: domain.InputPollFailed, QueryStartedAt: began, QueryError: &domain.QueryError{Class: domain.QueryTransport}})
		},
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			began := s.now
			s.tick(time.Second)
			s.hint(domain.ObservedSucceeded)
			s.tick(500 * time.Millisecond)
			answer(s, began)
			s.due(500 * time.Millisecond) // two seconds after the older query began
			if s.attempt().PollHintAt == nil {
				t.Fatal("the hint is forgotten")
			}
			s.tick(time.Second)
			s.poll(domain.ObservedRunning) // began after the hint
			if s.attempt().PollHintAt != nil {
				t.Fatal("the hint outlives its answer")
			}
			if at := s.attempt().NextPollAt; at.Sub(s.now) < 5*time.Second {
				t.Fatalf("the next query is in %s", at.Sub(s.now))
			}
		})
	}
}

// TestHintDuringFailures: a new hint breaks into the back-off once per query; a
// vendor that says when to come back is left alone.
func TestHintDuringFailures(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.hint(domain.ObservedSucceeded)
	s.tick(time.Second)
	s.queryFails(domain.QueryTransport, 0) // began after the hint: it is tried again at the usual pace
	s.due(5 * time.Second)

	s = running(t, domain.LateSuccessKeep)
	began := s.now
	s.tick(time.Second)
	s.hint(domain.ObservedSucceeded)
	s.do(domain.Input{Kind: domain.InputPollFailed, QueryStartedAt: began, QueryError: &domain.QueryError{Class: domain.QueryThrottled, RetryAfter: time.Minute}})
	s.due(time.Minute)
}

// TestOverdueDoesNotPutOffHint: going slow is for queries that nobody asked for.
func TestOverdueDoesNotPutOffHint(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.hint(domain.ObservedSucceeded)
	s.do(domain.Input{Kind: domain.InputOverdue})
	s.due(0)
}

// TestHintBeforeTheIdIsKnown: it waits for the id, or brings the lookup forward.
func TestHintBeforeTheIdIsKnown(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	s.start()
	s.webhook(domain.ObservedSucceeded, trust(domain.TrustBearer))
	s.tick(10 * time.Second)
	s.do(domain.Input{Kind: domain.InputSubmitAccepted, Lease: leaseMine, ProviderTaskID: "job"})
	s.due(0)

	s = begin(t, domain.LateSuccessKeep)
	s.policy.CanLookup = true
	s.unknownSubmit()
	s.tick(time.Second)
	d := s.hint(domain.ObservedSucceeded)
	verdict(t, d, domain.VerdictNeedsQuery, domain.ReasonNotTrusted)
	if !d.Attempt.NextReconcileAt.Equal(s.now) {
		t.Fatal("the lookup was not brought forward")
	}
}

// TestOlderLookupDoesNotAnswerHint: the same for an unknown submit, even when the
// vendor is thought to have forgotten the job.
func TestOlderLookupDoesNotAnswerHint(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	s.policy.CanLookup = true
	s.unknownSubmit()
	s.tick(2 * time.Hour)
	began := s.now
	s.tick(time.Second)
	s.hint(domain.ObservedSucceeded)
	failed := domain.Input{Kind: domain.InputLookupFailed, QueryStartedAt: began}
	if at := s.do(failed).Attempt.NextReconcileAt; at == nil || !at.Equal(began.Add(2*time.Second)) {
		t.Fatalf("the next lookup is at %v", at)
	}
	s.tick(time.Second)
	if at := s.do(domain.Input{Kind: domain.InputLookupFailed}).Attempt.NextReconcileAt; at != nil {
		t.Fatalf("lookups go on after the vendor's retention, at %v", at)
	}
}
