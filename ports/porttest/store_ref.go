package porttest

import (
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func refTests() []storeTest {
	return []storeTest{
		{"EachName", refEachName},
		{"Disagreement", refDisagreement},
		{"Orphan", refOrphan},
		{"OtherAccount", refOtherAccount},
		{"BeforeTheSubmitIsAnswered", refBeforeTheSubmitIsAnswered},
		{"OldAttempt", refOldAttempt},
	}
}

// by is running news of the job under a Ref.
func (b *storeBench) by(ref ports.Ref, m made) ports.Item {
	it := b.saw(m, domain.ObservedRunning)
	it.Ref = ref
	return it
}

// vendorRef is all that a vendor may say about a job.
func vendorRef(m made) ports.Ref {
	return ports.Ref{TokenHash: hash(m.token), Provider: acme, AccountID: acmeAccount, ProviderTaskID: m.vendorID, ClientRequestID: m.client}
}

func refEachName(t *testing.T, b *storeBench) {
	refs := map[string]func(m made) ports.Ref{
		"attempt":          func(m made) ports.Ref { return ports.Ref{AttemptID: m.attempt} },
		"task":             func(m made) ports.Ref { return ports.Ref{TaskID: m.task} },
		"task and project": func(m made) ports.Ref { return ports.Ref{TaskID: m.task, ProjectID: b.project} },
		"attempt and task": func(m made) ports.Ref { return ports.Ref{AttemptID: m.attempt, TaskID: m.task} },
		"token":            func(m made) ports.Ref { return ports.Ref{Provider: acme, TokenHash: hash(m.token)} },
		"vendor id": func(m made) ports.Ref {
			return ports.Ref{Provider: acme, AccountID: acmeAccount, ProviderTaskID: m.vendorID}
		},
		"client request id": func(m made) ports.Ref {
			return ports.Ref{Provider: acme, AccountID: acmeAccount, ClientRequestID: m.client}
		},
		"all of a vendor's": vendorRef,
		"all": func(m made) ports.Ref {
			ref := vendorRef(m)
			ref.AttemptID, ref.TaskID, ref.ProjectID = m.attempt, m.task, b.project
			return ref
		},
	}
	for name, ref := range refs {
		m := b.submitted()
		r := b.apply(b.by(ref(m), m))[0]
		wantVerdict(t, name, r, domain.VerdictApplied, "")
		if r.Decision.Attempt.ID != m.attempt {
			t.Errorf("%s: attempt %s, want %s", name, r.Decision.Attempt.ID, m.attempt)
		}
	}
}

func refDisagreement(t *testing.T, b *storeBench) {
	one, two := b.submitted(), b.submitted()
	refs := map[string]ports.Ref{
		"token and vendor id":     {TokenHash: hash(one.token), Provider: acme, AccountID: acmeAccount, ProviderTaskID: two.vendorID},
		"token and client id":     {TokenHash: hash(one.token), Provider: acme, AccountID: acmeAccount, ClientRequestID: two.client},
		"vendor id and client id": {Provider: acme, AccountID: acmeAccount, ProviderTaskID: one.vendorID, ClientRequestID: two.client},
		"attempt and vendor id":   {AttemptID: one.attempt, Provider: acme, AccountID: acmeAccount, ProviderTaskID: two.vendorID},
		"attempt and task":        {AttemptID: one.attempt, TaskID: two.task},
	}
	before := b.head(b.project)
	for name, ref := range refs {
		it := b.by(ref, one)
		it.Input.Observation.ProviderTaskID = "" // so that only the Ref disagrees
		wantVerdict(t, name, b.apply(it)[0], domain.VerdictIgnored, domain.ReasonIdentityMismatch)
	}
	if b.head(b.project) != before || b.attempt(one).Status != domain.AttemptSubmitted || b.attempt(two).Status != domain.AttemptSubmitted {
		t.Error("news under contradicting names changed state")
	}
}

func refOrphan(t *testing.T, b *storeBench) {
	m := b.submitted()
	refs := map[string]ports.Ref{
		"nothing known":  {TokenHash: hash("nobody's"), Provider: acme, AccountID: acmeAccount, ProviderTaskID: "job-unknown", ClientRequestID: "req-unknown"},
		"nothing at all": {Provider: acme, AccountID: acmeAccount},
		"empty":          {},
	}
	for name, ref := range refs {
		it := b.by(ref, m)
		r := b.apply(it)[0]
		wantVerdict(t, name, r, domain.VerdictIgnored, domain.ReasonOrphan)
		if r.Event != nil {
			t.Errorf("%s: event %+v", name, r.Event)
		}
	}
}

// refOtherAccount: a vendor's ids are unique within an account only.
func refOtherAccount(t *testing.T, b *storeBench) {
	m := b.submitted()
	p := b.params()
	p.Attempt.AccountID = "second"
	twin := b.createWith(p)
	twin.vendorID = m.vendorID
	b.must(b.started(twin), b.accepted(twin))

	it := b.by(ports.Ref{Provider: acme, AccountID: "second", ProviderTaskID: m.vendorID}, twin)
	if r := b.apply(it)[0]; r.Err != nil || r.Decision.Attempt.ID != twin.attempt {
		t.Errorf("by the second account: %+v", r)
	}
	it = b.by(ports.Ref{Provider: acme, AccountID: "third", ProviderTaskID: m.vendorID}, m)
	wantVerdict(t, "by an account without the job", b.apply(it)[0], domain.VerdictIgnored, domain.ReasonOrphan)
	if a := b.attempt(m); a.Status != domain.AttemptSubmitted {
		t.Errorf("the first account's attempt is %s", a.Status)
	}
}

// refBeforeTheSubmitIsAnswered: a callback may be faster than the answer to the
// create, and names an id that is not known yet.
func refBeforeTheSubmitIsAnswered(t *testing.T, b *storeBench) {
	m := b.create()
	b.must(b.started(m))
	r := b.apply(b.by(vendorRef(m), m))[0]
	wantVerdict(t, "early news", r, domain.VerdictApplied, "")
	if a := b.attempt(m); a.ProviderTaskID != m.vendorID || a.Status != domain.AttemptRunning {
		t.Errorf("after early news: %s, %q", a.Status, a.ProviderTaskID)
	}
	if r := b.must(b.accepted(m)); r.Event != nil {
		t.Errorf("the answer to the submit, after the callback: %+v", r)
	}
	it := b.saw(m, domain.ObservedSucceeded)
	it.Ref = ports.Ref{Provider: acme, AccountID: acmeAccount, ProviderTaskID: m.vendorID}
	wantVerdict(t, "by the id that the callback brought", b.apply(it)[0], domain.VerdictApplied, "")
}

// refOldAttempt: news of a superseded attempt reaches that attempt and not the
// task (I11).
func refOldAttempt(t *testing.T, b *storeBench) {
	m := b.create()
	b.must(b.started(m))
	again, next := b.retry(m)
	again.Input.AcceptPossibleDuplicate = true
	unknown := item(m, domain.Input{Kind: domain.InputSubmitUnknown, Lease: b.attempt(m).SubmitLease})
	b.must(unknown, again)
	before := b.task(m)

	it := b.saw(m, domain.ObservedSucceeded)
	it.Ref = vendorRef(m)
	r := b.apply(it)[0]
	wantVerdict(t, "news of the old attempt", r, domain.VerdictIgnored, domain.ReasonStaleAttempt)
	if a := b.attempt(m); a.Status != domain.AttemptSucceeded || a.Closing != domain.ClosingSettled {
		t.Errorf("the old attempt is %s, %s", a.Status, a.Closing)
	}
	after := b.task(m)
	if after.Task.Version != before.Task.Version || after.Task.Phase != domain.PhaseQueued || after.Attempt.ID != next.attempt {
		t.Errorf("the old attempt changed the task: %+v", after.Task)
	}
}
