package domain_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestRetry(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.do(wish)
	s.webhook(domain.ObservedFailed, because(domain.ClassProvider, "boom"))
	version := s.task.Version
	d := s.do(s.retryInput(false))
	if d.NewAttempt.No != 2 || d.NewAttempt.Status != domain.AttemptCreated || !d.NewAttempt.NextSubmitAt.Equal(s.now) {
		t.Fatalf("new attempt %+v", d.NewAttempt)
	}
	if task := s.task; task.Version != version+1 || task.Status() != "queued" || task.Stage != domain.StageSubmitting || task.Error != nil || task.TerminalAt != nil || task.Cancel != domain.CancelNone || task.AttemptCount != 2 {
		t.Fatalf("task %+v", task)
	}
	s.money(1, domain.LedgerReserve, domain.LedgerRefund)
	s.money(2, domain.LedgerReserve)
	if s.attempts[0].Status != domain.AttemptFailed || s.attempts[0].ErrorCode != "boom" {
		t.Fatal("the old attempt lost its facts")
	}
}

func TestRetryRefusals(t *testing.T) {
	t.Parallel()
	abandoned := func(t *testing.T) *story {
		s := running(t, domain.LateSuccessKeep)
		s.do(resolution(domain.Resolution{Kind: domain.ResolveAbandon}))
		return s
	}
	unknown := func(t *testing.T) *story {
		s := begin(t, domain.LateSuccessKeep)
		s.unknownSubmit()
		return s
	}
	tests := []struct {
		name    string
		prepare func(*testing.T) *story
		accept  bool
		want    error
	}{
		{"still running", func(t *testing.T) *story { return running(t, domain.LateSuccessKeep) }, true, domain.ErrNotRetryable},
		{"not sent", func(t *testing.T) *story { return begin(t, domain.LateSuccessKeep) }, true, domain.ErrNotRetryable},
		{"ready", func(t *testing.T) *story {
			s := running(t, domain.LateSuccessKeep)
			s.webhook(domain.ObservedSucceeded, clip)
			s.ready()
			return s
		}, true, domain.ErrNotRetryable},
		{"unknown submit", unknown, false, domain.ErrPossibleDuplicate},
		{"unknown submit, accepted", unknown, true, nil},
		{"abandoned: the vendor may still be at it", abandoned, false, domain.ErrPossibleDuplicate},
		{"abandoned, accepted", abandoned, true, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tt.prepare(t)
			_, err := s.apply(s.current(), s.retryInput(tt.accept))
			if !errors.Is(err, tt.want) {
				t.Fatalf("%v, want %v", err, tt.want)
			}
		})
	}
}

// TestSupersededAttempt is specification 12.7.3: its late news is kept, its cost
// is closed, and the task does not move.
func TestSupersededAttempt(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name   string
		news   domain.Input
		status domain.AttemptStatus
		money  []domain.LedgerType
	}{
		{"succeeded", observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{clip}), domain.AttemptSucceeded, []domain.LedgerType{domain.LedgerReserve, domain.LedgerSettle}},
		{"failed", observation(domain.SourcePoll, domain.ObservedFailed, nil), domain.AttemptFailed, []domain.LedgerType{domain.LedgerReserve, domain.LedgerRefund}},
		{"canceled", observation(domain.SourcePoll, domain.ObservedCanceled, nil), domain.AttemptCanceled, []domain.LedgerType{domain.LedgerReserve, domain.LedgerRefund}},
		{"empty", observation(domain.SourcePoll, domain.ObservedSucceeded, nil), domain.AttemptFailed, []domain.LedgerType{domain.LedgerReserve, domain.LedgerRefund}},
		{"closed by a person", resolution(domain.Resolution{Kind: domain.ResolveCloseCost, Closing: domain.ClosingSettled}), domain.AttemptFailed, []domain.LedgerType{domain.LedgerReserve, domain.LedgerSettle}},
		{"abandoned by a person", resolution(domain.Resolution{Kind: domain.ResolveAbandon}), domain.AttemptFailed, []domain.LedgerType{domain.LedgerReserve, domain.LedgerRefund}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := supersededRunning(t)
			if a := s.attempts[0]; a.NextPollAt != nil || a.NextReconcileAt.Sub(s.now) != 10*time.Minute || !s.hasCase(1, domain.CaseCost) {
				t.Fatalf("polls %v, slow loop %v", a.NextPollAt, a.NextReconcileAt)
			}
			task := s.task
			d := s.on(1, tt.news)
			verdict(t, d, domain.VerdictIgnored, domain.ReasonStaleAttempt)
			if d.Task != task || !d.Recorded() || len(d.Operations) > 0 {
				t.Fatal("an old attempt moved the task, or is not on the timeline")
			}
			if s.attempts[0].Status != tt.status || s.attempts[0].Timer() != nil || s.hasCase(1, domain.CaseCost) {
				t.Fatalf("%s, timer %v, cost case %v", s.attempts[0].Status, s.attempts[0].Timer(), s.hasCase(1, domain.CaseCost))
			}
			s.money(1, tt.money...)
			s.money(2, domain.LedgerReserve)
		})
	}
}

// TestSupersededBeforeSent: an attempt that lost its task before it was sent is
// never sent.
func TestSupersededBeforeSent(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedFailed)
	s.do(s.retryInput(false))
	s.on(1, resolution(domain.Resolution{Kind: domain.ResolveAdopt, Outputs: firstLinks}))
	d := s.on(2, domain.Input{Kind: domain.InputSubmitStarted, Lease: leaseMine, LeaseUntil: s.now.Add(time.Minute)})
	verdict(t, d, domain.VerdictIgnored, domain.ReasonNotSubmittable)
	if a := s.attempts[1]; a.Status != domain.AttemptCanceled || a.ErrorClass != domain.ClassCanceled || a.Timer() != nil {
		t.Fatalf("attempt 2 is %s", a.Status)
	}
	s.money(2, domain.LedgerReserve, domain.LedgerRefund)
}

// TestCommandsAboutOldAttempts are refused.
func TestCommandsAboutOldAttempts(t *testing.T) {
	t.Parallel()
	s := supersededRunning(t)
	for _, in := range []domain.Input{wish, s.retryInput(true)} {
		if _, err := s.apply(0, in); !errors.Is(err, domain.ErrInvalidTransition) {
			t.Errorf("%s: %v", in.Kind, err)
		}
	}
}

// TestAdoptAfterRefund: the result of a failed attempt is taken after all; its
// refund stands, and an adjust charges it when the file is there (I9).
func TestAdoptAfterRefund(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedFailed)
	d := s.webhook(domain.ObservedSucceeded, clip)
	s.do(resolution(domain.Resolution{Kind: domain.ResolveAdopt, Outputs: d.Conflict.Outputs}))
	s.is("provider_succeeded")
	if s.task.Error != nil || s.task.TerminalAt != nil || s.hasCase(1, domain.CaseConflict) || s.attempt().Status != domain.AttemptSucceeded {
		t.Fatalf("task %+v", s.task)
	}
	s.money(1, domain.LedgerReserve, domain.LedgerRefund)
	ready := s.ready()
	s.is("ready")
	s.money(1, domain.LedgerReserve, domain.LedgerRefund, domain.LedgerAdjust)
	if l := ready.Ledger[0]; l.ActionID.IsZero() || l.Credits != 7 {
		t.Fatalf("adjust %+v", l)
	}
	if err := s.refused(resolution(domain.Resolution{Kind: domain.ResolveAdopt, Outputs: firstLinks})); !errors.Is(err, domain.ErrInvalidTransition) {
		t.Fatalf("a delivered result was exchanged: %v", err)
	}
}

// TestAdoptOldAttempt: a person prefers the first attempt's late result to the
// second attempt, which is then followed for its cost.
func TestAdoptOldAttempt(t *testing.T) {
	t.Parallel()
	s := supersededRunning(t)
	s.on(2, domain.Input{Kind: domain.InputSubmitStarted, Lease: leaseMine, LeaseUntil: s.now.Add(time.Minute)})
	s.on(1, observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{clip}))
	d := s.on(1, resolution(domain.Resolution{Kind: domain.ResolveAdopt}))
	if s.task.CurrentAttemptID != s.attempts[0].ID || len(d.Operations) != 1 || !d.Operations[0].Restart || d.Event.Source != domain.SourceOperator {
		t.Fatalf("operations %v", d.Operations)
	}
	s.money(1, domain.LedgerReserve, domain.LedgerSettle) // paid as a superseded one
	s.on(2, domain.Input{Kind: domain.InputSubmitAccepted, Lease: leaseMine, ProviderTaskID: "job2"})
	if a := s.attempts[1]; a.NextPollAt != nil || a.NextReconcileAt == nil {
		t.Fatal("the attempt that lost its task is still polled at full pace, or not at all")
	}
	s.ready()
	s.is("ready")
	s.money(1, domain.LedgerReserve, domain.LedgerSettle) // not twice
	other := observation(domain.SourcePoll, domain.ObservedSucceeded, []detail{clip})
	other.Observation.ProviderTaskID = "job2"
	s.on(2, other)
	s.is("ready")
	s.money(2, domain.LedgerReserve, domain.LedgerSettle)
}

// TestMedia: ready only with the file, paid only then; a lost file is a failure
// that can be retried.
func TestMedia(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	d := s.webhook(domain.ObservedSucceeded, clip)
	if len(d.Operations) != 1 || d.Operations[0].Type != domain.OperationFetchOutput || d.Operations[0].Restart {
		t.Fatalf("operations %v", d.Operations)
	}
	for _, stage := range []domain.Stage{domain.StageFetching, domain.StageValidating, domain.StagePublishing} {
		s.do(domain.Input{Kind: domain.InputMediaStage, Stage: stage})
		s.is("processing_media")
		if s.task.Stage != stage {
			t.Fatalf("stage %s, want %s", s.task.Stage, stage)
		}
	}
	s.money(1, domain.LedgerReserve)
	s.ready()
	s.money(1, domain.LedgerReserve, domain.LedgerSettle)
	verdict(t, s.ready(), domain.VerdictIgnored, domain.ReasonTerminalAbsorbing)

	s = running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedSucceeded, clip)
	s.do(domain.Input{Kind: domain.InputMediaFailed, ErrorClass: domain.ClassOutputExpired})
	s.is("failed")
	if s.task.Error.Code != domain.ClassOutputExpired {
		t.Fatalf("error %v", s.task.Error)
	}
	s.money(1, domain.LedgerReserve, domain.LedgerRefund)
	verdict(t, s.ready(), domain.VerdictIgnored, domain.ReasonTerminalAbsorbing)
	s.do(s.retryInput(false))
	s.is("queued")
}

// TestSupersededUnknownSubmit: nobody knows whether it runs, so it is looked at
// slowly and a person may close its cost.
func TestSupersededUnknownSubmit(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	s.unknownSubmit()
	s.do(s.retryInput(true))
	if at := s.attempts[0].NextReconcileAt; at == nil || at.Sub(s.now) != 10*time.Minute {
		t.Fatalf("the old attempt is looked at again at %v", at)
	}
	if !s.hasCase(1, domain.CaseCost) || s.hasCase(1, domain.CaseSubmitUnknown) {
		t.Fatal("its case is not the one about its cost")
	}
	bad := resolution(domain.Resolution{Kind: domain.ResolveCloseCost, Closing: domain.ClosingOpen})
	if _, err := s.apply(0, bad); !errors.Is(err, domain.ErrInvalidInput) {
		t.Fatalf("a cost was closed as open: %v", err)
	}
	s.on(1, resolution(domain.Resolution{Kind: domain.ResolveCloseCost, Closing: domain.ClosingRefunded}))
	s.money(1, domain.LedgerReserve, domain.LedgerRefund)
	if _, err := s.apply(0, resolution(domain.Resolution{Kind: domain.ResolveCloseCost, Closing: domain.ClosingSettled})); !errors.Is(err, domain.ErrInvalidTransition) {
		t.Fatalf("a cost was closed twice: %v", err)
	}
}

// TestRefundAfterSettlement: a person gives back what a delivered result cost. The
// settlement stands, an adjust returns the credits, once (I9); the file stays.
func TestRefundAfterSettlement(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedSucceeded, clip)
	refund := resolution(domain.Resolution{Kind: domain.ResolveRefund})
	if err := s.refused(refund); !errors.Is(err, domain.ErrInvalidTransition) {
		t.Fatalf("refunded before the task had ended: %v", err)
	}
	s.ready()
	s.webhook(domain.ObservedFailed)
	if !s.hasCase(1, domain.CaseConflict) || s.attempt().NextReconcileAt == nil {
		t.Fatal("the contradiction is not looked into")
	}
	d := s.do(refund)
	s.is("ready")
	s.money(1, domain.LedgerReserve, domain.LedgerSettle, domain.LedgerAdjust)
	if l := d.Ledger; len(l) != 1 || !l[0].Back || l[0].Credits != 7 || l[0].ActionID.IsZero() || s.attempt().Closing != domain.ClosingRefunded {
		t.Fatalf("ledger %+v, closed %s", d.Ledger, s.attempt().Closing)
	}
	if s.hasCase(1, domain.CaseConflict) || s.attempt().NextReconcileAt != nil {
		t.Fatal("the contradiction is still open")
	}
	if err := s.refused(refund); !errors.Is(err, domain.ErrInvalidTransition) {
		t.Fatalf("refunded twice: %v", err)
	}
}

// TestKeep: a person leaves what is settled as it is.
func TestKeep(t *testing.T) {
	t.Parallel()
	s := running(t, domain.LateSuccessKeep)
	s.webhook(domain.ObservedFailed)
	s.webhook(domain.ObservedSucceeded, clip)
	d := s.do(resolution(domain.Resolution{Kind: domain.ResolveKeep}))
	s.is("failed")
	s.money(1, domain.LedgerReserve, domain.LedgerRefund)
	if d.Event != nil || !d.Recorded() || s.hasCase(1, domain.CaseConflict) || s.attempt().NextReconcileAt != nil {
		t.Fatalf("decision %+v", d)
	}
}
