package domain_test

import (
	"slices"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestPublic(t *testing.T) {
	t.Parallel()
	tests := []struct {
		phase   domain.Phase
		cancel  domain.Cancel
		unknown bool
		want    domain.Status
	}{
		{domain.PhaseQueued, domain.CancelNone, false, "queued"},
		{domain.PhaseRunning, domain.CancelNone, false, "running"},
		{domain.PhaseProviderSucceeded, domain.CancelNone, false, "provider_succeeded"},
		{domain.PhaseProcessingMedia, domain.CancelNone, false, "processing_media"},
		{domain.PhaseQueued, domain.CancelNone, true, "provider_status_unknown"},
		{domain.PhaseRunning, domain.CancelNone, true, "provider_status_unknown"},
		// What the user asked for is more than what we cannot learn.
		{domain.PhaseRunning, domain.CancelRequested, true, "cancel_requested"},
		{domain.PhaseQueued, domain.CancelSent, false, "cancel_requested"},
		// An answered wish is no longer pending.
		{domain.PhaseRunning, domain.CancelRefused, false, "running"},
		{domain.PhaseRunning, domain.CancelRefused, true, "provider_status_unknown"},
		// The end outranks everything.
		{domain.PhaseReady, domain.CancelRefused, false, "ready"},
		{domain.PhaseFailed, domain.CancelNone, false, "failed"},
		{domain.PhaseCanceled, domain.CancelConfirmed, false, "canceled"},
		{domain.PhaseReady, domain.CancelSent, true, "ready"},
	}
	for _, tt := range tests {
		var since *time.Time
		if tt.unknown {
			since = &epoch
		}
		if got := domain.Public(tt.phase, tt.cancel, since); got != tt.want {
			t.Errorf("Public(%s, %s, unknown %v) = %s, want %s", tt.phase, tt.cancel, tt.unknown, got, tt.want)
		}
	}
}

// TestLegalFacts lists all legal facts; what is not listed is illegal.
func TestLegalFacts(t *testing.T) {
	t.Parallel()
	type facts struct {
		phase   domain.Phase
		cancel  domain.Cancel
		unknown bool
	}
	legal := map[facts]bool{}
	for _, p := range []domain.Phase{"queued", "running"} {
		for _, c := range []domain.Cancel{"none", "requested", "sent", "refused"} {
			legal[facts{p, c, false}], legal[facts{p, c, true}] = true, true
		}
	}
	for _, p := range []domain.Phase{"provider_succeeded", "processing_media"} {
		for _, c := range []domain.Cancel{"none", "requested", "sent", "refused"} {
			legal[facts{p, c, false}] = true
		}
	}
	for _, p := range []domain.Phase{"ready", "failed"} {
		legal[facts{p, "none", false}], legal[facts{p, "refused", false}] = true, true
	}
	legal[facts{"canceled", "none", false}], legal[facts{"canceled", "confirmed", false}] = true, true
	for _, p := range domain.Phases() {
		for _, c := range domain.Cancels() {
			for _, u := range []bool{false, true} {
				if got, want := domain.LegalFacts(p, c, u), legal[facts{p, c, u}]; got != want {
					t.Errorf("LegalFacts(%s, %s, unknown %v) = %v", p, c, u, got)
				}
			}
		}
	}
}

func TestOrderOfStatuses(t *testing.T) {
	t.Parallel()
	want := map[domain.AttemptStatus]int{
		"created": 0, "submitting": 1, "submit_unknown": 1, "submitted": 2, "queued": 3, "running": 4,
		"succeeded": 5, "failed": 5, "canceled": 5,
	}
	for _, s := range domain.AttemptStatuses() {
		if s.Rank() != want[s] {
			t.Errorf("%s has rank %d, want %d", s, s.Rank(), want[s])
		}
		if s.Terminal() != (want[s] == 5) || s.AtVendor() != (want[s] > 1 && want[s] < 5) {
			t.Errorf("%s: terminal %v, at vendor %v", s, s.Terminal(), s.AtVendor())
		}
	}
	if len(want) != len(domain.AttemptStatuses()) {
		t.Errorf("%d statuses, want %d", len(domain.AttemptStatuses()), len(want))
	}
}

func TestStages(t *testing.T) {
	t.Parallel()
	media := []domain.Stage{"fetching", "validating", "transcoding", "publishing"}
	for i, s := range domain.Stages() {
		if s.Order() != i || s.Media() != slices.Contains(media, s) {
			t.Errorf("%s: order %d, media %v", s, s.Order(), s.Media())
		}
	}
	if unknown := domain.Stage("polishing"); unknown.Order() != -1 || unknown.Media() {
		t.Error("an unknown stage has an order or belongs to media")
	}
}

// TestStatuses holds the public list against the phases: every phase is a status.
func TestStatuses(t *testing.T) {
	t.Parallel()
	all := domain.Statuses()
	if len(all) != len(domain.Phases())+2 || !slices.Contains(all, domain.StatusCancelRequested) || !slices.Contains(all, domain.StatusProviderStatusUnknown) {
		t.Fatalf("statuses: %v", all)
	}
	for _, s := range all {
		want := s == "ready" || s == "failed" || s == "canceled"
		if s.Terminal() != want {
			t.Errorf("%s: terminal %v", s, s.Terminal())
		}
	}
}

// TestListsAreClosed: every list names each of its words once; the schema and the
// page of the state machine are made from them.
func TestListsAreClosed(t *testing.T) {
	t.Parallel()
	lists := map[string][]string{
		"phases": text(domain.Phases()), "cancels": text(domain.Cancels()), "stages": text(domain.Stages()), "attempts": text(domain.AttemptStatuses()),
		"kinds": text(domain.Kinds()), "resolutions": text(domain.ResolutionKinds()), "queries": text(domain.QueryClasses()),
		"verdicts": text(domain.VerdictKinds()), "reasons": text(domain.Reasons()), "ledger": text(domain.LedgerTypes()),
		"operations": text(domain.OperationTypes()), "cases": text(domain.CaseKinds()), "errors": text(domain.ErrorClasses()),
		"sources": text(domain.Sources()), "trusts": text(domain.Trusts()),
	}
	for name, words := range lists {
		slices.Sort(words)
		if once := slices.Compact(slices.Clone(words)); len(once) != len(words) || len(words) == 0 || words[0] == "" {
			t.Errorf("%s: %q", name, words)
		}
	}
}

func text[T ~string](words []T) []string {
	var all []string
	for _, w := range words {
		all = append(all, string(w))
	}
	return all
}

func TestErrorClassesSayWhetherToRetry(t *testing.T) {
	t.Parallel()
	never := []domain.ErrorClass{domain.ClassModerationInput, domain.ClassInvalidInput}
	for _, c := range domain.ErrorClasses() {
		if c.Retryable() == slices.Contains(never, c) {
			t.Errorf("%s: retryable %v", c, c.Retryable())
		}
	}
}
