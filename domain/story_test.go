package domain_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
)

// story plays inputs one after another, as a store would, and checks after each
// that the world is sound.
type story struct {
	*world
	t      *testing.T
	policy domain.Policy
}

func begin(t *testing.T, late domain.LateSuccess) *story {
	t.Helper()
	return &story{world: newWorld(late), t: t}
}

// submitted is a story whose attempt the vendor has accepted as "job".
func submitted(t *testing.T, late domain.LateSuccess) *story {
	t.Helper()
	s := begin(t, late)
	s.submit()
	return s
}

// running is a story whose attempt the vendor has reported as running, long
// enough ago that the window after the submit is over.
func running(t *testing.T, late domain.LateSuccess) *story {
	t.Helper()
	s := submitted(t, late)
	s.tick(time.Minute)
	s.webhook(domain.ObservedRunning)
	s.tick(time.Minute)
	return s
}

func (s *story) tick(d time.Duration) { s.now = s.now.Add(d) }

func (s *story) attempt() domain.Attempt { return s.attempts[s.current()] }

// on feeds an input about the attempt with the number no.
func (s *story) on(no int, in domain.Input) domain.Decision {
	s.t.Helper()
	if in.Policy == (domain.Policy{}) {
		in.Policy = s.policy
	}
	d, err := s.apply(no-1, in)
	if err != nil {
		s.t.Fatalf("%s: %v", in.Kind, err)
	}
	return d
}

// do feeds an input about the current attempt.
func (s *story) do(in domain.Input) domain.Decision {
	s.t.Helper()
	return s.on(s.attempt().No, in)
}

// refused feeds a command that is expected to fail.
func (s *story) refused(in domain.Input) error {
	s.t.Helper()
	in.Policy = s.policy
	d, err := s.apply(s.current(), in)
	if err == nil {
		s.t.Fatalf("%s: accepted with %v", in.Kind, d.Verdict)
	}
	return err
}

func (s *story) start() domain.Decision {
	s.t.Helper()
	return s.do(domain.Input{Kind: domain.InputSubmitStarted, Lease: leaseMine, LeaseUntil: s.now.Add(time.Minute)})
}

func (s *story) submit() domain.Decision {
	s.t.Helper()
	s.start()
	return s.do(domain.Input{Kind: domain.InputSubmitAccepted, Lease: leaseMine, ProviderTaskID: "job"})
}

// unknownSubmit loses the answer to the submit.
func (s *story) unknownSubmit() domain.Decision {
	s.t.Helper()
	s.start()
	return s.do(domain.Input{Kind: domain.InputSubmitUnknown, Lease: leaseMine})
}

// detail changes an observation.
type detail func(*domain.Observation)

func percent(p int) detail        { return func(o *domain.Observation) { o.Progress = &p } }
func thin(o *domain.Observation)  { o.Thin = true }
func trust(t domain.Trust) detail { return func(o *domain.Observation) { o.Trust = t } }
func output(ref, url string) detail {
	return func(o *domain.Observation) {
		o.Outputs = append(o.Outputs, domain.OutputRef{Kind: "video", Ref: ref, URL: url})
	}
}
func because(class domain.ErrorClass, code string) detail {
	return func(o *domain.Observation) { o.ErrorClass, o.ErrorCode = class, code }
}
func numbered(n int64, kind domain.SequenceKind) detail {
	return func(o *domain.Observation) { o.ProviderSequence, o.SequenceKind = &n, kind }
}

var clip = output("clip", "https://vendor.example/clip?sig=1")

func observation(source domain.Source, status domain.Observed, details []detail) domain.Input {
	o := &domain.Observation{Source: source, Trust: domain.TrustAuthentic, Status: status, ProviderTaskID: "job"}
	for _, change := range details {
		change(o)
	}
	return domain.Input{Kind: domain.InputObservation, Observation: o}
}

func (s *story) webhook(status domain.Observed, details ...detail) domain.Decision {
	s.t.Helper()
	return s.do(observation(domain.SourceWebhook, status, details))
}

func (s *story) poll(status domain.Observed, details ...detail) domain.Decision {
	s.t.Helper()
	return s.do(observation(domain.SourcePoll, status, details))
}

// hint is a delivery that proves nothing but the knowledge of a URL.
func (s *story) hint(status domain.Observed) domain.Decision {
	s.t.Helper()
	return s.webhook(status, trust(domain.TrustBearer))
}

func (s *story) queryFails(class domain.QueryClass, retryAfter time.Duration) domain.Decision {
	s.t.Helper()
	return s.do(domain.Input{Kind: domain.InputPollFailed, QueryError: &domain.QueryError{Class: class, RetryAfter: retryAfter}})
}

func (s *story) retryInput(accept bool) domain.Input {
	next := domain.Attempt{ID: domain.AttemptID{ID: id(byte(101 + len(s.attempts)))}, Provider: "sim", Credits: 9}
	return domain.Input{Kind: domain.InputRetryRequested, NewAttempt: &next, AcceptPossibleDuplicate: accept}
}

func resolution(r domain.Resolution) domain.Input {
	r.ActionID = domain.ActionID{ID: id(70)}
	return domain.Input{Kind: domain.InputResolution, Resolution: &r}
}

func (s *story) ready() domain.Decision {
	s.t.Helper()
	return s.do(domain.Input{Kind: domain.InputMediaReady, AssetID: domain.AssetID{ID: id(60)}})
}

// verdict checks what became of an input.
func verdict(t *testing.T, d domain.Decision, kind domain.VerdictKind, reason domain.Reason) {
	t.Helper()
	if want := (domain.Verdict{Kind: kind, Reason: reason}); d.Verdict != want {
		t.Fatalf("verdict %v, want %v", d.Verdict, want)
	}
}

// is checks where the task stands.
func (s *story) is(status domain.Status) {
	s.t.Helper()
	if got := s.task.Status(); got != status {
		s.t.Fatalf("status %s, want %s", got, status)
	}
}

// money checks every ledger entry of an attempt, in order.
func (s *story) money(no int, want ...domain.LedgerType) {
	s.t.Helper()
	if diff := cmp.Diff(want, s.ledger[s.attempts[no-1].ID]); diff != "" {
		s.t.Fatalf("ledger of attempt %d (-want +got):\n%s", no, diff)
	}
}

// hasCase reports whether a case about an attempt is open.
func (s *story) hasCase(no int, kind domain.CaseKind) bool {
	return s.cases[s.attempts[no-1].ID][kind]
}

// due checks in how long the current attempt is asked about.
func (s *story) due(want time.Duration) {
	s.t.Helper()
	at := s.attempt().NextPollAt
	if at == nil {
		s.t.Fatalf("no query is due, want one in %s", want)
	}
	if got := at.Sub(s.now); got != want {
		s.t.Fatalf("the next query is due in %s, want %s", got, want)
	}
}
