package domain_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestBackoff(t *testing.T) {
	t.Parallel()
	i := domain.Interval{Base: 5 * time.Second, Cap: 2 * time.Minute}
	want := []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute, 2 * time.Minute}
	for n, d := range want {
		if got := i.Backoff(n); got != d {
			t.Errorf("n=%d: %s, want %s", n, got, d)
		}
	}
	if got := i.Backoff(1 << 40); got != 2*time.Minute {
		t.Errorf("a huge exponent gives %s", got)
	}
	if got := i.Backoff(-1); got != 5*time.Second {
		t.Errorf("a negative exponent gives %s", got)
	}
	if got := (domain.Interval{Base: time.Hour, Cap: time.Minute}).Backoff(0); got != time.Minute {
		t.Errorf("a base above the cap gives %s", got)
	}
}

// TestPollDelay is the table of specification 12.8.3, first and longest interval
// of each row.
func TestPollDelay(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name        string
		status      domain.AttemptStatus
		since       time.Duration
		old, late   bool
		first, last time.Duration
	}{
		{name: "just submitted", status: domain.AttemptSubmitted, since: 29 * time.Second, first: 2 * time.Second, last: 5 * time.Second},
		{name: "just submitted and already running", status: domain.AttemptRunning, since: time.Second, first: 2 * time.Second, last: 5 * time.Second},
		{name: "submitted and not heard of since", status: domain.AttemptSubmitted, since: 30 * time.Second, first: 10 * time.Second, last: 30 * time.Second},
		{name: "queued", status: domain.AttemptQueued, since: time.Minute, first: 10 * time.Second, last: 30 * time.Second},
		{name: "running", status: domain.AttemptRunning, since: time.Minute, first: 5 * time.Second, last: 15 * time.Second},
		{name: "overdue", status: domain.AttemptRunning, since: time.Hour, late: true, first: 2 * time.Minute, last: 10 * time.Minute},
		{name: "superseded", status: domain.AttemptRunning, since: time.Second, old: true, first: 10 * time.Minute, last: time.Hour},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			a := domain.Attempt{Status: tt.status, SubmittedAt: ago(tt.since), Overdue: tt.late}
			if got := domain.PollDelay(a, !tt.old, domain.DefaultPolicy(), now); got != tt.first {
				t.Errorf("first interval %s, want %s", got, tt.first)
			}
			a.PollCount = 50
			if got := domain.PollDelay(a, !tt.old, domain.DefaultPolicy(), now); got != tt.last {
				t.Errorf("longest interval %s, want %s", got, tt.last)
			}
		})
	}
}

func TestPolicyDefaults(t *testing.T) {
	t.Parallel()
	if got := (domain.Policy{}).WithDefaults(); got != domain.DefaultPolicy() {
		t.Errorf("the zero policy becomes %+v", got)
	}
	p := domain.Policy{CanCancel: true, Queued: domain.Interval{Base: time.Minute}, Running: domain.Interval{Cap: time.Hour}, UnknownAfter: 9}.WithDefaults()
	if p.Queued != (domain.Interval{Base: time.Minute, Cap: time.Minute}) {
		t.Errorf("a base alone gives %v: an interval without a cap would be a hot loop", p.Queued)
	}
	if p.Running != (domain.Interval{Base: 5 * time.Second, Cap: time.Hour}) || p.UnknownAfter != 9 || !p.CanCancel {
		t.Errorf("what was set is lost: %+v", p)
	}
}

// TestJitter: every interval is multiplied; the least gap and the vendor's wish
// are not.
func TestJitter(t *testing.T) {
	t.Parallel()
	for _, jitter := range []float64{0, 0.8, 1, 1.2} {
		s := running(t, domain.LateSuccessKeep)
		in := observation(domain.SourcePoll, domain.ObservedRunning, nil)
		in.Jitter = jitter
		s.do(in)
		factor := jitter
		if factor == 0 {
			factor = 1
		}
		s.due(time.Duration(float64(10*time.Second) * factor)) // the second query of the running row
	}
}

// TestVendorSaysWhenToAsk: openai-poll-after-ms and Retry-After on an answer.
func TestVendorSaysWhenToAsk(t *testing.T) {
	t.Parallel()
	for wish, want := range map[time.Duration]time.Duration{
		time.Minute:            time.Minute,
		100 * time.Millisecond: 2 * time.Second, // never closer than the least gap
	} {
		s := running(t, domain.LateSuccessKeep)
		in := observation(domain.SourcePoll, domain.ObservedRunning, nil)
		in.RetryAfter, in.Jitter = wish, 0.8
		s.do(in)
		s.due(want)
	}
}

func TestIntervalGrowsUntilSomethingHappens(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	for _, want := range []time.Duration{10 * time.Second, 15 * time.Second, 15 * time.Second} {
		s.poll(domain.ObservedRunning)
		s.due(want)
		s.tick(want)
	}
	s.poll(domain.ObservedRunning, percent(40)) // progress is news
	s.due(5 * time.Second)
}

// TestFailedQueries is specification 12.8.4: each class has its pace, and none is
// a verdict.
func TestFailedQueries(t *testing.T) {
	t.Parallel()
	tests := []struct {
		class domain.QueryClass
		wish  time.Duration
		waits []time.Duration
	}{
		{domain.QueryTransport, 0, []time.Duration{5 * time.Second, 10 * time.Second, 20 * time.Second, 40 * time.Second, 80 * time.Second, 2 * time.Minute, 2 * time.Minute}},
		{domain.QueryThrottled, 0, []time.Duration{15 * time.Second, 30 * time.Second, time.Minute, 2 * time.Minute, 4 * time.Minute, 5 * time.Minute}},
		{domain.QueryThrottled, 20 * time.Second, []time.Duration{20 * time.Second, 30 * time.Second}}, // the longer of both
		{domain.QueryThrottled, time.Hour, []time.Duration{time.Hour, time.Hour}},
		{domain.QueryAuth, 0, []time.Duration{5 * time.Second, 10 * time.Second}},
		{domain.QueryMalformed, 0, []time.Duration{5 * time.Second, 10 * time.Second}},
		{domain.QueryNotFound, 0, []time.Duration{5 * time.Second, 10 * time.Second}},
	}
	for _, tt := range tests {
		t.Run(string(tt.class)+" "+tt.wish.String(), func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			for i, want := range tt.waits {
				d := s.queryFails(tt.class, tt.wish)
				s.due(want)
				if unknown := i+1 >= domain.DefaultPolicy().UnknownAfter; unknown != (s.task.UnknownSince != nil) {
					t.Fatalf("after %d failures: unknown %v", i+1, !unknown)
				}
				if d.Attempt.Status != domain.AttemptRunning || d.Task.Phase != domain.PhaseRunning {
					t.Fatal("a failed query moved the state")
				}
				s.tick(want)
			}
			s.poll(domain.ObservedRunning)
			s.is("running")
			if got := s.attempt().PollFailures; got != 0 {
				t.Fatalf("%d failures are remembered after an answer", got)
			}
		})
	}
}

func TestUnknownIsOneEvent(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	events := 0
	for range 20 {
		if d := s.queryFails(domain.QueryTransport, 0); d.Event != nil {
			events++
		}
		s.tick(time.Minute)
	}
	if since := s.task.UnknownSince; events != 1 || since == nil {
		t.Fatalf("%d events, unknown since %v", events, since)
	}
	s.is("provider_status_unknown")
	s.webhook(domain.ObservedRunning) // a delivery is as good as an answer
	s.is("running")
}

// TestLateAnswerEndsUnknown: the vendor can be read again, even if the replica
// that answered is behind.
func TestLateAnswerEndsUnknown(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	for range 5 {
		s.queryFails(domain.QueryTransport, 0)
	}
	s.is("provider_status_unknown")
	s.poll(domain.ObservedQueued)
	s.is("running")
}

// TestNotFound: 404 is normal just after the submit; later it calls a person.
func TestNotFound(t *testing.T) {
	t.Parallel()
	s := submitted(t, domain.LateSuccessKeep)
	for range 10 {
		s.queryFails(domain.QueryNotFound, 0)
		s.tick(5 * time.Second)
	}
	s.is("queued")
	if s.attempt().PollFailures != 0 || s.hasCase(1, domain.CaseLost) {
		t.Fatal("a 404 within the grace counts")
	}
	s.due(0)
	s.tick(time.Minute)
	for range 5 {
		s.queryFails(domain.QueryNotFound, 0)
	}
	s.is("provider_status_unknown")
	if !s.hasCase(1, domain.CaseLost) {
		t.Fatal("nobody is told that the vendor does not know the job")
	}
	s.poll(domain.ObservedRunning)
	s.is("running")
	if s.hasCase(1, domain.CaseLost) {
		t.Fatal("the job was found and the case is still open")
	}
}

func TestUnknownWords(t *testing.T) {
	t.Parallel()
	t.Run("from queries, they make the status unknown and nothing more", func(t *testing.T) {
		t.Parallel()
		s := running(t, domain.LateSuccessKeep)
		for range 4 {
			verdict(t, s.poll(domain.ObservedNone), domain.VerdictIgnored, domain.ReasonUnknownStatus)
		}
		s.poll(domain.ObservedNone)
		s.is("provider_status_unknown")
		s.poll(domain.ObservedSucceeded, clip)
		s.is("provider_succeeded")
	})
	t.Run("a known word starts the count anew", func(t *testing.T) {
		t.Parallel()
		s := running(t, domain.LateSuccessKeep)
		for range 4 {
			s.poll(domain.ObservedNone)
		}
		s.poll(domain.ObservedRunning)
		s.poll(domain.ObservedNone)
		s.is("running")
	})
	t.Run("from a delivery, one asks", func(t *testing.T) {
		t.Parallel()
		s := running(t, domain.LateSuccessKeep)
		verdict(t, s.webhook(domain.ObservedNone), domain.VerdictNeedsQuery, domain.ReasonUnknownStatus)
		s.due(0)
		if d := s.webhook(domain.ObservedNone); d.AttemptChanged || d.Recorded() {
			t.Fatal("the second one was written")
		}
	})
}

// TestRefusedNewsPutsNothingOff: only news that was taken replaces a query.
func TestRefusedNewsPutsNothingOff(t *testing.T) {
	t.Parallel()
	tests := map[string]func(*story) domain.Decision{
		"regressive": func(s *story) domain.Decision { return s.webhook(domain.ObservedQueued) },
		"old number": func(s *story) domain.Decision {
			return s.webhook(domain.ObservedRunning, numbered(1, domain.SequenceCounter))
		},
		"thin": func(s *story) domain.Decision { return s.webhook(domain.ObservedRunning, thin) },
	}
	for name, replay := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			s.webhook(domain.ObservedRunning, numbered(5, domain.SequenceCounter))
			due := *s.attempt().NextPollAt
			s.tick(time.Second)
			if d := replay(s); d.Verdict.Kind != domain.VerdictIgnored || !d.Attempt.NextPollAt.Equal(due) {
				t.Fatalf("%v: the query due at %s is now due at %s", d.Verdict, due, d.Attempt.NextPollAt)
			}
		})
	}
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedRunning)
	s.due(5 * time.Second) // taken: deliveries arrive, so there is no hurry to ask
}

func TestOverdue(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.tick(time.Hour)
	d := s.do(domain.Input{Kind: domain.InputOverdue})
	s.is("running")
	s.due(2 * time.Minute)
	if !s.hasCase(1, domain.CaseOverdue) || !d.Attempt.Overdue {
		t.Fatal("nobody is told")
	}
	if d := s.do(domain.Input{Kind: domain.InputOverdue}); d.AttemptChanged || len(d.OpenCases) > 0 {
		t.Fatal("told twice")
	}
	s.poll(domain.ObservedSucceeded, clip)
	if s.hasCase(1, domain.CaseOverdue) {
		t.Fatal("the case outlives its reason")
	}
}

// TestQueryOfAnother: an answer under an old lease is news, but moves no timer.
func TestQueryOfAnother(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.attempts[0].PollLease = leaseMine
	due := *s.attempt().NextPollAt
	in := observation(domain.SourcePoll, domain.ObservedRunning, []detail{percent(30)})
	in.Lease = leaseOther
	d := s.do(in)
	verdict(t, d, domain.VerdictApplied, "")
	if d.Attempt.PollLease != leaseMine || !d.Attempt.NextPollAt.Equal(due) {
		t.Fatal("a late answer took the lease or the timer of another query")
	}
	fails := domain.Input{Kind: domain.InputPollFailed, Lease: leaseOther, QueryError: &domain.QueryError{Class: domain.QueryTransport}}
	if d := s.do(fails); d.AttemptChanged {
		t.Fatal("a late failure was counted")
	}
	in.Lease = leaseMine
	if d := s.do(in); !d.Attempt.PollLease.IsZero() {
		t.Fatal("the answer does not give the lease back")
	}
}

// TestNotedFailures: of a streak of failed queries the first and the one that
// makes the status unknown stand on the timeline, and so does what calls a person.
func TestNotedFailures(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	fail := func() domain.Decision {
		return s.do(domain.Input{Kind: domain.InputPollFailed, QueryError: &domain.QueryError{Class: domain.QueryTransport}})
	}
	for n := 1; n <= 7; n++ {
		d := fail()
		if want := n == 1 || n == 5; d.Recorded() != want || d.Source != domain.SourcePoll {
			t.Errorf("failure %d: recorded %v, source %s", n, d.Recorded(), d.Source)
		}
	}
	s.poll(domain.ObservedRunning)
	if d := fail(); !d.Recorded() {
		t.Error("the first failure of the next streak is not recorded")
	}
	if d := s.do(domain.Input{Kind: domain.InputOverdue}); !d.Recorded() {
		t.Error("overdue is not recorded")
	}
	if d := s.do(domain.Input{Kind: domain.InputOverdue}); d.Recorded() {
		t.Error("overdue is recorded twice")
	}
}

// TestOverdueBeforeTheVendorTookIt: the wait calls a person, and the run is
// measured anew once the vendor has the job.
func TestOverdueBeforeTheVendorTookIt(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	s.do(domain.Input{Kind: domain.InputOverdue})
	if !s.hasCase(1, domain.CaseOverdue) || s.attempt().NextSubmitAt == nil {
		t.Fatalf("attempt %+v", s.attempt())
	}
	s.submit()
	if a := s.attempt(); s.hasCase(1, domain.CaseOverdue) || a.Overdue || a.SubmittedAt == nil {
		t.Errorf("attempt %+v", a)
	}
}
