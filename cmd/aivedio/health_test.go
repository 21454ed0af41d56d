package main

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/breaker"
	"github.com/aivedio/aivedio/adapters/pgstore"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// The settings of the file reach the gate, the others stay, and what cannot be meant
// is named.
func TestHealthFromFile(t *testing.T) {
	t.Parallel()
	cfg, err := LoadConfig(configFrom(t, "health: {failures: 3, auth_open_for: 2m, malformed: 7, quarantine_probe: 90s}"))
	if err != nil {
		t.Fatal(err)
	}
	gate, wire, normal := cfg.Health.gate(), cfg.Health.tripwire(), domain.HealthPolicy{}.WithDefaults()
	if wire.Consecutive != 3 || gate.Malformed != 7 || gate.Policy.Quarantine != 90*time.Second ||
		gate.Policy.Auth != (domain.Interval{Base: 2 * time.Minute, Cap: normal.Auth.Cap}) || gate.Policy.Transport != normal.Transport {
		t.Errorf("%+v, %+v", gate, wire)
	}
	if err := gate.Validate(); err != nil {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"failures: 0": "failures", "failure_ratio: 1.5": "failure_ratio", "open_for: 10m": "open_most",
		"auth_open_most: 1s": "auth_open_most", "throttle_window: 1ms": "throttle_window",
	} {
		cfg, err := LoadConfig(configFrom(t, "health: {"+text+"}"))
		if err != nil {
			t.Fatal(err)
		}
		if err := cfg.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// moodyVendor answers every query in the same way.
type moodyVendor struct {
	queries atomic.Int64
	refuses atomic.Bool
}

var (
	_ ports.Provider  = (*moodyVendor)(nil)
	_ ports.Providers = (*moodyVendor)(nil)
)

func (v *moodyVendor) Capabilities() ports.Capabilities { return ports.Capabilities{Name: "moody"} }

func (v *moodyVendor) Submit(_ context.Context, req ports.SubmitRequest) (ports.SubmitResult, error) {
	return ports.SubmitResult{ProviderTaskID: "job-" + req.Attempt.ID.String()}, nil
}

func (v *moodyVendor) Query(context.Context, ports.QueryRequest) (ports.QueryResult, error) {
	v.queries.Add(1)
	if v.refuses.Load() {
		return ports.QueryResult{}, &ports.ProviderError{Class: ports.ClassAuth}
	}
	return ports.QueryResult{Observation: domain.Observation{Status: domain.ObservedRunning}}, nil
}

func (v *moodyVendor) Verify(ports.VerifyRequest) (ports.Delivery, error) {
	return ports.Delivery{}, errors.New("not called here")
}

func (v *moodyVendor) Decode(ports.InboxRow) (domain.Observation, bool, error) {
	return domain.Observation{}, true, nil
}

func (v *moodyVendor) Provider(name string) (ports.Provider, bool) { return v, name == "moody" }
func (v *moodyVendor) Names() []string                             { return []string{"moody"} }
func (v *moodyVendor) Accounts(string) []ports.Account             { return []ports.Account{{ID: "main"}} }

// caller is what one process that polls consists of.
type caller struct {
	store *pgstore.Store
	poll  *app.Poll
}

// newCaller opens a process on the database, with a gate that runs.
func newCaller(t *testing.T, url string, vendor *moodyVendor, now func() time.Time) caller {
	t.Helper()
	ring := pgstore.Keyring{Current: "1", Keys: map[string][]byte{"1": make([]byte, 32)}}
	store, err := pgstore.Open(context.WithoutCancel(t.Context()), pgstore.Config{URL: url, Conns: 4, CallbackConns: 1, Keyring: ring, NewID: wire.NewID, Now: now})
	if err != nil {
		t.Fatal(err)
	}
	env := app.Env{NewID: wire.NewID, Now: now}
	gate, err := app.NewGate(app.GateDeps{
		Env: env, Health: store, NewTripwire: func() ports.Tripwire { return breaker.New(breaker.Config{}) },
	}, app.GateConfig{})
	if err != nil {
		t.Fatal(err)
	}
	poll, err := app.NewPoll(app.PollDeps{
		Env: env, Transitions: store, Work: store, Vendors: app.NewVendors(vendor), Gate: gate,
	}, app.PollConfig{Concurrency: 1})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var running sync.WaitGroup
	running.Go(func() {
		if err := gate.Run(ctx); err != nil {
			t.Errorf("gate: %v", err)
		}
	})
	t.Cleanup(func() {
		cancel()
		running.Wait()
		store.Close()
	})
	return caller{store, poll}
}

func (c caller) step(t *testing.T) int {
	t.Helper()
	n, err := c.poll.Step(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// TestGatesOfTwoProcesses: a credential that one process finds refused is left
// alone by another within a second, and of both one probes it.
func TestGatesOfTwoProcesses(t *testing.T) {
	t.Parallel()
	db := testenv.Postgres(t)
	var ahead atomic.Int64
	now := func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	vendor := &moodyVendor{}
	one, two := newCaller(t, db.URL, vendor, now), newCaller(t, db.URL, vendor, now)
	const tasks = 60
	submitAll(t, one.store, vendor, now, tasks)
	ahead.Add(int64(time.Minute)) // all are due

	vendor.refuses.Store(true)
	one.step(t)
	opened := time.Now()
	for two.step(t) > 0 {
		if time.Since(opened) > 10*time.Second {
			t.Fatal("the other process does not stop")
		}
	}
	if took := time.Since(opened); took > time.Second {
		t.Errorf("the other process stopped after %v", took)
	}
	asked := vendor.queries.Load()
	if asked >= tasks {
		t.Fatalf("all %d tasks were asked about, so that the end of the queries proves nothing", asked)
	}

	both := func() {
		t.Helper()
		var wg sync.WaitGroup
		for _, c := range []caller{one, two, one, two} {
			wg.Go(func() {
				if _, err := c.poll.Step(t.Context()); err != nil {
					t.Errorf("poll: %v", err)
				}
			})
			if c == two {
				wg.Wait() // a process does one round at a time
			}
		}
	}
	ahead.Add(int64(61 * time.Second))
	both()
	if n := vendor.queries.Load() - asked; n != 1 {
		t.Errorf("%d queries probed, want 1", n)
	}
	rows, err := one.store.AccountHealth(t.Context())
	for began := time.Now(); err == nil && (len(rows) != 1 || rows[0].Opens != 2); rows, err = one.store.AccountHealth(t.Context()) {
		if time.Since(began) > 5*time.Second {
			t.Fatalf("the failed probe is not stored: %+v", rows)
		}
	}
	if err != nil {
		t.Fatal(err)
	}

	vendor.refuses.Store(false)
	asked = vendor.queries.Load()
	ahead.Add(int64(2*time.Minute + time.Second))
	for began := time.Now(); vendor.queries.Load() < asked+10; both() {
		if time.Since(began) > 10*time.Second {
			t.Fatalf("%d queries since the credential is good again", vendor.queries.Load()-asked)
		}
	}
}

// submitAll has the vendor accept that many tasks.
func submitAll(t *testing.T, store *pgstore.Store, vendor *moodyVendor, now func() time.Time, n int) {
	t.Helper()
	ctx, env := t.Context(), app.Env{NewID: wire.NewID, Now: now}
	tokens, err := app.NewCallbackTokens([]byte("0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	submit, err := app.NewSubmit(app.SubmitDeps{Env: env, Transitions: store, Vendors: app.NewVendors(vendor), Tokens: tokens}, app.SubmitConfig{})
	if err != nil {
		t.Fatal(err)
	}
	submitter, err := app.NewSubmitter(app.SubmitterDeps{Env: env, Transitions: store, Work: store, Providers: vendor, Tokens: tokens}, app.SubmitterConfig{Concurrency: n})
	if err != nil {
		t.Fatal(err)
	}
	tenant, err := store.CreateTenant(ctx, ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: "one", Credits: 1000})
	if err != nil {
		t.Fatal(err)
	}
	project, err := store.CreateProject(ctx, ports.Project{ID: domain.ProjectID{ID: wire.NewID()}, TenantID: tenant.ID, Name: "film", OnLateSuccess: domain.LateSuccessKeep})
	if err != nil {
		t.Fatal(err)
	}
	for range n {
		if _, err := submit.Create(ctx, app.CreateCommand{Project: project, Provider: "moody", Model: "m", Input: ports.TaskInput{Prompt: "a kite"}}); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := submitter.Step(ctx); err != nil || got != n {
		t.Fatalf("%d of %d submitted, %v", got, n, err)
	}
}
