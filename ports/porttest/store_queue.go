package porttest

import (
	"slices"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// queueTests are about who is worked on first, and who is left out.
func queueTests() []storeTest {
	return []storeTest{
		{"SubmitClaimedOnce", queueSubmitOnce},
		{"PutOffSubmit", queuePutOffSubmit},
		{"PutOffPoll", queuePutOffPoll},
		{"PutOffReconcile", queuePutOffReconcile},
		{"PutOffIsFenced", queuePutOffFenced},
		{"Except", queueExcept},
		{"ForOthers", queueForOthers},
		{"Watched", queueWatched},
		{"WatchedAtTheClaim", queueWatchedAtTheClaim},
		{"HintedFirst", queueHintedFirst},
		{"NearDone", queueNearDone},
		{"Durations", queueDurations},
	}
}

func queueSubmitOnce(t *testing.T, b *storeBench) {
	const n = 12
	for range n {
		b.create()
	}
	claimedOnce(t, b, ports.WorkSubmit, n)
}

// putOff gives attempts back for a while.
func (b *storeBench) putOff(kind ports.WorkKind, lease domain.ID, wait time.Duration, attempts ...made) {
	b.t.Helper()
	params := ports.PutOffParams{Kind: kind, Lease: lease}
	for _, m := range attempts {
		params.Jobs = append(params.Jobs, ports.PutOffJob{ID: m.attempt, Until: b.Clock.Now().Add(wait)})
	}
	if err := b.Store.PutOff(b.ctx, params); err != nil {
		b.t.Fatalf("PutOff %s: %v", kind, err)
	}
}

func queuePutOffSubmit(t *testing.T, b *storeBench) {
	old := b.create()
	b.Clock.Advance(time.Second)
	young := b.create()
	lease := newID()
	wantJobs(t, "both", b.claim(ports.WorkSubmit, lease), old, young)
	b.putOff(ports.WorkSubmit, lease, 10*time.Second, old, young)
	b.Clock.Advance(9 * time.Second)
	wantJobs(t, "too early", b.claim(ports.WorkSubmit, newID()))
	b.Clock.Advance(time.Second)
	wantJobs(t, "in their old order", b.claim(ports.WorkSubmit, newID()), old, young)
	b.must(b.started(old))
	if a := b.attempt(old); a.Status != domain.AttemptSubmitting {
		t.Errorf("a claimed attempt cannot be submitted: %s", a.Status)
	}
	b.putOff(ports.WorkSubmit, b.attempt(old).SubmitLease, time.Hour, old)
	b.Clock.Advance(time.Minute + time.Second)
	wantJobs(t, "a submit that began is not put off", b.claim(ports.WorkSubmitExpired, domain.ID{}), old)
}

func queuePutOffPoll(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.due(m)
	lease := newID()
	wantJobs(t, "due", b.claim(ports.WorkPoll, lease), m)
	b.putOff(ports.WorkPoll, lease, 10*time.Second, m)
	young := b.submitted()
	b.due(young)
	wantJobs(t, "too early", b.claim(ports.WorkPoll, lease), young)
	b.putOff(ports.WorkPoll, lease, time.Second, young)
	b.Clock.Advance(10 * time.Second)
	wantJobs(t, "in their old order", b.claim(ports.WorkPoll, newID()), m, young)
}

func queuePutOffReconcile(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded))
	b.Clock.Advance(b.attempt(m).NextReconcileAt.Sub(b.Clock.Now()))
	lease := newID()
	wantJobs(t, "due", b.claim(ports.WorkReconcile, lease), m)
	b.putOff(ports.WorkReconcile, lease, time.Hour, m)
	b.Clock.Advance(59 * time.Minute)
	wantJobs(t, "too early", b.claim(ports.WorkReconcile, newID()))
	b.Clock.Advance(time.Minute)
	wantJobs(t, "then", b.claim(ports.WorkReconcile, newID()), m)
}

// queuePutOffFenced: who lost the lease moves nothing.
func queuePutOffFenced(t *testing.T, b *storeBench) {
	m, ended := b.submitted(), b.submitted()
	b.due(ended)
	slow := newID()
	if jobs := b.claim(ports.WorkPoll, slow); len(jobs) != 2 {
		t.Fatalf("%d jobs, want 2", len(jobs))
	}
	b.Clock.Advance(time.Minute + time.Second)
	b.must(b.saw(ended, domain.ObservedFailed))
	holder := newID()
	wantJobs(t, "the next one", b.claim(ports.WorkPoll, holder), m)
	before := b.attempt(m)
	b.putOff(ports.WorkPoll, slow, time.Hour, m, ended)
	if a := b.attempt(m); a.PollLease != holder || !a.PollLeaseUntil.Equal(*before.PollLeaseUntil) {
		t.Errorf("lease %s until %v", a.PollLease, a.PollLeaseUntil)
	}
	if a := b.attempt(ended); !a.PollLease.IsZero() || a.PollLeaseUntil != nil {
		t.Errorf("an ended attempt is leased until %v", a.PollLeaseUntil)
	}
}

func queueExcept(t *testing.T, b *storeBench) {
	other := func() made {
		p := b.params()
		p.Attempt.AccountID = "second"
		return b.createWith(p)
	}
	shut := []ports.AccountRef{{Provider: acme, AccountID: acmeAccount}, {Provider: "other", AccountID: "second"}}
	mine, theirs := b.create(), other()
	params := ports.ClaimParams{Kind: ports.WorkSubmit, Except: shut, Limit: 10, Lease: newID(), LeaseFor: time.Minute}
	wantJobs(t, "submits", b.claimWith(params), theirs)
	b.must(b.started(mine), b.accepted(mine), b.started(theirs), b.accepted(theirs))
	b.due(mine)
	b.due(theirs)
	params.Kind = ports.WorkPoll
	wantJobs(t, "polls", b.claimWith(params), theirs)
	params.Except = nil
	wantJobs(t, "polls once it is open", b.claimWith(params), mine)

	for _, m := range []made{mine, theirs} {
		b.must(b.saw(m, domain.ObservedFailed), b.saw(m, domain.ObservedSucceeded))
	}
	b.Clock.Advance(time.Hour)
	params.Kind, params.Except = ports.WorkReconcile, shut
	wantJobs(t, "the slow loop", b.claimWith(params), theirs)
}

// watch has somebody look at a project.
func (b *storeBench) watch(project domain.ProjectID, until time.Duration) {
	b.t.Helper()
	now := b.Clock.Now()
	err := b.Store.Watch(b.ctx, ports.WatchParams{Projects: []domain.ProjectID{project}, Now: now, Until: now.Add(until)})
	if err != nil {
		b.t.Fatalf("Watch: %v", err)
	}
}

// claimPolls claims so many, of which some are for the others.
func (b *storeBench) claimPolls(limit, forOthers int) []ports.Job {
	b.t.Helper()
	return b.claimWith(ports.ClaimParams{Kind: ports.WorkPoll, Limit: limit, ForOthers: forOthers, Lease: newID(), LeaseFor: time.Minute})
}

func queueForOthers(t *testing.T, b *storeBench) {
	watched := b.newProject(b.tenant, "watched")
	var old, first []made
	for range 4 {
		old = append(old, b.submitted())
		b.Clock.Advance(10 * time.Millisecond)
	}
	for range 4 {
		m := b.createIn(watched)
		b.must(b.started(m), b.accepted(m))
		first = append(first, m)
		b.Clock.Advance(10 * time.Millisecond)
	}
	b.watch(watched, time.Hour)
	b.due(first[3])
	b.Clock.Advance(time.Second)
	wantJobs(t, "a share for the others", b.claimPolls(3, 1), old[0], first[0], first[1])
	wantJobs(t, "none for the others", b.claimPolls(1, 0), first[2])
	wantJobs(t, "what the first leave over", b.claimPolls(3, 0), old[1], old[2], first[3])
	wantJobs(t, "all for the others", b.claimPolls(2, 2), old[3])
}

func queueWatched(t *testing.T, b *storeBench) {
	watched := b.newProject(b.tenant, "watched")
	rest := b.submitted()
	b.Clock.Advance(time.Second)
	m := b.createIn(watched)
	b.must(b.started(m), b.accepted(m))
	b.watch(watched, time.Minute)
	b.watch(watched, time.Second) // a shorter one takes nothing back
	b.due(m)
	b.Clock.Advance(2 * time.Second)
	wantJobs(t, "the watched one", b.claimPolls(1, 0), m)
	answer := b.saw(m, domain.ObservedQueued)
	answer.Input.Lease = b.attempt(m).PollLease
	b.must(answer)
	b.Clock.Advance(30 * time.Second)
	wantJobs(t, "it is still watched", b.claimPolls(1, 0), m)
	b.Clock.Advance(2 * time.Minute)
	if jobs := b.claimPolls(1, 0); len(jobs) != 1 || jobs[0].Attempt.ID != m.attempt {
		t.Errorf("the last claim found it watched, so it comes first once more: %+v", jobs)
	}
	b.Clock.Advance(2 * time.Minute)
	wantJobs(t, "nobody looks any more", b.claimPolls(1, 0), rest)
}

// queueWatchedAtTheClaim: of a task made while somebody looks, the first claim
// finds it out.
func queueWatchedAtTheClaim(t *testing.T, b *storeBench) {
	watched := b.newProject(b.tenant, "watched")
	b.watch(watched, time.Hour)
	m := b.createIn(watched)
	b.must(b.started(m), b.accepted(m))
	b.due(m)
	wantJobs(t, "its first query", b.claimPolls(1, 0), m)
	answer := b.saw(m, domain.ObservedQueued)
	answer.Input.Lease = b.attempt(m).PollLease
	b.must(answer)
	rest := b.submitted()
	b.due(rest)
	b.Clock.Advance(time.Minute)
	wantJobs(t, "its second", b.claimPolls(1, 0), m)
}

func queueHintedFirst(t *testing.T, b *storeBench) {
	rest, m := b.submitted(), b.submitted()
	b.due(rest)
	b.Clock.Advance(time.Minute)
	hint := b.saw(m, domain.ObservedSucceeded)
	hint.Input.Observation.Source, hint.Input.Observation.Trust = domain.SourceWebhook, domain.TrustBearer
	wantVerdict(t, "a hint", b.apply(hint)[0], domain.VerdictNeedsQuery, domain.ReasonNotTrusted)
	wantJobs(t, "what a delivery asks for", b.claimPolls(1, 0), m)
	wantJobs(t, "then the others", b.claimPolls(1, 0), rest)
}

// finished stores a job of the model that took so long.
func (b *storeBench) finished(model string, took time.Duration) {
	b.t.Helper()
	p := b.params()
	p.Attempt.Model = model
	m := b.createWith(p)
	b.must(b.started(m), b.accepted(m))
	b.Clock.Advance(took)
	b.must(b.saw(m, domain.ObservedSucceeded))
}

func (b *storeBench) learn(sample int) {
	b.t.Helper()
	if _, err := b.Store.LearnDurations(b.ctx, b.Clock.Now(), sample); err != nil {
		b.t.Fatalf("LearnDurations: %v", err)
	}
}

func queueNearDone(t *testing.T, b *storeBench) {
	b.finished("video-1", 100*time.Second)
	b.learn(10)
	near := b.submitted()
	poll := func() {
		t.Helper()
		answer := b.saw(near, domain.ObservedQueued)
		answer.Input.Lease = b.attempt(near).PollLease
		b.must(answer)
	}
	b.Clock.Advance(50 * time.Second)
	wantJobs(t, "half of its time", b.claimPolls(1, 0), near)
	poll()
	rest := b.submitted()
	b.Clock.Advance(25 * time.Second)
	wantJobs(t, "the younger one has waited longer", b.claimPolls(1, 0), rest)
	wantJobs(t, "the other now", b.claimPolls(1, 0), near) // at three quarters
	poll()
	b.Clock.Advance(75 * time.Second)
	wantJobs(t, "near its end", b.claimPolls(1, 0), near) // at one and a half
	poll()
	b.Clock.Advance(75 * time.Second)
	wantJobs(t, "once more", b.claimPolls(1, 0), near) // past twice
	poll()
	b.Clock.Advance(75 * time.Second)
	wantJobs(t, "nobody knows any more", b.claimPolls(1, 0), rest)
}

func queueDurations(t *testing.T, b *storeBench) {
	b.learn(10)
	if list, err := b.Store.Durations(b.ctx); err != nil || len(list) != 0 {
		t.Errorf("before the first success: %+v, %v", list, err)
	}
	failed := b.submitted()
	b.Clock.Advance(time.Hour)
	b.must(b.saw(failed, domain.ObservedFailed))
	b.finished("slow", time.Hour)
	for _, seconds := range []int{900, 40, 10, 30, 20, 50} { // the first is too old to count
		b.finished("fast", time.Duration(seconds)*time.Second)
	}
	together(3, func(int) {
		if n, err := b.Store.LearnDurations(b.ctx, b.Clock.Now(), 5); err != nil || n != 2 {
			t.Errorf("learned %d, %v", n, err)
		}
	})
	list, err := b.Store.Durations(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	want := []ports.ModelDuration{
		{Provider: acme, Model: "fast", Typical: domain.Typical{P50: 30 * time.Second, P95: 48 * time.Second}, Samples: 5},
		{Provider: acme, Model: "slow", Typical: domain.Typical{P50: time.Hour, P95: time.Hour}, Samples: 1},
	}
	for i := range list {
		if !list[i].UpdatedAt.Equal(b.Clock.Now()) {
			t.Errorf("updated at %v", list[i].UpdatedAt)
		}
		list[i].UpdatedAt = time.Time{}
	}
	if !slices.Equal(list, want) {
		t.Errorf("durations %+v, want %+v", list, want)
	}
}
