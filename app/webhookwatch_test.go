package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// gauges remembers the newest value of each gauge and the sum of each counter.
type gauges struct {
	app.NopMetrics
	mu   sync.Mutex
	seen map[string]float64
}

func (g *gauges) Set(m *app.Metric, value float64, labels ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.seen == nil {
		g.seen = map[string]float64{}
	}
	g.seen[m.Name+" "+strings.Join(labels, " ")] = value
}

func (g *gauges) Add(m *app.Metric, n float64, labels ...string) {
	g.Set(m, g.get(m, labels...)+n, labels...)
}

func (g *gauges) get(m *app.Metric, labels ...string) float64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.seen[m.Name+" "+strings.Join(labels, " ")]
}

// acmeMain is the account of the bundle's attempts.
var acmeMain = ports.AccountRef{Provider: "acme", AccountID: "main"}

// ends are results as if that many attempts had ended, learned from the source.
func ends(n int, source domain.Source) []ports.Result {
	results := make([]ports.Result, n)
	for i := range results {
		results[i].Decision = domain.Decision{Source: source, StatusChanged: true, Attempt: domain.Attempt{
			ID: domain.AttemptID{ID: newID()}, Provider: acmeMain.Provider, AccountID: acmeMain.AccountID, Status: domain.AttemptSucceeded,
		}}
	}
	return results
}

// told are results of deliveries about attempts that stand as they stood.
func told(n int, kind domain.VerdictKind, reason domain.Reason, status domain.AttemptStatus) []ports.Result {
	results := ends(n, domain.SourceWebhook)
	for i := range results {
		d := &results[i].Decision
		d.StatusChanged, d.Verdict, d.Attempt.Status = false, domain.Verdict{Kind: kind, Reason: reason}, status
	}
	return results
}

func watch(t *testing.T, b *bundle, health ports.WebhookHealth) *app.WebhookWatch {
	t.Helper()
	w, err := app.NewWebhookWatch(app.WebhookWatchDeps{Env: b.env, Health: health, Vendors: app.NewVendors(b.vendor)}, app.WebhookWatchConfig{})
	b.must(err)
	return w
}

func TestWebhookWatchPace(t *testing.T) {
	t.Parallel()
	const webhook, poll = domain.SourceWebhook, domain.SourcePoll
	thin := func(n int) []ports.Result {
		return told(n, domain.VerdictNeedsQuery, domain.ReasonThinEvent, domain.AttemptRunning)
	}
	bearer := func(n int) []ports.Result {
		return told(n, domain.VerdictNeedsQuery, domain.ReasonNotTrusted, domain.AttemptRunning)
	}
	tests := []struct {
		name   string
		seen   [][]ports.Result
		pace   float64
		silent float64
	}{
		{"nothing", nil, 0, 0},
		{"too little to judge", [][]ports.Result{ends(7, poll)}, 0, 0},
		{"webhooks tell everything", [][]ports.Result{ends(8, webhook)}, 3, 0},
		{"webhooks tell three of four", [][]ports.Result{ends(6, webhook), ends(2, poll)}, 2, 0},
		{"webhooks tell half", [][]ports.Result{ends(4, webhook), ends(4, poll)}, 1, 0},
		{"webhooks tell a quarter", [][]ports.Result{ends(2, webhook), ends(6, poll)}, 0.75, 0},
		{"queries find everything", [][]ports.Result{ends(8, poll)}, 0.5, 1},
		{"the slow loop finds everything", [][]ports.Result{ends(8, domain.SourceReconcile)}, 0.5, 1},
		{"webhooks come after the query", [][]ports.Result{ends(8, poll), told(8, domain.VerdictIgnored, domain.ReasonTerminalAbsorbing, domain.AttemptSucceeded)}, 3, 0},
		{"webhooks ask for the query", [][]ports.Result{ends(8, poll), thin(8)}, 3, 0},
		{"unsigned webhooks ask for the query", [][]ports.Result{ends(8, poll), bearer(8)}, 1, 0},
		{"a flood of unsigned webhooks", [][]ports.Result{ends(8, poll), bearer(1000)}, 1, 0},
		{"unsigned webhooks of a quarter", [][]ports.Result{ends(8, poll), bearer(2)}, 0.75, 0},
		{"news on the way", [][]ports.Result{ends(8, poll), told(20, domain.VerdictApplied, "", domain.AttemptRunning)}, 0.5, 1},
		{"orphans", [][]ports.Result{ends(8, poll), {{Decision: domain.Decision{Source: webhook}}}}, 0.5, 1},
		{"faults", [][]ports.Result{{{Err: errAway, Decision: ends(1, webhook)[0].Decision}}}, 0, 0},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			g := &gauges{}
			b.env.Metrics = g
			w := watch(t, b, b.store)
			for _, results := range tt.seen {
				w.Committed(results)
			}
			b.must(w.Step(b.ctx()))
			if got := w.Pace(acmeMain); got != tt.pace {
				t.Errorf("pace %v, want %v", got, tt.pace)
			}
			if got := g.get(app.MetricWebhookSilence, "acme", "main"); got != tt.silent {
				t.Errorf("silence %v, want %v", got, tt.silent)
			}
			if silences, err := b.store.WebhookSilences(b.ctx()); err != nil || len(silences) != int(tt.silent) {
				t.Errorf("stored silences %v, %v", silences, err)
			}
		})
	}
}

// TestWebhookWatchForgets: an hour without an end says nothing any more; the alarm
// stands until webhooks are seen.
func TestWebhookWatchForgets(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var log bytes.Buffer
	g := &gauges{}
	b.env.Metrics, b.env.Logger = g, slog.New(slog.NewTextHandler(&log, nil))
	first, second := watch(t, b, b.store), watch(t, b, b.store)
	step := func(silent float64, pace float64) {
		t.Helper()
		for _, w := range []*app.WebhookWatch{first, second} {
			b.must(w.Step(b.ctx()))
			if got := w.Pace(acmeMain); got != pace {
				t.Errorf("pace %v, want %v", got, pace)
			}
			if got := g.get(app.MetricWebhookSilence, "acme", "main"); got != silent {
				t.Errorf("silence %v, want %v", got, silent)
			}
		}
	}
	first.Committed(ends(4, domain.SourcePoll))
	second.Committed(ends(4, domain.SourcePoll))
	b.must(second.Step(b.ctx()))
	step(1, 0.5)
	step(1, 0.5)
	b.clock.Advance(2 * time.Hour)
	step(1, 0)
	second.Committed(ends(2, domain.SourceWebhook))
	step(1, 0)
	first.Committed(ends(6, domain.SourceWebhook))
	step(0, 3)
	if warned := strings.Count(log.String(), "level=WARN"); warned != 2 {
		t.Errorf("%d warnings, want one for each change:\n%s", warned, log.String())
	}
}

// awayHealth is a store that does not answer for a while.
type awayHealth struct {
	*memory.Store
	away bool
}

func (h *awayHealth) AddWebhookCounts(ctx context.Context, counts []ports.WebhookCount) error {
	if h.away {
		return errAway
	}
	return h.Store.AddWebhookCounts(ctx, counts)
}

// TestWebhookWatchKeepsCounts: what could not be stored is stored later, once.
func TestWebhookWatchKeepsCounts(t *testing.T) {
	t.Parallel()
	b := setup(t)
	health := &awayHealth{b.store, true}
	w := watch(t, b, health)
	w.Committed(ends(3, domain.SourceWebhook))
	for range 2 {
		if err := w.Step(b.ctx()); !errors.Is(err, errAway) {
			t.Fatalf("error %v", err)
		}
	}
	w.Committed(ends(1, domain.SourcePoll))
	health.away = false
	b.must(w.Step(b.ctx()))
	b.must(w.Step(b.ctx()))
	counts, err := b.store.WebhookCounts(b.ctx(), time.Time{})
	if err != nil || len(counts) != 1 || counts[0].ByWebhook != 3 || counts[0].ByPoll != 1 {
		t.Errorf("counts %+v, %v", counts, err)
	}
}

// TestWebhookStory: with webhooks a job is asked about seldom; when they fall
// silent, often, within a minute; when they are back, seldom again.
func TestWebhookStory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.env.Now = time.Now
		b.store = memory.NewStore(time.Now)
		b.env.Webhooks = watch(t, b, b.store)
		b.must(seed(b))
		b.build(b.store, b.store)
		stop := run(b, b.submitter, b.process, b.poll, b.env.Webhooks)
		defer stop()

		const lasts, every = 3 * time.Minute, 2 * time.Second
		var began sync.Map
		b.vendor.onQuery = func(req ports.QueryRequest) (ports.QueryResult, error) {
			since, ok := began.Load(req.Attempt.ID)
			if ok && time.Since(since.(time.Time)) >= lasts {
				return succeeded(req)
			}
			return ports.QueryResult{Observation: domain.Observation{ProviderTaskID: req.Attempt.ProviderTaskID, Status: domain.ObservedRunning}}, nil
		}
		var delivering atomic.Bool
		delivering.Store(true)
		n := 0
		// minute lets time pass with ninety jobs in flight once the first have ended,
		// and counts the queries.
		minute := func() int {
			before := b.vendor.queryCount()
			for range int(time.Minute / every) {
				n++
				view, name := b.create(), fmt.Sprintf("e%d", n)
				began.Store(view.Attempt.ID, time.Now())
				time.AfterFunc(lasts, func() {
					if delivering.Load() {
						b.deliver(view.Attempt.ID, `{"event":"`+name+`","status":"succeeded","output":"https://x.example/o.mp4"}`)
					}
				})
				<-time.After(every)
			}
			return b.vendor.queryCount() - before
		}
		minute()
		minute()
		usual := minute()
		minute()
		heard := minute()
		delivering.Store(false)
		minute()
		silent := minute()
		delivering.Store(true)
		minute()
		again := minute()
		t.Logf("queries a minute: %d unknown, %d with webhooks, %d without, %d with webhooks again", usual, heard, silent, again)
		if heard > usual*2/3 {
			t.Errorf("%d queries with webhooks, %d before that was known", heard, usual)
		}
		if silent < 3*heard {
			t.Errorf("%d queries without webhooks, %d with them: a silent vendor is to be asked more", silent, heard)
		}
		if again > heard*3/2 {
			t.Errorf("%d queries once webhooks are back, %d before they went", again, heard)
		}
	})
}
