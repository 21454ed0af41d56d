package app_test

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// deliveryOf is a delivery to the account's URL.
func deliveryOf(body string) app.DeliverCommand {
	return app.DeliverCommand{Provider: "acme", Account: "main", Body: []byte(body)}
}

const doneByWebhook = `{"event":"done","job":"job-1","status":"succeeded","output":"https://x.example/o.mp4"}`

// Webhook and poll meet (12.7.5): whichever comes first decides, the other finds
// nothing to do, and one output is fetched once.
func TestWebhookAndPollMeet(t *testing.T) {
	t.Parallel()
	for name, order := range map[string]func(*bundle, domain.AttemptID){
		"webhook first": func(b *bundle, a domain.AttemptID) {
			b.deliver(a, doneByWebhook)
			b.step(b.process)
			b.step(b.poll)
		},
		"poll first": func(b *bundle, a domain.AttemptID) {
			b.step(b.poll)
			b.deliver(a, doneByWebhook)
			b.step(b.process)
		},
		"webhook while the query is under way": func(b *bundle, a domain.AttemptID) {
			b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
				b.deliver(a, doneByWebhook)
				b.step(b.process)
				return ports.QueryResult{Observation: domain.Observation{ProviderTaskID: "job-1", Status: domain.ObservedRunning}}, nil
			}
			b.step(b.poll)
		},
		"twice each": func(b *bundle, a domain.AttemptID) {
			for range 2 {
				b.deliver(a, doneByWebhook)
				b.step(b.poll)
				b.step(b.process)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.vendor.onQuery = succeeded
			view := b.submitted()
			b.clock.Advance(10 * time.Second)
			order(b, view.Attempt.ID)
			got := b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
			if got.Attempt.NextPollAt != nil {
				t.Error("polls go on after the verdict")
			}
			page, err := b.store.After(b.ctx(), b.project.ID, domain.Cursor{}, 100)
			b.must(err)
			ends := 0
			for _, e := range page.Events {
				if e.Phase == domain.PhaseProviderSucceeded {
					ends++
				}
			}
			ops, err := b.store.ClaimOperations(b.ctx(), ports.OperationClaim{
				Type: domain.OperationFetchOutput, Now: b.clock.Now(), Limit: 10, Lease: newID(), LeaseFor: time.Minute,
			})
			b.must(err)
			if ends != 1 || len(ops) != 1 {
				t.Errorf("%d events of the success and %d fetches, want one each", ends, len(ops))
			}
		})
	}
}

// A delivery that proves little only asks for a query.
func TestHintBringsThePollForward(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.submitted()
	b.clock.Advance(time.Minute)
	b.step(b.poll)
	b.clock.Advance(3 * time.Second)
	if n := b.step(b.poll); n != 0 {
		t.Fatal("due too early for this test")
	}
	b.vendor.onQuery = succeeded
	b.deliver(view.Attempt.ID, `{"event":"1","job":"job-1","status":"succeeded","output":"https://evil.example/","trust":"bearer"}`)
	b.step(b.process)
	b.want(view.Task.ID, inProgress, domain.AttemptRunning)
	b.step(b.poll)
	got := b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
	if got.Attempt.Outputs[0].URL != "https://cdn.acme.example/out.mp4" {
		t.Errorf("the output is the hint's: %v", got.Attempt.Outputs)
	}
}

// Text that no database keeps does not stop the news.
func TestObservationIsMadeStorable(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
		return ports.QueryResult{Observation: domain.Observation{
			ProviderTaskID: req.Attempt.ProviderTaskID, Status: domain.ObservedSucceeded, ErrorCode: "\x00",
			Source: domain.SourceWebhook, Trust: domain.TrustBearer, AttemptID: domain.AttemptID{ID: newID()},
			Outputs: []domain.OutputRef{{Ref: "bad\x00", URL: "https://x.example/1"}, {Ref: "good", URL: "https://x.example/2"}, {}},
		}}, nil
	}
	view := b.submitted()
	b.clock.Advance(time.Minute)
	b.step(b.poll)
	got := b.want(view.Task.ID, providerDone, domain.AttemptSucceeded)
	if len(got.Attempt.Outputs) != 1 || got.Attempt.Outputs[0].Ref != "good" {
		t.Errorf("outputs %v", got.Attempt.Outputs)
	}
}
