package app_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

const (
	inProgress   = domain.Status(domain.PhaseRunning)
	providerDone = domain.Status(domain.PhaseProviderSucceeded)
	hasFailed    = domain.Status(domain.PhaseFailed)
)

func TestProcessAppliesAuthenticNews(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.deliver(view.Attempt.ID, `{"event":"1","job":"job-1","status":"running","progress":40}`)
	if n := b.step(b.process); n != 1 {
		t.Fatalf("took %d", n)
	}
	got := b.want(view.Task.ID, inProgress, domain.AttemptRunning)
	if got.Task.Progress == nil || *got.Task.Progress != 40 {
		t.Errorf("progress %v", got.Task.Progress)
	}
}

// The specification's 12.7.4: a callback that is faster than the answer to the
// submit.
func TestProcessCallbackBeforeTheSubmitResponse(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.create()
	b.vendor.onSubmit = func(req ports.SubmitRequest) (ports.SubmitResult, error) {
		b.deliver(req.Attempt.ID, `{"event":"1","job":"job-1","status":"succeeded","output":"https://x.example/o.mp4"}`)
		b.step(b.process)
		return ports.SubmitResult{ProviderTaskID: "job-1"}, nil
	}
	b.step(b.submitter)
	got := b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
	if got.Attempt.ProviderTaskID != "job-1" || len(got.Attempt.Outputs) != 1 {
		t.Errorf("attempt %+v", got.Attempt)
	}
}

// A callback also ends an unknown submit.
func TestProcessCallbackAfterALostSubmit(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.onSubmit = func(ports.SubmitRequest) (ports.SubmitResult, error) { return ports.SubmitResult{}, lost() }
	view := b.submitted()
	b.deliver(view.Attempt.ID, `{"event":"1","job":"job-9","status":"running"}`)
	b.step(b.process)
	b.want(view.Task.ID, inProgress, domain.AttemptRunning)
	if cases, err := b.store.Cases(b.ctx(), "", 10); err != nil || len(cases) != 0 {
		t.Errorf("cases %v, %v", cases, err)
	}
}

func TestProcessBadDeliveries(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.deliver(view.Attempt.ID, `{"event":"1","status":"foreign"}`)
	b.deliver(view.Attempt.ID, `{"event":"2", cut`)
	b.deliver(view.Attempt.ID, `{"event":"3","text":"panic in decode"}`)
	b.deliver(view.Attempt.ID, `{"event":"4","job":"job-1","status":"running"}`)
	if n := b.step(b.process); n != 4 {
		t.Fatalf("took %d", n)
	}
	b.want(view.Task.ID, inProgress, domain.AttemptRunning)
	for range 20 { // retried, then given up for a person
		b.clock.Advance(10 * time.Minute)
		b.step(b.sweep)
		b.step(b.process)
	}
	dead, err := b.store.Troubled(b.ctx(), ports.TroubledFilter{Limit: 10})
	b.must(err)
	if len(dead) != 2 {
		t.Errorf("%d dead letters, want the two that do not parse", len(dead))
	}
}

func TestProcessOrphanFindsItsTask(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.create()
	_, err := b.receive.Deliver(b.ctx(), deliveryOf(`{"event":"1","job":"job-1","status":"running"}`))
	b.must(err)
	b.step(b.process)
	b.want(view.Task.ID, queued, domain.AttemptCreated)
	b.step(b.submitter) // now the id is known
	b.clock.Advance(time.Minute)
	b.step(b.sweep)
	b.step(b.process)
	b.want(view.Task.ID, inProgress, domain.AttemptRunning)
}
