package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func workTests() []storeTest {
	return []storeTest{
		{"Submit", workSubmit},
		{"SubmitExpired", workSubmitExpired},
		{"PollWhenDue", workPollWhenDue},
		{"PollLease", workPollLease},
		{"PollLeaseIsFenced", workPollLeaseIsFenced},
		{"PollClaimedOnce", workPollClaimedOnce},
		{"LongestDueFirst", workLongestDueFirst},
		{"Reconcile", workReconcile},
		{"Progress", workProgress},
		{"Overdue", workOverdue},
		{"OverdueUnsent", workOverdueUnsent},
		{"Provider", workProvider},
		{"Limit", workLimit},
		{"Nothing", workNothing},
	}
}

// claim takes due work at the clock's time, under the lease where one is taken.
func (b *storeBench) claim(kind ports.WorkKind, lease domain.ID) []ports.Job {
	b.t.Helper()
	return b.claimWith(ports.ClaimParams{Kind: kind, Limit: 100, Lease: lease, LeaseFor: time.Minute})
}

func (b *storeBench) claimWith(params ports.ClaimParams) []ports.Job {
	b.t.Helper()
	params.Now = b.Clock.Now()
	jobs, err := b.Store.Claim(b.ctx, params)
	if err != nil {
		b.t.Fatalf("Claim %s: %v", params.Kind, err)
	}
	return jobs
}

// wantJobs fails the test unless the jobs are these attempts, in this order.
func wantJobs(t *testing.T, what string, jobs []ports.Job, want ...made) {
	t.Helper()
	if len(jobs) != len(want) {
		t.Errorf("%s: %d jobs, want %d", what, len(jobs), len(want))
		return
	}
	for i, m := range want {
		if jobs[i].Attempt.ID != m.attempt || jobs[i].Task.ID != m.task {
			t.Errorf("%s: job %d is attempt %s, want %s", what, i, jobs[i].Attempt.ID, m.attempt)
		}
	}
}

func workSubmit(t *testing.T, b *storeBench) {
	m := b.create()
	jobs := b.claim(ports.WorkSubmit, newID())
	wantJobs(t, "a new attempt", jobs, m)
	if len(jobs) == 1 && (jobs[0].Input.Prompt == "" || jobs[0].Attempt.Status != domain.AttemptCreated) {
		t.Errorf("job %+v", jobs[0])
	}
	wantJobs(t, "while the lease holds", b.claim(ports.WorkSubmit, newID()))
	b.Clock.Advance(time.Minute)
	wantJobs(t, "after the lease", b.claim(ports.WorkSubmit, newID()), m)

	start := b.started(m)
	b.must(start)
	b.Clock.Advance(2 * time.Minute)
	wantJobs(t, "while it is submitted", b.claim(ports.WorkSubmit, newID()))
	second := b.apply(b.started(m))[0]
	wantVerdict(t, "a second start", second, domain.VerdictIgnored, domain.ReasonNotSubmittable)

	b.must(item(m, domain.Input{Kind: domain.InputSubmitNotSent, Lease: start.Input.Lease, RetryAfter: 10 * time.Second}))
	wantJobs(t, "right after it was not sent", b.claim(ports.WorkSubmit, domain.ID{}))
	b.Clock.Advance(time.Minute)
	wantJobs(t, "when it is due again", b.claim(ports.WorkSubmit, domain.ID{}), m)
}

func workSubmitExpired(t *testing.T, b *storeBench) {
	m := b.create()
	b.must(b.started(m))
	wantJobs(t, "while the lease holds", b.claim(ports.WorkSubmitExpired, domain.ID{}))
	b.Clock.Advance(time.Minute + time.Second)
	wantJobs(t, "after the lease", b.claim(ports.WorkSubmitExpired, domain.ID{}), m)
	b.must(item(m, domain.Input{Kind: domain.InputSubmitUnknown}))
	wantJobs(t, "once it is unknown", b.claim(ports.WorkSubmitExpired, domain.ID{}))
	wantJobs(t, "an unknown submit is never submitted", b.claim(ports.WorkSubmit, domain.ID{}))
}

// due moves the clock to the attempt's next query.
func (b *storeBench) due(m made) {
	b.t.Helper()
	at := b.attempt(m).NextPollAt
	if at == nil {
		b.t.Fatalf("attempt %s has no next poll", m.attempt)
	}
	b.Clock.Advance(at.Sub(b.Clock.Now()))
}

func workPollWhenDue(t *testing.T, b *storeBench) {
	m := b.submitted()
	wantJobs(t, "before its time", b.claim(ports.WorkPoll, newID()))
	b.due(m)
	lease := newID()
	jobs := b.claim(ports.WorkPoll, lease)
	wantJobs(t, "at its time", jobs, m)
	if len(jobs) == 1 {
		a := jobs[0].Attempt
		if a.PollLease != lease || a.PollLeaseUntil == nil || !a.PollLeaseUntil.Equal(b.Clock.Now().Add(time.Minute)) {
			t.Errorf("the job's lease: %s until %v", a.PollLease, a.PollLeaseUntil)
		}
	}
	if a := b.attempt(m); a.PollLease != lease {
		t.Errorf("the stored lease is %s, want %s", a.PollLease, lease)
	}
	if v := b.task(m); v.Task.Version != 2 {
		t.Errorf("a lease raised the version to %d", v.Task.Version)
	}
	ended := b.saw(m, domain.ObservedFailed)
	ended.Input.Lease = lease
	b.must(ended)
	b.Clock.Advance(24 * time.Hour)
	wantJobs(t, "after the end", b.claim(ports.WorkPoll, newID()))
}

func workPollLease(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.due(m)
	first := newID()
	wantJobs(t, "the first", b.claim(ports.WorkPoll, first), m)
	wantJobs(t, "a second while the lease holds", b.claim(ports.WorkPoll, newID()))
	b.Clock.Advance(time.Minute + time.Second)
	wantJobs(t, "after the lease", b.claim(ports.WorkPoll, newID()), m)
	answer := b.saw(m, domain.ObservedQueued)
	answer.Input.Lease = b.attempt(m).PollLease
	b.must(answer)
	if a := b.attempt(m); !a.PollLease.IsZero() || a.NextPollAt == nil || !a.NextPollAt.After(b.Clock.Now()) {
		t.Errorf("after the answer: lease %s, next poll %v", a.PollLease, a.NextPollAt)
	}
}

// workPollLeaseIsFenced: the answer of a query whose lease is lost is news all
// the same, but does not move the timers of the one that has it now.
func workPollLeaseIsFenced(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.due(m)
	slow := newID()
	wantJobs(t, "the slow one", b.claim(ports.WorkPoll, slow), m)
	b.Clock.Advance(time.Minute + time.Second)
	holder := newID()
	wantJobs(t, "the next one", b.claim(ports.WorkPoll, holder), m)

	failed := item(m, domain.Input{Kind: domain.InputPollFailed, QueryError: &domain.QueryError{Class: domain.QueryTransport}, Lease: slow})
	b.must(failed)
	if a := b.attempt(m); a.PollLease != holder || a.PollFailures != 0 {
		t.Errorf("a late failure moved the bookkeeping: lease %s, failures %d", a.PollLease, a.PollFailures)
	}
	news := b.progressed(m, 10)
	news.Input.Lease = slow
	wantVerdict(t, "late news", b.apply(news)[0], domain.VerdictApplied, "")
	if a := b.attempt(m); a.PollLease != holder || a.Status != domain.AttemptRunning {
		t.Errorf("late news: lease %s, status %s", a.PollLease, a.Status)
	}
}

func workPollClaimedOnce(t *testing.T, b *storeBench) {
	const n = 12
	var last made
	for range n {
		last = b.submitted()
	}
	b.due(last)
	claimedOnce(t, b, ports.WorkPoll, n)
}

// claimedOnce has several workers claim all n due attempts at once: each gets its own.
func claimedOnce(t *testing.T, b *storeBench, kind ports.WorkKind, n int) {
	t.Helper()
	now := b.Clock.Now()
	taken := make([][]ports.Job, 4)
	together(len(taken), func(i int) {
		for {
			jobs, err := b.Store.Claim(b.ctx, ports.ClaimParams{Kind: kind, Now: now, Limit: 2, Lease: newID(), LeaseFor: time.Minute})
			if err != nil {
				t.Errorf("Claim: %v", err)
			}
			if len(jobs) == 0 {
				return
			}
			taken[i] = append(taken[i], jobs...)
		}
	})
	seen := map[domain.AttemptID]bool{}
	for _, jobs := range taken {
		for _, j := range jobs {
			if seen[j.Attempt.ID] {
				t.Errorf("attempt %s was taken twice", j.Attempt.ID)
			}
			seen[j.Attempt.ID] = true
		}
	}
	if left := b.claim(kind, newID()); len(seen)+len(left) != n {
		t.Errorf("%d attempts were taken, %d left, want %d", len(seen), len(left), n)
	}
}

func workLongestDueFirst(t *testing.T, b *storeBench) {
	var tasks []made
	for range 4 {
		tasks = append(tasks, b.submitted())
		b.Clock.Advance(100 * time.Millisecond)
	}
	b.due(tasks[3])
	b.Clock.Advance(time.Second)
	wantJobs(t, "polls", b.claim(ports.WorkPoll, newID()), tasks...)
}

func workReconcile(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded)) // a conflict asks once more
	wantJobs(t, "before its time", b.claim(ports.WorkReconcile, newID()))
	at := b.attempt(m).NextReconcileAt
	if at == nil {
		t.Fatal("a conflict set no timer")
	}
	b.Clock.Advance(at.Sub(b.Clock.Now()))
	lease := newID()
	wantJobs(t, "at its time", b.claim(ports.WorkReconcile, lease), m)
	wantJobs(t, "while the lease holds", b.claim(ports.WorkReconcile, newID()))
	answer := b.saw(m, domain.ObservedFailed)
	answer.Input.Lease, answer.Input.Observation.Source = lease, domain.SourceReconcile
	b.must(answer)
	b.Clock.Advance(time.Hour)
	wantJobs(t, "once it is answered", b.claim(ports.WorkReconcile, newID()))
}

func workProgress(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.progressed(m, 10), b.progressed(m, 30)) // the second is too soon
	wantJobs(t, "before its time", b.claim(ports.WorkProgress, domain.ID{}))
	b.Clock.Advance(time.Second)
	wantJobs(t, "at its time", b.claim(ports.WorkProgress, domain.ID{}), m)
	r := b.must(item(m, domain.Input{Kind: domain.InputProgressDue}))
	if r.Event == nil || r.Event.Progress == nil || *r.Event.Progress != 30 {
		t.Errorf("deferred progress: %+v", r.Event)
	}
	wantJobs(t, "once it is stored", b.claim(ports.WorkProgress, domain.ID{}))
}

func workOverdue(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.Clock.Advance(time.Minute)
	late := b.submitted()
	overdue := func(age time.Duration) []ports.Job {
		return b.claimWith(ports.ClaimParams{Kind: ports.WorkOverdue, Before: b.Clock.Now().Add(-age), Limit: 10})
	}
	wantJobs(t, "two minutes", overdue(2*time.Minute))
	wantJobs(t, "half a minute", overdue(30*time.Second), m)
	b.Clock.Advance(time.Minute)
	wantJobs(t, "half a minute, later", overdue(30*time.Second), m, late)
	b.must(item(m, domain.Input{Kind: domain.InputOverdue}), b.saw(late, domain.ObservedFailed))
	wantJobs(t, "noted and ended ones", overdue(0))
}

// workOverdueUnsent: a vendor that takes nothing for ever must not hide a task. An
// unknown submit has its own case.
func workOverdueUnsent(t *testing.T, b *storeBench) {
	overdue := func() []ports.Job {
		return b.claimWith(ports.ClaimParams{Kind: ports.WorkOverdue, Before: b.Clock.Now().Add(-time.Minute), Limit: 10})
	}
	waiting := b.create()
	b.lostSubmit()
	wantJobs(t, "a fresh one", overdue())
	b.Clock.Advance(time.Minute + time.Second)
	late := b.submitted() // created and taken just now
	wantJobs(t, "one that nobody took", overdue(), waiting)
	b.must(item(waiting, domain.Input{Kind: domain.InputOverdue}))
	if cases := b.cases(domain.CaseOverdue); len(cases) != 1 || cases[0].AttemptID != waiting.attempt {
		t.Errorf("cases %+v", cases)
	}
	wantJobs(t, "once it is noted", overdue())
	wantJobs(t, "it is submitted all the same", b.claim(ports.WorkSubmit, domain.ID{}), waiting)
	b.must(b.started(waiting), b.accepted(waiting))
	if cases := b.cases(domain.CaseOverdue); len(cases) != 0 {
		t.Errorf("open cases once the vendor took it: %+v", cases)
	}
	b.Clock.Advance(time.Minute + time.Second)
	if jobs := overdue(); len(jobs) != 2 {
		t.Errorf("%d jobs are overdue, want %s and %s", len(jobs), late.attempt, waiting.attempt)
	}
}

func workProvider(t *testing.T, b *storeBench) {
	mine := b.create()
	p := b.params()
	p.Attempt.Provider = "other"
	foreign := b.createWith(p)
	wantJobs(t, "of one vendor", b.claimWith(ports.ClaimParams{Kind: ports.WorkSubmit, Provider: acme, Limit: 10, Lease: newID(), LeaseFor: time.Minute}), mine)
	wantJobs(t, "of the other", b.claimWith(ports.ClaimParams{Kind: ports.WorkSubmit, Provider: "other", Limit: 10, Lease: newID(), LeaseFor: time.Minute}), foreign)
	b.Clock.Advance(time.Minute)
	if jobs := b.claim(ports.WorkSubmit, newID()); len(jobs) != 2 {
		t.Errorf("%d jobs of all vendors, want 2", len(jobs))
	}
}

func workLimit(t *testing.T, b *storeBench) {
	var last made
	for range 5 {
		last = b.submitted()
	}
	b.due(last)
	params := ports.ClaimParams{Kind: ports.WorkPoll, Limit: 2, LeaseFor: time.Minute}
	for _, want := range []int{2, 2, 1, 0} {
		params.Lease = newID()
		if jobs := b.claimWith(params); len(jobs) != want {
			t.Errorf("%d jobs, want %d", len(jobs), want)
		}
	}
}

func workNothing(t *testing.T, b *storeBench) {
	for _, kind := range []ports.WorkKind{ports.WorkSubmit, ports.WorkSubmitExpired, ports.WorkPoll, ports.WorkReconcile, ports.WorkProgress} {
		wantJobs(t, string(kind), b.claim(kind, newID()))
	}
	wantJobs(t, "overdue", b.claimWith(ports.ClaimParams{Kind: ports.WorkOverdue, Before: b.Clock.Now(), Limit: 1}))
	for _, kind := range domain.OperationTypes() {
		if jobs := b.claimOperations(kind, newID(), 10); len(jobs) != 0 {
			t.Errorf("%d operations %s", len(jobs), kind)
		}
	}
}
