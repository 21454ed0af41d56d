package domain_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

var (
	wish     = domain.Input{Kind: domain.InputCancelRequested}
	accepted = domain.Input{Kind: domain.InputCancelAccepted}
	refusal  = domain.Input{Kind: domain.InputCancelRefused}
)

// TestCancelRaces is specification 12.7.6: every order of the wish, the vendor's
// answer to it and the vendor's verdict.
func TestCancelRaces(t *testing.T) {
	t.Parallel()
	const keep, discard = domain.LateSuccessKeep, domain.LateSuccessDiscard
	success := observation(domain.SourceWebhook, domain.ObservedSucceeded, []detail{clip})
	tests := []struct {
		name   string
		late   domain.LateSuccess
		can    bool
		inputs []domain.Input
		want   domain.Status
		cancel domain.Cancel
		last   domain.LedgerType
	}{
		{"only wished", keep, true, []domain.Input{wish}, "cancel_requested", domain.CancelRequested, domain.LedgerReserve},
		{"wished twice", keep, true, []domain.Input{wish, wish}, "cancel_requested", domain.CancelRequested, domain.LedgerReserve},
		{"the vendor took the wish", keep, true, []domain.Input{wish, accepted}, "cancel_requested", domain.CancelSent, domain.LedgerReserve},
		{"the vendor took it twice", keep, true, []domain.Input{wish, accepted, accepted}, "cancel_requested", domain.CancelSent, domain.LedgerReserve},
		{"canceled", keep, true, []domain.Input{wish, accepted, observation(domain.SourcePoll, domain.ObservedCanceled, nil)}, "canceled", domain.CancelConfirmed, domain.LedgerRefund},
		{"canceled before the answer", keep, true, []domain.Input{wish, observation(domain.SourceWebhook, domain.ObservedCanceled, nil), accepted}, "canceled", domain.CancelConfirmed, domain.LedgerRefund},
		{"refused", keep, true, []domain.Input{wish, refusal}, "running", domain.CancelRefused, domain.LedgerReserve},
		{"refused, wished again", keep, true, []domain.Input{wish, refusal, wish}, "cancel_requested", domain.CancelRequested, domain.LedgerReserve},
		{"refused twice", keep, true, []domain.Input{wish, refusal, wish, refusal}, "running", domain.CancelRefused, domain.LedgerReserve},
		{"refused, then done", keep, true, []domain.Input{wish, refusal, success}, "provider_succeeded", domain.CancelRefused, domain.LedgerReserve},
		{"done first", keep, true, []domain.Input{success, wish}, "provider_succeeded", domain.CancelRefused, domain.LedgerReserve},
		{"done first, discarded", discard, true, []domain.Input{success, wish}, "canceled", domain.CancelConfirmed, domain.LedgerRefund},
		{"done after the wish, kept", keep, true, []domain.Input{wish, success}, "provider_succeeded", domain.CancelRefused, domain.LedgerReserve},
		{"done after the wish, discarded", discard, true, []domain.Input{wish, success}, "canceled", domain.CancelConfirmed, domain.LedgerRefund},
		{"done after the vendor took the wish, discarded", discard, true, []domain.Input{wish, accepted, success}, "canceled", domain.CancelConfirmed, domain.LedgerRefund},
		{"failed after the wish", keep, true, []domain.Input{wish, observation(domain.SourcePoll, domain.ObservedFailed, nil)}, "failed", domain.CancelRefused, domain.LedgerRefund},
		{"progress after canceled", keep, true, []domain.Input{wish, observation(domain.SourcePoll, domain.ObservedCanceled, nil), observation(domain.SourceWebhook, domain.ObservedRunning, nil)}, "canceled", domain.CancelConfirmed, domain.LedgerRefund},
		{"success after canceled", keep, true, []domain.Input{wish, observation(domain.SourcePoll, domain.ObservedCanceled, nil), success}, "canceled", domain.CancelConfirmed, domain.LedgerRefund},
		{"canceled by the vendor itself", keep, true, []domain.Input{observation(domain.SourcePoll, domain.ObservedCanceled, nil)}, "canceled", domain.CancelNone, domain.LedgerRefund},
		{"the vendor has no cancel", keep, false, []domain.Input{wish}, "running", domain.CancelRefused, domain.LedgerReserve},
		{"the vendor has no cancel, discarded", discard, false, []domain.Input{wish, success}, "canceled", domain.CancelConfirmed, domain.LedgerRefund},
		{"answer without a wish", keep, true, []domain.Input{accepted}, "running", domain.CancelNone, domain.LedgerReserve},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := running(t, tt.late)
			s.policy.CanCancel = tt.can
			for _, in := range tt.inputs {
				s.do(in)
			}
			s.is(tt.want)
			if s.task.Cancel != tt.cancel {
				t.Errorf("cancel %s, want %s", s.task.Cancel, tt.cancel)
			}
			ledger := s.ledger[s.attempt().ID]
			if got := ledger[len(ledger)-1]; got != tt.last {
				t.Errorf("the last entry is %s, want %s", got, tt.last)
			}
		})
	}
}

// TestCancelUnsent: what the vendor has never seen is canceled at once.
func TestCancelUnsent(t *testing.T) {
	t.Parallel()
	s := begin(t, domain.LateSuccessKeep)
	d := s.do(wish)
	s.is("canceled")
	if len(d.Operations) > 0 || s.attempt().Timer() != nil {
		t.Fatal("there is still something to do")
	}
	s.money(1, domain.LedgerReserve, domain.LedgerRefund)
	verdict(t, s.start(), domain.VerdictIgnored, domain.ReasonNotSubmittable)
	if err := s.refused(wish); !errors.Is(err, domain.ErrTaskTerminal) {
		t.Fatal(err)
	}
}

// TestCancelDuringSubmit: the wish waits for the vendor's id, or for proof that
// there will be none.
func TestCancelDuringSubmit(t *testing.T) {
	t.Parallel()
	t.Run("accepted", func(t *testing.T) {
		t.Parallel()
		s := begin(t, domain.LateSuccessKeep)
		s.policy.CanCancel = true
		s.start()
		if d := s.do(wish); len(d.Operations) > 0 {
			t.Fatal("asked without an id")
		}
		s.is("cancel_requested")
		d := s.do(domain.Input{Kind: domain.InputSubmitAccepted, Lease: leaseMine, ProviderTaskID: "job"})
		if len(d.Operations) != 1 || d.Operations[0].Type != domain.OperationCancelProvider {
			t.Fatalf("operations %v", d.Operations)
		}
	})
	t.Run("not sent", func(t *testing.T) {
		t.Parallel()
		s := begin(t, domain.LateSuccessKeep)
		s.start()
		s.do(wish)
		s.do(domain.Input{Kind: domain.InputSubmitNotSent, Lease: leaseMine})
		s.is("canceled")
		s.money(1, domain.LedgerReserve, domain.LedgerRefund)
	})
	t.Run("refused by the vendor", func(t *testing.T) {
		t.Parallel()
		s := begin(t, domain.LateSuccessKeep)
		s.start()
		s.do(wish)
		s.do(domain.Input{Kind: domain.InputSubmitRejected, Lease: leaseMine, ErrorClass: domain.ClassInvalidInput})
		s.is("failed")
	})
	t.Run("the callback is faster", func(t *testing.T) {
		t.Parallel()
		s := begin(t, domain.LateSuccessKeep)
		s.policy.CanCancel = true
		s.start()
		s.do(wish)
		d := s.webhook(domain.ObservedRunning)
		if len(d.Operations) != 1 || d.Operations[0].Type != domain.OperationCancelProvider {
			t.Fatalf("operations %v", d.Operations)
		}
		s.is("cancel_requested")
	})
}

// TestCancelAnswerAsksForTheVerdict: the answer is not the verdict; the next
// query is brought forward to get it.
func TestCancelAnswerAsksForTheVerdict(t *testing.T) {
	t.Parallel()
	for _, answer := range []domain.Input{accepted, refusal} {
		s := running(t, domain.LateSuccessKeep)
		s.policy.CanCancel = true
		s.poll(domain.ObservedRunning)
		s.tick(3 * time.Second)
		s.do(wish)
		s.do(answer)
		s.due(0)
	}
}
