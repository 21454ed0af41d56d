package porttest

import (
	"context"
	"errors"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func applyTests() []storeTest {
	return []storeTest{
		{"Empty", applyEmpty},
		{"WholeLife", applyWholeLife},
		{"ResultsInOrder", applyResultsInOrder},
		{"OneBadItem", applyOneBadItem},
		{"OneBadItemOfTheSameTask", applyOneBadItemOfTheSameTask},
		{"DomainError", applyDomainError},
		{"NotFound", applyNotFound},
		{"Idempotency", applyIdempotency},
		{"IdempotencyWithinBatch", applyIdempotencyWithinBatch},
		{"RefusedKeyIsFree", applyRefusedKeyIsFree},
		{"ResolutionNeedsAudit", applyResolutionNeedsAudit},
		{"RetryToken", applyRetryToken},
		{"RetryNeedsCredits", applyRetryNeedsCredits},
		{"UnchangedWritesNoEvent", applyUnchangedWritesNoEvent},
		{"Rollback", applyRollback},
		{"EndedContext", applyEndedContext},
		{"Reopen", applyReopen},
	}
}

func applyEmpty(t *testing.T, b *storeBench) {
	if results, err := b.Store.Apply(b.ctx, nil); err != nil || len(results) != 0 {
		t.Errorf("Apply of nothing: %v, %v", results, err)
	}
}

// applyWholeLife sends all of a task's life as one batch: each item sees what
// the one before has written.
func applyWholeLife(t *testing.T, b *storeBench) {
	m := b.create()
	asset := b.asset(m)
	ready := item(m, domain.Input{Kind: domain.InputMediaReady, AssetID: asset.ID})
	ready.Asset = &asset
	results := b.apply(
		b.started(m), b.accepted(m), b.progressed(m, 10), b.saw(m, domain.ObservedSucceeded),
		item(m, domain.Input{Kind: domain.InputMediaStage, Stage: domain.StagePublishing}), ready,
	)
	want := []domain.VerdictKind{domain.VerdictUnchanged, domain.VerdictApplied, domain.VerdictApplied, domain.VerdictApplied, domain.VerdictApplied, domain.VerdictApplied}
	version := int64(1)
	for i, r := range results {
		wantVerdict(t, "item "+string(rune('0'+i)), r, want[i], "")
		if (r.Event != nil) != (want[i] == domain.VerdictApplied) {
			t.Errorf("item %d: event %v", i, r.Event)
		}
		if r.Event == nil {
			continue
		}
		version++
		if r.Event.Version != version || r.Event.EventID != version || r.Decision.Task.Version != version {
			t.Errorf("item %d: version %d, event %d; want %d", i, r.Event.Version, r.Event.EventID, version)
		}
	}
	view := b.task(m)
	if view.Task.Phase != domain.PhaseReady || view.Task.AssetID != asset.ID || view.Task.LastEventID != version || view.Task.TerminalAt == nil {
		t.Errorf("task %+v", view.Task)
	}
	if len(view.Attempt.Outputs) != 1 || view.Attempt.Closing != domain.ClosingSettled {
		t.Errorf("attempt %+v", view.Attempt)
	}
	got, err := b.Store.Asset(b.ctx, b.project, asset.ID)
	if err != nil || got.Key != asset.Key || got.Size != asset.Size || string(got.SHA256) != string(asset.SHA256) || got.TaskID != m.task {
		t.Errorf("asset %+v, %v", got, err)
	}
	_, err = b.Store.Asset(b.ctx, b.newProject(b.tenant, "another"), asset.ID)
	wantErr(t, "the asset from another project", err, ports.ErrNotFound)
}

func (b *storeBench) asset(m made) ports.Asset {
	id := domain.AssetID{ID: newID()}
	return ports.Asset{
		ID: id, TenantID: b.tenant, ProjectID: m.project, TaskID: m.task, AttemptID: m.attempt, Kind: "video",
		ContentType: "video/mp4", Key: "assets/" + id.String() + ".mp4", Size: 4096, SHA256: hash(id.String()), CreatedAt: b.Clock.Now(),
	}
}

func applyResultsInOrder(t *testing.T, b *storeBench) {
	one, two, three := b.submitted(), b.submitted(), b.submitted()
	before := b.head(b.project).EventID
	results := b.apply(
		b.progressed(two, 10), b.progressed(one, 20), b.saw(three, domain.ObservedFailed),
		b.saw(two, domain.ObservedSucceeded), b.saw(one, domain.ObservedSucceeded),
	)
	for i, m := range []made{two, one, three, two, one} {
		r := results[i]
		if r.Err != nil || r.Event == nil {
			t.Fatalf("item %d: %+v", i, r)
		}
		if r.Event.TaskID != m.task || r.Decision.Task.ID != m.task || r.Event.EventID != before+int64(i)+1 {
			t.Errorf("item %d: task %s event %d, want %s %d", i, r.Event.TaskID, r.Event.EventID, m.task, before+int64(i)+1)
		}
		if r.Decision.Task.LastEventID != r.Event.EventID {
			t.Errorf("item %d: LastEventID %d, event %d", i, r.Decision.Task.LastEventID, r.Event.EventID)
		}
	}
	b.checkStream(b.events(b.project))
}

// badItem gives an attempt the vendor id of another one, which no data model can
// hold.
func (b *storeBench) badItem(m, other made) ports.Item {
	it := b.accepted(m)
	it.Input.ProviderTaskID = other.vendorID
	return it
}

func applyOneBadItem(t *testing.T, b *storeBench) {
	taken, bad, nul, good := b.submitted(), b.create(), b.submitted(), b.submitted()
	b.must(b.started(bad))
	failed := b.saw(nul, domain.ObservedFailed)
	failed.Input.Observation.ErrorCode = "a\x00b"
	before := b.head(b.project).EventID

	results := b.apply(b.progressed(taken, 10), b.badItem(bad, taken), failed, b.saw(good, domain.ObservedSucceeded))
	wantVerdict(t, "the item before", results[0], domain.VerdictApplied, "")
	wantVerdict(t, "the item after", results[3], domain.VerdictApplied, "")
	if results[1].Err == nil || results[2].Err == nil {
		t.Errorf("errors %v and %v, want both", results[1].Err, results[2].Err)
	}
	if errors.Is(results[1].Err, ports.ErrUnavailable) || errors.Is(results[2].Err, ports.ErrUnavailable) {
		t.Errorf("errors %v and %v say that a repetition may help", results[1].Err, results[2].Err)
	}
	if a := b.attempt(bad); a.ProviderTaskID != "" || a.Status != domain.AttemptSubmitting {
		t.Errorf("the refused attempt was changed: %+v", a)
	}
	if v := b.task(nul); v.Task.Phase == domain.PhaseFailed || v.Attempt.Status == domain.AttemptFailed {
		t.Errorf("the refused task was changed: %+v", v)
	}
	if head := b.head(b.project).EventID; head != before+2 {
		t.Errorf("head %d, want %d", head, before+2)
	}
	b.checkStream(b.events(b.project))
}

func applyOneBadItemOfTheSameTask(t *testing.T, b *storeBench) {
	taken, m := b.submitted(), b.create()
	results := b.apply(b.started(m), b.badItem(m, taken), b.accepted(m), b.progressed(m, 30))
	if results[1].Err == nil {
		t.Error("a vendor id that another attempt has was accepted")
	}
	wantVerdict(t, "the item after the bad one", results[2], domain.VerdictApplied, "")
	wantVerdict(t, "the last item", results[3], domain.VerdictApplied, "")
	if v := b.task(m); v.Task.Version != 3 || v.Attempt.ProviderTaskID != m.vendorID {
		t.Errorf("version %d, vendor id %s", v.Task.Version, v.Attempt.ProviderTaskID)
	}
	b.checkStream(b.events(b.project))
}

func applyDomainError(t *testing.T, b *storeBench) {
	ended, open := b.submitted(), b.submitted()
	b.must(b.saw(ended, domain.ObservedFailed))
	again, _ := b.retry(open)
	results := b.apply(b.cancel(ended), again, b.progressed(open, 10))
	wantErr(t, "a cancel of an ended task", results[0].Err, domain.ErrTaskTerminal)
	wantErr(t, "a retry of a running task", results[1].Err, domain.ErrNotRetryable)
	wantVerdict(t, "the item after two refused ones", results[2], domain.VerdictApplied, "")
}

func applyNotFound(t *testing.T, b *storeBench) {
	m := b.submitted()
	other := b.newProject(b.tenant, "another")
	foreign := b.cancel(m)
	foreign.Ref.ProjectID = other
	unknown := b.cancel(m)
	unknown.Ref.TaskID = newTaskID()
	nobody := m
	nobody.attempt = newAttemptID()
	results := b.apply(foreign, unknown, b.saw(nobody, domain.ObservedRunning), b.progressed(m, 10))
	wantErr(t, "a task of another project", results[0].Err, ports.ErrNotFound)
	wantErr(t, "an unknown task", results[1].Err, ports.ErrNotFound)
	wantErr(t, "an unknown attempt", results[2].Err, ports.ErrNotFound)
	wantVerdict(t, "the known one", results[3], domain.VerdictApplied, "")
	if v := b.task(m); v.Task.Cancel != domain.CancelNone {
		t.Errorf("another project's cancel reached the task: %s", v.Task.Cancel)
	}
}

// keyed names a command.
func (b *storeBench) keyed(it ports.Item, key, body string) ports.Item {
	it.Idempotency = b.key(key, body)
	it.Idempotency.Scope = "POST /retry"
	return it
}

func applyIdempotency(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed))
	first, next := b.retry(m)
	b.must(b.keyed(first, "k", "body"))
	second, _ := b.retry(m)
	result := b.must(b.keyed(second, "k", "body"))
	if !result.Replayed || result.Event != nil || result.Decision.Task.ID != m.task || result.Decision.Task.CurrentAttemptID != next.attempt {
		t.Errorf("replay: %+v", result)
	}
	if v := b.task(m); v.Task.AttemptCount != 2 || v.Attempt.ID != next.attempt {
		t.Errorf("%d attempts, current %s; want 2, %s", v.Task.AttemptCount, v.Attempt.ID, next.attempt)
	}
	third, _ := b.retry(m)
	results := b.apply(b.keyed(third, "k", "another body"))
	wantErr(t, "another body under a known key", results[0].Err, ports.ErrIdempotencyMismatch)
}

func applyIdempotencyWithinBatch(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed))
	first, next := b.retry(m)
	second, _ := b.retry(m)
	results := b.apply(b.keyed(first, "k", "body"), b.keyed(second, "k", "body"))
	wantVerdict(t, "the first", results[0], domain.VerdictApplied, "")
	if results[1].Err != nil || !results[1].Replayed {
		t.Errorf("the second under the same key: %+v", results[1])
	}
	if v := b.task(m); v.Task.AttemptCount != 2 || v.Attempt.ID != next.attempt {
		t.Errorf("%d attempts, want 2", v.Task.AttemptCount)
	}
}

func applyRefusedKeyIsFree(t *testing.T, b *storeBench) {
	m := b.submitted()
	early, _ := b.retry(m)
	results := b.apply(b.keyed(early, "k", "body"))
	wantErr(t, "a retry of a running task", results[0].Err, domain.ErrNotRetryable)
	b.must(b.saw(m, domain.ObservedFailed))
	later, _ := b.retry(m)
	if r := b.must(b.keyed(later, "k", "body")); r.Replayed {
		t.Error("a refused command used its key up")
	}
}

func applyResolutionNeedsAudit(t *testing.T, b *storeBench) {
	m := b.submitted()
	silent := b.resolve(m, domain.ResolveAbandon)
	silent.Audit = nil
	if results := b.apply(silent); results[0].Err == nil {
		t.Error("a resolution without an audit was accepted")
	}
	if v := b.task(m); v.Task.Phase == domain.PhaseFailed {
		t.Error("a resolution without an audit was written")
	}
	b.must(b.resolve(m, domain.ResolveAbandon))
	if v := b.task(m); v.Task.Error == nil || v.Task.Error.Code != domain.ClassAbandoned {
		t.Errorf("abandoned task %+v", v.Task)
	}
	if audits := entries(b.timeline(m), "audit"); len(audits) != 1 || audits[0].Status != string(domain.ResolveAbandon) {
		t.Errorf("audits %+v", audits)
	}
}

func applyRetryToken(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.saw(m, domain.ObservedFailed))
	again, next := b.retry(m)
	if r := b.must(again); r.Decision.NewAttempt == nil || r.Decision.NewAttempt.ID != next.attempt || r.Event == nil {
		t.Fatalf("retry: %+v", r)
	}
	b.must(b.started(next), b.accepted(next))
	it := b.saw(next, domain.ObservedRunning)
	it.Ref = ports.Ref{Provider: acme, TokenHash: hash(next.token)}
	wantVerdict(t, "news by the new attempt's token", b.apply(it)[0], domain.VerdictApplied, "")
	if a := b.attempt(next); a.No != 2 || a.TaskID != m.task || a.Status != domain.AttemptRunning {
		t.Errorf("the new attempt %+v", a)
	}
	if a := b.attempt(m); a.Status != domain.AttemptFailed {
		t.Errorf("the old attempt is %s", a.Status)
	}
}

func applyRetryNeedsCredits(t *testing.T, b *storeBench) {
	tenant := b.newTenant("poor", 5)
	p := b.params()
	p.Task.TenantID, p.Task.ProjectID = tenant, b.newProject(tenant, "project")
	m := b.createWith(p)
	b.must(b.cancel(m))
	dear, _ := b.retry(m)
	dear.Input.NewAttempt.Credits = 6
	results := b.apply(dear)
	wantErr(t, "a retry above the balance", results[0].Err, ports.ErrCredits)
	if v := b.task(m); v.Task.AttemptCount != 1 || v.Task.Phase != domain.PhaseCanceled {
		t.Errorf("the task was changed: %+v", v.Task)
	}
	_, err := b.Store.Attempt(b.ctx, dear.Input.NewAttempt.ID)
	wantErr(t, "the attempt that was not paid for", err, ports.ErrNotFound)
	cheap, _ := b.retry(m)
	b.must(cheap)
}

func applyUnchangedWritesNoEvent(t *testing.T, b *storeBench) {
	m := b.submitted()
	b.must(b.progressed(m, 10))
	before := b.head(b.project)
	late := b.saw(m, domain.ObservedQueued)
	results := b.apply(b.progressed(m, 10), late)
	wantVerdict(t, "the same progress", results[0], domain.VerdictUnchanged, "")
	wantVerdict(t, "an older status", results[1], domain.VerdictIgnored, domain.ReasonRegressiveStatus)
	if results[0].Event != nil || results[1].Event != nil || b.head(b.project) != before {
		t.Errorf("an event without a change: %v, %v, head %v", results[0].Event, results[1].Event, b.head(b.project))
	}
	if a := b.attempt(m); a.PollCount < 2 {
		t.Errorf("PollCount %d: the bookkeeping of the query is lost", a.PollCount)
	}
}

func applyRollback(t *testing.T, b *storeBench) {
	b.needRollback()
	m := b.submitted()
	before, head := b.task(m), b.head(b.project)
	b.InjectRollback(1)
	_, err := b.Store.Apply(b.ctx, []ports.Item{b.progressed(m, 10), b.saw(m, domain.ObservedSucceeded)})
	wantErr(t, "a lost transaction", err, ports.ErrUnavailable)
	b.InjectRollback(0)
	after := b.task(m)
	if after.Task.Version != before.Task.Version || after.Attempt.Status != before.Attempt.Status || b.head(b.project) != head {
		t.Errorf("a lost transaction left something: %+v, head %v", after, b.head(b.project))
	}
	b.must(b.progressed(m, 10))
	b.checkStream(b.events(b.project))
}

func applyEndedContext(t *testing.T, b *storeBench) {
	m := b.submitted()
	ctx, cancel := context.WithCancel(b.ctx)
	cancel()
	if _, err := b.Store.Apply(ctx, []ports.Item{b.progressed(m, 10)}); err == nil {
		t.Error("Apply with an ended context succeeded")
	}
	if v := b.task(m); v.Task.Version != 2 {
		t.Errorf("Apply with an ended context wrote version %d", v.Task.Version)
	}
}

func applyReopen(t *testing.T, b *storeBench) {
	if b.Reopen == nil {
		t.Skip("nothing of this store outlives the process")
	}
	m := b.submitted()
	b.must(b.progressed(m, 10))
	want, head := b.task(m), b.head(b.project)
	b.Store = b.Reopen(t)
	if got := b.task(m); got.Task.Version != want.Task.Version || *got.Task.Progress != 10 || b.head(b.project) != head {
		t.Errorf("after opening anew: %+v, head %v; want %+v, %v", got, b.head(b.project), want, head)
	}
	if r := b.must(b.progressed(m, 30)); r.Event == nil && r.Decision.Attempt.DeferredProgress == nil {
		t.Errorf("after opening anew: %+v", r)
	}
	b.checkStream(b.events(b.project))
}
