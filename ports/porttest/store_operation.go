package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func operationTests() []storeTest {
	return []storeTest{
		{"StartedOnce", operationStartedOnce},
		{"Lease", operationLease},
		{"Release", operationRelease},
		{"Finish", operationFinish},
		{"FinishWithLostLease", operationFinishWithLostLease},
		{"NotFinishedByARefusedItem", operationNotFinishedByARefusedItem},
		{"FinishedWhateverTheVerdict", operationFinishedWhateverTheVerdict},
		{"RestartedByAdoption", operationRestartedByAdoption},
		{"ClaimedOnce", operationClaimedOnce},
	}
}

// claimOperations takes due operations of a type at the clock's time.
func (b *storeBench) claimOperations(kind domain.OperationType, lease domain.ID, limit int) []ports.OperationJob {
	b.t.Helper()
	jobs, err := b.Store.ClaimOperations(b.ctx, ports.OperationClaim{Type: kind, Now: b.Clock.Now(), Limit: limit, Lease: lease, LeaseFor: time.Minute})
	if err != nil {
		b.t.Fatalf("ClaimOperations: %v", err)
	}
	return jobs
}

// fetching makes a task whose output waits to be fetched, and takes it.
func (b *storeBench) fetching() (made, ports.OperationJob, domain.ID) {
	b.t.Helper()
	m, lease := b.submitted(), newID()
	b.must(b.saw(m, domain.ObservedSucceeded))
	jobs := b.claimOperations(domain.OperationFetchOutput, lease, 10)
	if len(jobs) != 1 || jobs[0].Attempt.ID != m.attempt {
		b.t.Fatalf("operations %+v, want the fetch of %s", jobs, m.attempt)
	}
	return m, jobs[0], lease
}

// operationStartedOnce: one operation per attempt and type (I10).
func operationStartedOnce(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.cancel(m), b.cancel(m))
	b.must(b.saw(m, domain.ObservedSucceeded), b.saw(m, domain.ObservedSucceeded))
	for _, kind := range domain.OperationTypes() {
		jobs := b.claimOperations(kind, newID(), 10)
		if len(jobs) != 1 {
			t.Fatalf("%d operations %s, want 1", len(jobs), kind)
		}
		if j := jobs[0]; j.ID.IsZero() || j.Type != kind || j.Task.ID != m.task || j.Attempt.ID != m.attempt || j.Attempt.ProviderTaskID != m.vendorID {
			t.Errorf("operation %+v", j)
		}
	}
	if n := len(entries(b.timeline(m), "operation")); n < 2 {
		t.Errorf("%d operations on the timeline, want 2", n)
	}
}

func operationLease(t *testing.T, b *storeBench) {
	_, first, _ := b.fetching()
	if jobs := b.claimOperations(domain.OperationFetchOutput, newID(), 10); len(jobs) != 0 {
		t.Errorf("%d operations under another's lease", len(jobs))
	}
	b.Clock.Advance(time.Minute + time.Second)
	jobs := b.claimOperations(domain.OperationFetchOutput, newID(), 10)
	if len(jobs) != 1 || jobs[0].ID != first.ID || jobs[0].Tries <= first.Tries {
		t.Errorf("after the lease: %+v, want the same operation with more tries than %d", jobs, first.Tries)
	}
}

func operationRelease(t *testing.T, b *storeBench) {
	m, job, lease := b.fetching()
	next := b.Clock.Now().Add(10 * time.Second)
	release := ports.OperationRelease{ID: job.ID, Lease: lease, NextAt: next, ErrorCode: "transport"}
	foreign := release
	foreign.Lease = newID()
	wantErr(t, "a release under another lease", b.Store.ReleaseOperation(b.ctx, foreign), ports.ErrLeaseLost)
	if err := b.Store.ReleaseOperation(b.ctx, release); err != nil {
		t.Fatal(err)
	}
	b.wantTry(m, "try 1: transport, again at "+stamp(next))
	wantErr(t, "a second release", b.Store.ReleaseOperation(b.ctx, release), ports.ErrLeaseLost)
	if jobs := b.claimOperations(domain.OperationFetchOutput, newID(), 10); len(jobs) != 0 {
		t.Errorf("%d operations before they are due", len(jobs))
	}
	b.Clock.Advance(10 * time.Second)
	if jobs := b.claimOperations(domain.OperationFetchOutput, newID(), 10); len(jobs) != 1 || jobs[0].Tries <= job.Tries {
		t.Errorf("when due: %+v", jobs)
	}
	b.wantTry(m, "try 1: transport, again at "+stamp(next)) // the second is running
}

// wantTry: the newest failed try stands on the timeline.
func (b *storeBench) wantTry(m made, want string) {
	b.t.Helper()
	tries := entries(b.timeline(m), "operation")
	if len(tries) == 0 || tries[len(tries)-1].Detail != want || tries[len(tries)-1].Status != string(domain.OperationFetchOutput) {
		b.t.Errorf("operations %+v, want %q at the end", tries, want)
	}
}

func operationFinish(t *testing.T, b *storeBench) {
	m, job, lease := b.fetching()
	it := b.publish(m)
	it.Operation = &ports.OperationFinish{ID: job.ID, Lease: lease}
	b.must(it)
	if v := b.task(m); v.Task.Phase != domain.PhaseReady {
		t.Errorf("task is %s", v.Task.Phase)
	}
	b.Clock.Advance(time.Hour)
	if jobs := b.claimOperations(domain.OperationFetchOutput, newID(), 10); len(jobs) != 0 {
		t.Errorf("%d operations after the end", len(jobs))
	}
	again := b.publish(m)
	again.Operation = it.Operation
	wantErr(t, "a second finish", b.apply(again)[0].Err, ports.ErrLeaseLost)
}

func operationFinishWithLostLease(t *testing.T, b *storeBench) {
	m, job, lease := b.fetching()
	b.Clock.Advance(time.Minute + time.Second)
	second := newID()
	if jobs := b.claimOperations(domain.OperationFetchOutput, second, 10); len(jobs) != 1 {
		t.Fatalf("%d operations after the lease", len(jobs))
	}
	late := b.publish(m)
	late.Operation = &ports.OperationFinish{ID: job.ID, Lease: lease}
	before := b.head(b.project)
	wantErr(t, "a finish after the lease was lost", b.apply(late)[0].Err, ports.ErrLeaseLost)
	if v := b.task(m); v.Task.Phase == domain.PhaseReady || b.head(b.project) != before {
		t.Errorf("a finish without its lease wrote: %s, head %v", v.Task.Phase, b.head(b.project))
	}
	_, err := b.Store.Asset(b.ctx, b.project, late.Asset.ID)
	wantErr(t, "its asset", err, ports.ErrNotFound)
	good := b.publish(m)
	good.Operation = &ports.OperationFinish{ID: job.ID, Lease: second}
	wantVerdict(t, "the finish of the holder", b.apply(good)[0], domain.VerdictApplied, "")
}

func operationNotFinishedByARefusedItem(t *testing.T, b *storeBench) {
	m, job, lease := b.fetching()
	refused, _ := b.retry(m)
	refused.Operation = &ports.OperationFinish{ID: job.ID, Lease: lease}
	wantErr(t, "a retry of a running task", b.apply(refused)[0].Err, domain.ErrNotRetryable)
	good := b.publish(m)
	good.Operation = &ports.OperationFinish{ID: job.ID, Lease: lease}
	wantVerdict(t, "the finish under the same lease", b.apply(good)[0], domain.VerdictApplied, "")
}

// operationFinishedWhateverTheVerdict: work that came too late is done all the
// same, and its file is not published.
func operationFinishedWhateverTheVerdict(t *testing.T, b *storeBench) {
	m, job, lease := b.fetching()
	b.must(item(m, domain.Input{Kind: domain.InputMediaFailed, ErrorClass: domain.ClassMedia}))
	late := b.publish(m)
	late.Operation = &ports.OperationFinish{ID: job.ID, Lease: lease}
	wantVerdict(t, "a finish after the task's end", b.apply(late)[0], domain.VerdictIgnored, domain.ReasonTerminalAbsorbing)
	_, err := b.Store.Asset(b.ctx, b.project, late.Asset.ID)
	wantErr(t, "its asset", err, ports.ErrNotFound)
	b.Clock.Advance(time.Hour)
	if jobs := b.claimOperations(domain.OperationFetchOutput, newID(), 10); len(jobs) != 0 {
		t.Errorf("%d operations after the end", len(jobs))
	}
}

func operationRestartedByAdoption(t *testing.T, b *storeBench) {
	m, job, lease := b.fetching()
	give := item(m, domain.Input{Kind: domain.InputMediaFailed, ErrorClass: domain.ClassOutputExpired})
	give.Operation = &ports.OperationFinish{ID: job.ID, Lease: lease, Failed: true, ErrorCode: "gone"}
	b.must(give)
	b.must(b.resolve(m, domain.ResolveAdopt))
	jobs := b.claimOperations(domain.OperationFetchOutput, newID(), 10)
	if len(jobs) != 1 || jobs[0].Attempt.ID != m.attempt {
		t.Fatalf("operations after an adoption: %+v", jobs)
	}
}

// operationClaimedOnce: of several processes one gets the operation.
func operationClaimedOnce(t *testing.T, b *storeBench) {
	const n = 12
	for range n {
		m := b.submitted()
		b.must(b.saw(m, domain.ObservedSucceeded))
	}
	now := b.Clock.Now()
	taken := make([][]ports.OperationJob, 4)
	together(len(taken), func(i int) {
		for {
			jobs, err := b.Store.ClaimOperations(b.ctx, ports.OperationClaim{Type: domain.OperationFetchOutput, Now: now, Limit: 2, Lease: newID(), LeaseFor: time.Minute})
			if err != nil {
				t.Errorf("ClaimOperations: %v", err)
			}
			if len(jobs) == 0 {
				return
			}
			taken[i] = append(taken[i], jobs...)
		}
	})
	seen := map[domain.OperationID]bool{}
	for _, jobs := range taken {
		for _, j := range jobs {
			if seen[j.ID] {
				t.Errorf("operation %s was taken twice", j.ID)
			}
			seen[j.ID] = true
		}
	}
	if left := b.claimOperations(domain.OperationFetchOutput, newID(), n); len(seen)+len(left) != n {
		t.Errorf("%d operations were taken, %d left, want %d", len(seen), len(left), n)
	}
}
