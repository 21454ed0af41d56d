package app_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// pollOf is a poller of the bundle's store.
func (b *bundle) pollOf(work ports.Work, cfg app.PollConfig) *app.Poll {
	b.t.Helper()
	p, err := app.NewPoll(app.PollDeps{
		Env: b.env, Transitions: b.store, Work: work, Vendors: app.NewVendors(b.vendor), Durations: b.store,
	}, cfg)
	b.must(err)
	return p
}

// taskOf stores a submitted task of the project.
func (b *bundle) taskOf(project ports.Project) domain.AttemptID {
	b.t.Helper()
	cmd := b.command()
	cmd.Project = project
	res, err := b.submit.Create(b.ctx(), cmd)
	b.must(err)
	b.step(b.submitter)
	return res.View.Attempt.ID
}

// asked records the queries in their order.
func (b *bundle) asked() *[]domain.AttemptID {
	var order []domain.AttemptID
	b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
		order = append(order, req.Attempt.ID)
		return ports.QueryResult{Observation: domain.Observation{Provider: "acme", ProviderTaskID: req.Attempt.ProviderTaskID, Status: domain.ObservedRunning}}, nil
	}
	return &order
}

// However many tasks are watched and due, the k-th of the others is queried within
// 4k slots and a round; without a share of their own they would never be.
func TestPollServesTheRestWithinABound(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		slots   int
		share   float64
		starved bool
	}{{slots: 1}, {slots: 3}, {slots: 8}, {slots: 8, share: 1e-9, starved: true}} {
		t.Run(fmt.Sprintf("%d slots, share %v", tc.slots, tc.share), func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			watched, err := b.store.CreateProject(b.ctx(), ports.Project{
				ID: domain.ProjectID{ID: newID()}, TenantID: b.project.TenantID, Name: "watched", OnLateSuccess: domain.LateSuccessKeep,
			})
			b.must(err)
			const many, few = 40, 6
			for range many {
				b.taskOf(watched)
			}
			rest := map[domain.AttemptID]bool{}
			for range few {
				rest[b.taskOf(b.project)] = true
			}
			now := b.clock.Now()
			b.must(b.store.Watch(b.ctx(), ports.WatchParams{Projects: []domain.ProjectID{watched.ID}, Now: now, Until: now.Add(24 * time.Hour)}))
			order, poll := b.asked(), b.pollOf(b.store, app.PollConfig{Concurrency: tc.slots, ForOthers: tc.share})
			for range (4*few)/tc.slots + 2 {
				b.clock.Advance(time.Minute) // everything is due again
				b.step(poll)
			}
			served := map[domain.AttemptID]bool{}
			for i, id := range *order {
				if !rest[id] || served[id] {
					continue
				}
				served[id] = true
				if bound := 4*len(served) + tc.slots; i >= bound {
					t.Errorf("number %d of the rest was query %d, the bound is %d", len(served), i+1, bound)
				}
			}
			if want := few; tc.starved != (len(served) < want) {
				t.Errorf("%d of the rest were queried", len(served))
			}
		})
	}
}

func TestPollWatchedFirst(t *testing.T) {
	t.Parallel()
	b := setup(t)
	watched, err := b.store.CreateProject(b.ctx(), ports.Project{
		ID: domain.ProjectID{ID: newID()}, TenantID: b.project.TenantID, Name: "watched", OnLateSuccess: domain.LateSuccessKeep,
	})
	b.must(err)
	for range 20 {
		b.taskOf(b.project)
	}
	b.clock.Advance(time.Second)
	first := b.taskOf(watched)
	now := b.clock.Now()
	b.must(b.store.Watch(b.ctx(), ports.WatchParams{Projects: []domain.ProjectID{watched.ID}, Now: now, Until: now.Add(time.Hour)}))
	order, poll := b.asked(), b.pollOf(b.store, app.PollConfig{Concurrency: 2})
	b.clock.Advance(10 * time.Second)
	b.step(poll)
	if !slices.Contains(*order, first) {
		t.Errorf("the first queries were %v, without the watched %v", *order, first)
	}
}

// A round that panics after it has taken slots must not keep them.
func TestPollPanicLeaksNoSlot(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.submitted()
	b.clock.Advance(time.Minute)
	work := &panicking{Store: b.store, left: 3}
	poll := b.pollOf(work, app.PollConfig{Concurrency: 2})
	for work.left > 0 {
		func() {
			defer func() { _ = recover() }()
			_, _ = poll.Step(b.ctx())
		}()
	}
	ctx, cancel := context.WithTimeout(b.ctx(), 10*time.Second)
	defer cancel()
	if n, err := poll.Step(ctx); n != 1 || err != nil {
		t.Errorf("worked %d, %v", n, err)
	}
}

// panicking is a store whose first claims panic.
type panicking struct {
	*memory.Store
	left int
}

func (p *panicking) Claim(ctx context.Context, params ports.ClaimParams) ([]ports.Job, error) {
	if p.left > 0 {
		p.left--
		panic("claim")
	}
	return p.Store.Claim(ctx, params)
}

// Answers that come about together share transactions.
func TestPollAnswersShareTransactions(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 24 {
		b.submitted()
	}
	var mu sync.Mutex
	applies, most := 0, 0
	counting := &flaky{Store: b.store, before: func(_ int, items []ports.Item) error {
		mu.Lock()
		defer mu.Unlock()
		applies, most = applies+1, max(most, len(items))
		return nil
	}}
	b.build(counting, b.store)
	b.clock.Advance(time.Minute)
	if n := b.step(b.poll); n != 24 {
		t.Fatalf("worked %d, want 24", n)
	}
	if applies > 12 || most < 2 {
		t.Errorf("24 answers took %d transactions, the largest with %d", applies, most)
	}
}

// meterSpy records what is measured.
type meterSpy struct {
	app.NopMetrics
	mu       sync.Mutex
	observed map[string][]float64
	set      map[string]float64
	peak     map[string]float64
}

func newMeterSpy() *meterSpy {
	return &meterSpy{observed: map[string][]float64{}, set: map[string]float64{}, peak: map[string]float64{}}
}

func (m *meterSpy) Observe(metric *app.Metric, value float64, labels ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprint(metric.Name, labels)
	m.observed[key] = append(m.observed[key], value)
}

func (m *meterSpy) Set(metric *app.Metric, value float64, labels ...string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	key := fmt.Sprint(metric.Name, labels)
	m.set[key], m.peak[key] = value, max(m.peak[key], value)
}

func TestPollMeters(t *testing.T) {
	t.Parallel()
	b := setup(t)
	spy := newMeterSpy()
	b.env.Metrics = spy
	b.submitted()
	due := b.submitted().Attempt.NextPollAt
	b.clock.Advance(due.Sub(b.clock.Now()) + 3*time.Second)
	b.step(b.pollOf(b.store, app.PollConfig{}))
	if got := spy.observed["aivedio_poll_lag_seconds[acme]"]; !slices.Equal(got, []float64{3, 3}) {
		t.Errorf("lags %v, want 3 s twice", got)
	}
	const running = "aivedio_polls_in_flight[acme]"
	if spy.peak[running] < 1 || spy.set[running] != 0 {
		t.Errorf("in flight: at most %v, at the end %v", spy.peak[running], spy.set[running])
	}
}

// What is learned of a model shapes the pace: seldom early in a job's life, often
// when it should be done.
func TestPollPaceFollowsTheModel(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.vendor.caps.Policy.SubmittedWindow = time.Second
	learning := b.submitted()
	b.vendor.onQuery = succeeded
	b.clock.Advance(200 * time.Second)
	b.step(b.poll)
	b.want(learning.Task.ID, providerDone, domain.AttemptSucceeded)
	_, err := b.store.LearnDurations(b.ctx(), b.clock.Now(), 100)
	b.must(err)

	order := b.asked()
	view := b.submitted()
	policy := domain.DefaultPolicy()
	poll := b.pollOf(b.store, app.PollConfig{})
	for _, step := range []struct {
		age, want time.Duration
	}{
		{20 * time.Second, policy.Running.Cap},
		{90 * time.Second, policy.Running.Cap},
		{180 * time.Second, policy.Running.Base},
		{390 * time.Second, policy.Running.Base},
		{450 * time.Second, policy.Running.Cap},
	} {
		b.clock.Advance(view.Attempt.SubmittedAt.Add(step.age).Sub(b.clock.Now()))
		b.step(poll)
		if got := b.view(view.Task.ID).Attempt.NextPollAt.Sub(b.clock.Now()); got != step.want {
			t.Errorf("at %v the next query is %v away, want %v", step.age, got, step.want)
		}
	}
	if len(*order) != 5 {
		t.Errorf("%d queries, want 5", len(*order))
	}
}
