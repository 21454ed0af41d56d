package domain_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// TestFieldReports replays what consumers of such vendors have really met. Each
// case starts with a job that is running, and says where the task must stand.
func TestFieldReports(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		play   func(*story)
		status domain.Status
		class  domain.ErrorClass
		code   string
		last   domain.LedgerType
	}{
		// Where the verdict hides.
		{"finished in the queue, and the result is an error with details", func(s *story) {
			s.poll(domain.ObservedFailed, because(domain.ClassInvalidInput, "422 value_error"))
		}, "failed", domain.ClassInvalidInput, "422 value_error", domain.LedgerRefund},
		{"a queue word that nobody knows", func(s *story) {
			s.poll(domain.ObservedNone)
		}, "running", "", "", domain.LedgerReserve},
		{"a failure that gives its reason only in the body", func(s *story) {
			s.webhook(domain.ObservedFailed, thin)
			s.poll(domain.ObservedFailed, because(domain.ClassProvider, "E1042"))
		}, "failed", domain.ClassProvider, "E1042", domain.LedgerRefund},
		{"a failure without any reason", func(s *story) {
			s.poll(domain.ObservedFailed)
		}, "failed", domain.ClassProvider, "", domain.LedgerRefund},
		{"filtered once, passes when tried again", func(s *story) {
			s.poll(domain.ObservedFailed, because(domain.ClassModerationOutput, "audio"))
			if !s.task.Error.Retryable {
				s.t.Fatal("a filter's mood is not the input's fault")
			}
			s.do(s.retryInput(false))
			s.submit()
			s.poll(domain.ObservedSucceeded, clip)
			s.ready()
		}, "ready", "", "", domain.LedgerSettle},
		{"completed, and no link anywhere", func(s *story) {
			s.poll(domain.ObservedSucceeded)
			if s.attempt().Timer() != nil {
				s.t.Fatal("it is asked about for ever")
			}
		}, "failed", domain.ClassOutputMissing, "", domain.LedgerRefund},
		{"done by delivery, its link unusable, and the query agrees", func(s *story) {
			s.webhook(domain.ObservedSucceeded)
			s.poll(domain.ObservedSucceeded)
		}, "failed", domain.ClassOutputMissing, "", domain.LedgerRefund},
		{"done by delivery in an odd shape, and the query has the link", func(s *story) {
			s.webhook(domain.ObservedSucceeded)
			s.poll(domain.ObservedSucceeded, clip)
			s.ready()
		}, "ready", "", "", domain.LedgerSettle},

		// Twice, and again.
		{"stored, rolled back and delivered again", func(s *story) {
			in := observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{clip})
			lost, err := domain.Apply(s.task, s.attempt(), in, s.now) // its transaction fails
			if err != nil {
				s.t.Fatal(err)
			}
			if d := s.do(in); d.Verdict != lost.Verdict || d.Task.Version != lost.Task.Version {
				s.t.Fatal("the second delivery is taken for a repetition of what was never stored")
			}
		}, "provider_succeeded", "", "", domain.LedgerReserve},
		{"signed for ever: an old delivery played again", func(s *story) {
			s.webhook(domain.ObservedSucceeded, clip, trust(domain.TrustReplayable))
			s.poll(domain.ObservedRunning)
		}, "running", "", "", domain.LedgerReserve},
		{"the same completion twice, because we answered slowly", func(s *story) {
			s.webhook(domain.ObservedSucceeded, clip)
			verdict(s.t, s.webhook(domain.ObservedSucceeded, clip), domain.VerdictUnchanged, "")
			s.ready()
			verdict(s.t, s.webhook(domain.ObservedSucceeded, clip), domain.VerdictUnchanged, "")
		}, "ready", "", "", domain.LedgerSettle},

		// In any order.
		{"failed, then what was sent before", func(s *story) {
			s.webhook(domain.ObservedFailed)
			verdict(s.t, s.webhook(domain.ObservedQueued), domain.VerdictIgnored, domain.ReasonTerminalAbsorbing)
			verdict(s.t, s.webhook(domain.ObservedRunning), domain.VerdictIgnored, domain.ReasonTerminalAbsorbing)
		}, "failed", domain.ClassProvider, "", domain.LedgerRefund},
		{"a failure after the success", func(s *story) {
			s.webhook(domain.ObservedSucceeded, clip)
			s.ready()
			verdict(s.t, s.webhook(domain.ObservedFailed), domain.VerdictConflict, domain.ConflictTerminal)
			if s.attempt().NextReconcileAt == nil {
				s.t.Fatal("the vendor is not asked")
			}
		}, "ready", "", "", domain.LedgerSettle},
		{"an older status, minutes after the newer", func(s *story) {
			s.tick(10 * time.Minute)
			verdict(s.t, s.webhook(domain.ObservedQueued), domain.VerdictIgnored, domain.ReasonRegressiveStatus)
		}, "running", "", "", domain.LedgerReserve},
		{"started, after it was terminated", func(s *story) {
			s.poll(domain.ObservedCanceled)
			if d := s.webhook(domain.ObservedRunning); !d.Recorded() {
				s.t.Fatal("it is not on the timeline")
			}
		}, "canceled", "", "", domain.LedgerRefund},
		{"events in any order: each one only asks for the truth", func(s *story) {
			s.webhook(domain.ObservedFailed, thin)
			s.webhook(domain.ObservedSucceeded, thin)
			s.poll(domain.ObservedSucceeded, clip)
		}, "provider_succeeded", "", "", domain.LedgerReserve},
		{"the start of a job that never started", func(s *story) {
			s.webhook(domain.ObservedRunning)
			s.poll(domain.ObservedFailed, because(domain.ClassUnavailable, "no worker"))
		}, "failed", domain.ClassUnavailable, "no worker", domain.LedgerRefund},
		{"asked for by a name that the vendor does not use", func(s *story) {
			for range 8 {
				s.tick(time.Minute)
				s.queryFails(domain.QueryNotFound, 0)
			}
			if !s.hasCase(1, domain.CaseLost) {
				s.t.Fatal("nobody is told")
			}
			s.webhook(domain.ObservedSucceeded, clip) // meanwhile the real job went on
		}, "provider_succeeded", "", "", domain.LedgerReserve},

		// Queries that fail are not jobs that fail.
		{"one bad gateway, and the job was fine", func(s *story) {
			s.queryFails(domain.QueryTransport, 0)
			s.poll(domain.ObservedSucceeded, clip)
		}, "provider_succeeded", "", "", domain.LedgerReserve},
		{"a blip", func(s *story) {
			s.queryFails(domain.QueryThrottled, 0)
			s.poll(domain.ObservedRunning)
		}, "running", "", "", domain.LedgerReserve},
		{"a job that failed within seconds ends within seconds", func(s *story) {
			s.queryFails(domain.QueryTransport, 0)
			s.poll(domain.ObservedFailed, because(domain.ClassModerationInput, "policy"))
		}, "failed", domain.ClassModerationInput, "policy", domain.LedgerRefund},
		{"our key is refused, again and again", func(s *story) {
			for range 12 {
				s.queryFails(domain.QueryAuth, 0)
			}
		}, "provider_status_unknown", "", "", domain.LedgerReserve},
		{"throttled for an hour, then done", func(s *story) {
			for range 12 {
				s.queryFails(domain.QueryThrottled, 5*time.Minute)
				s.due(5 * time.Minute)
				s.tick(5 * time.Minute)
			}
			s.poll(domain.ObservedSucceeded, clip)
		}, "provider_succeeded", "", "", domain.LedgerReserve},
		{"longer than anybody wants to wait: still running, never sent again", func(s *story) {
			s.tick(2 * time.Hour)
			s.do(domain.Input{Kind: domain.InputOverdue})
			if err := s.refused(s.retryInput(true)); !errors.Is(err, domain.ErrNotRetryable) {
				s.t.Fatal(err)
			}
		}, "running", "", "", domain.LedgerReserve},
		{"done after days", func(s *story) {
			s.do(domain.Input{Kind: domain.InputOverdue})
			s.tick(72 * time.Hour)
			s.poll(domain.ObservedSucceeded, clip)
			s.ready()
		}, "ready", "", "", domain.LedgerSettle},
		{"the query fails until the link has expired", func(s *story) {
			for range 30 {
				s.queryFails(domain.QueryTransport, 0)
				s.tick(2 * time.Minute)
			}
			s.poll(domain.ObservedSucceeded, clip)
			s.do(domain.Input{Kind: domain.InputMediaFailed, ErrorClass: domain.ClassOutputExpired})
		}, "failed", domain.ClassOutputExpired, "", domain.LedgerRefund},
		{"an answer that cannot be read", func(s *story) {
			for range 5 {
				s.queryFails(domain.QueryMalformed, 0)
			}
			s.webhook(domain.ObservedRunning, percent(40))
		}, "running", "", "", domain.LedgerReserve},

		// Money.
		{"our patience ends and the vendor's bill comes", func(s *story) {
			for range 20 {
				s.queryFails(domain.QueryTransport, 0)
				s.tick(10 * time.Minute)
			}
			s.do(domain.Input{Kind: domain.InputOverdue})
			s.money(1, domain.LedgerReserve)
			s.poll(domain.ObservedSucceeded, clip)
			s.ready()
		}, "ready", "", "", domain.LedgerSettle},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(t, domain.LateSuccessKeep)
			tt.play(s)
			s.is(tt.status)
			if tt.class != "" && s.task.Error.Code != tt.class {
				t.Errorf("error %s, want %s", s.task.Error.Code, tt.class)
			}
			if got := s.attempt().ErrorCode; got != tt.code {
				t.Errorf("the vendor's code is %q, want %q", got, tt.code)
			}
			ledger := s.ledger[s.attempt().ID]
			if got := ledger[len(ledger)-1]; got != tt.last {
				t.Errorf("the last entry is %s, want %s", got, tt.last)
			}
		})
	}
}

// TestReportsOfSubmits replays reports about the moments around a submit.
func TestReportsOfSubmits(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		play   func(*story)
		status domain.Status
	}{
		{"not found, right after the submit", func(s *story) {
			s.submit()
			for range 5 {
				s.tick(2 * time.Second)
				s.queryFails(domain.QueryNotFound, 0)
			}
		}, "queued"},
		{"the callback comes before anything of ours", func(s *story) {
			s.webhook(domain.ObservedSucceeded, clip)
		}, "provider_succeeded"},
		{"the response to the submit already holds the link", func(s *story) {
			s.submit()
			s.do(observation(domain.SourceSubmit, domain.ObservedSucceeded, []detail{clip}))
		}, "provider_succeeded"},
		{"the response holds only an id", func(s *story) { s.submit() }, "queued"},
		{"the response is a failure", func(s *story) {
			s.submit()
			s.do(observation(domain.SourceSubmit, domain.ObservedFailed, []detail{because(domain.ClassInvalidInput, "size")}))
		}, "failed"},
		{"the answer is lost, and trying again would bill twice", func(s *story) {
			s.unknownSubmit()
			if err := s.refused(s.retryInput(false)); !errors.Is(err, domain.ErrPossibleDuplicate) {
				s.t.Fatal(err)
			}
			verdict(s.t, s.start(), domain.VerdictIgnored, domain.ReasonNotSubmittable)
		}, "provider_status_unknown"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := begin(t, domain.LateSuccessKeep)
			tt.play(s)
			s.is(tt.status)
		})
	}
}
