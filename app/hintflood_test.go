package app_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Whoever knows one callback URL can send thousands of lies about one job, each
// with a body of its own. They are all stored and answered, but the vendor is asked
// about that job no more often than the least gap allows, within the quota; the
// other jobs are asked for as if nothing was; and what is written about the task
// grows with the queries, not with the lies.
func TestHintFloodIsContained(t *testing.T) {
	t.Parallel()
	const (
		lies   = 3000
		lasts  = time.Minute
		rounds = 600
		others = 20
		rate   = 8
	)
	b := setup(t)
	var victim ports.TaskView
	for range others {
		b.submitted()
	}
	victim = b.submitted()

	asked := map[domain.AttemptID][]time.Time{}
	b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
		asked[req.Attempt.ID] = append(asked[req.Attempt.ID], b.clock.Now())
		return ports.QueryResult{Observation: domain.Observation{Provider: "acme", ProviderTaskID: req.Attempt.ProviderTaskID, Status: domain.ObservedRunning}}, nil
	}
	poll, err := app.NewPoll(app.PollDeps{
		Env: b.env, Transitions: b.store, Work: b.store, Vendors: app.NewVendors(b.vendor), Quota: memory.NewQuota(b.clock.Now),
	}, app.PollConfig{Patience: time.Millisecond, Quota: app.QuotaConfig{Account: app.Rate{PerSecond: rate, Burst: rate}}})
	b.must(err)

	began := b.clock.Now()
	for round := range rounds {
		for i := range lies / rounds {
			b.deliver(victim.Attempt.ID, fmt.Sprintf(`{"event":"%d-%d","status":"succeeded","output":"https://evil.example/%d.mp4","trust":"bearer"}`, round, i, i))
		}
		for b.step(b.process) > 0 {
		}
		b.step(poll)
		b.clock.Advance(lasts / rounds)
	}

	policy, total := domain.DefaultPolicy(), 0
	for id, times := range asked {
		total += len(times)
		last := began
		for _, at := range append(times, b.clock.Now()) {
			if gap := at.Sub(last); id != victim.Attempt.ID && gap > policy.Running.Cap+time.Second {
				t.Errorf("another job was not asked for during %v", gap)
			} else if id == victim.Attempt.ID && at != began && last != began && at != b.clock.Now() && gap < policy.MinPollGap {
				t.Errorf("two queries of the flooded job are only %v apart", gap)
			}
			last = at
		}
	}
	queries := len(asked[victim.Attempt.ID])
	if most := int(lasts/policy.MinPollGap) + 1; queries > most || queries < 2 {
		t.Errorf("%d queries of the flooded job, want at most %d and more than its own", queries, most)
	}
	if most := rate*int(lasts/time.Second) + rate; total > most || len(asked) != others+1 {
		t.Errorf("%d queries of %d jobs, the quota allows %d", total, len(asked), most)
	}
	b.want(victim.Task.ID, inProgress, domain.AttemptRunning)
	timeline, err := b.store.Timeline(b.ctx(), b.project.ID, victim.Task.ID)
	b.must(err)
	if n := len(timeline.Entries); n > 3*queries+10 {
		t.Errorf("%d timeline entries after %d lies and %d queries", n, lies, queries)
	}
	if v := b.view(victim.Task.ID).Task.Version; v > 4 {
		t.Errorf("the lies raised the version to %d", v)
	}
}
