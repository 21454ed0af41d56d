package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/e2e/leasewatch"
	"github.com/aivedio/aivedio/internal/simulator"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/internal/wire"
)

// The vendor allows a third of the queries that the polling table asks for while
// jobs are young. Ours is what is left of it for certain: the burst and every call
// that can be under way are taken off.
const (
	askedTasks    = 1000
	askedQuota    = 150
	askedCalls    = 8 // of each worker
	askedBurst    = 5
	askedRate     = askedQuota - askedBurst - 2*askedCalls
	askedPatience = 3 * time.Minute
)

// Without a single webhook, two workers bring every task to its end inside the
// vendor's quota, and no job is asked for twice while it is leased.
func TestPollAloneInsideQuota(t *testing.T) {
	f, watch := newAskingFleet(t, fmt.Sprintf("AIVEDIO_POLLS=%d", askedCalls))
	ctx, cancel := context.WithTimeout(t.Context(), askedPatience)
	defer cancel()
	db, err := pgx.Connect(ctx, f.deployment.Database)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close(context.WithoutCancel(ctx)) //nolint:errcheck // read only
	began := time.Now()
	f.mustPostAll(ctx, t, askedTasks)
	err = await(ctx, "every task to be terminal", func() (bool, error) {
		var open, made int
		err := db.QueryRow(ctx, "SELECT count(*) FILTER (WHERE terminal_at IS NULL), count(*) FROM generation_tasks").Scan(&open, &made)
		return open == 0 && made == askedTasks, err
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d tasks ended within %v", askedTasks, time.Since(began).Round(time.Second))
	f.stopAll()

	queries := f.auditQuota(ctx, t)
	log, err := watch.Read(ctx)
	if err != nil {
		t.Fatal(err)
	}
	found := log.Match(queries)
	t.Logf("%d queries: %v", len(queries), found)
	if found.Repeated+found.Stolen+found.Unclaimed > 0 {
		t.Errorf("leases were broken: %v", found)
	}
	var delivered, wrong int
	if err := db.QueryRow(ctx, "SELECT (SELECT count(*) FROM provider_callback_inbox), (SELECT count(*) FROM generation_tasks WHERE status <> 'failed')").Scan(&delivered, &wrong); err != nil {
		t.Fatal(err)
	}
	if delivered > 0 || wrong > 0 {
		t.Errorf("%d deliveries, %d tasks that did not end as the vendor said", delivered, wrong)
	}
	(&run{fleet: f}).auditDoctor(t)
	f.noErrorLogged()
}

// newAskingFleet starts a vendor whose jobs fail after some seconds without a
// word, one process that submits and two that poll, with their leases watched.
func newAskingFleet(t *testing.T, env ...string) (*fleet, *leasewatch.Watch) {
	t.Helper()
	Binary(t) // before the services: it skips under -short
	redis, db := testenv.Redis(t), testenv.EmptyPostgres(t)
	f := &fleet{t: t, redis: redis, processes: map[string][]*launch.Process{}, api: newBalancer(t), callback: newBalancer(t)}
	f.public = f.callback.URL()
	secrets := launch.NewSecrets()
	f.startVendor(secrets, []string{"--queue", "300ms", "--run", "8s", "--fault-webhooks-off", "1", "--fault-fail", "1", "--quota-queries", fmt.Sprint(askedQuota)})
	f.deployment = launch.Deployment{
		Secrets: secrets, Database: db.URL, Redis: "redis://" + redis.Addr + "/0", RedisPrefix: "e2e-" + strings.ReplaceAll(wire.NewID().String(), "-", ""),
		Vendor: f.vendor.URL(), Public: f.callback.URL(), Queries: launch.Rate{PerSecond: askedRate, Burst: askedBurst},
	}
	f.config = Deploy(t, f.deployment)
	f.mustCommand("migrate", "--config", f.config)
	f.createKey()
	conn, err := pgx.Connect(t.Context(), db.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // read only
	watch, err := leasewatch.Install(t.Context(), conn)
	if err != nil {
		t.Fatal(err)
	}
	f.startRole("api", "api,submit", 1, env...)
	f.startRole("poll", "poll", 2, env...)
	f.api.serve(f.processes["api"])
	return f, watch
}

// startRole starts n processes and files them under the name.
func (f *fleet) startRole(name, roles string, n int, env ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), startTimeout)
	defer cancel()
	for i := range n {
		p := launch.New(launch.Spec{
			Name: fmt.Sprintf("%s-%d", name, i+1), Path: Binary(f.t), Env: append([]string{"AIVEDIO_STOP_TIMEOUT=" + stopGrace.String()}, env...),
			Args: []string{"serve", "--config", f.config, "--listen", "127.0.0.1:0", "--roles", roles},
		})
		f.processes[name] = append(f.processes[name], p)
		f.endWithTest(p)
		if err := p.Start(ctx); err != nil {
			f.t.Fatal(err)
		}
	}
}

// mustPostAll submits n tasks, some at a time.
func (f *fleet) mustPostAll(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for i := range n {
		g.Go(func() error {
			status, answer, err := f.post(ctx, "/projects/"+f.project+"/tasks", fmt.Sprintf("shot-%d", i),
				fmt.Sprintf(`{"provider":"replicate","model":"sim/video","input":{"prompt":%q}}`, prompt(i)))
			if err == nil && status != http.StatusCreated {
				err = fmt.Errorf("submit %d answered %d: %s", i, status, answer)
			}
			return err
		})
	}
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
}

// auditQuota asks the vendor what it saw, and returns its log.
func (f *fleet) auditQuota(ctx context.Context, t *testing.T) []simulator.QueryEntry {
	t.Helper()
	var state struct{ Accounts map[string]simulator.Usage }
	if err := f.ask(ctx, "/_sim/quota", &state); err != nil {
		t.Fatal(err)
	}
	var seen simulator.Traffic
	for _, u := range state.Accounts {
		if u.Queries.Accepted > 0 {
			seen = u.Queries
		}
	}
	t.Logf("the vendor saw %d queries, %d in the worst second and %d in the worst 100 ms", seen.Accepted, seen.WorstSecond, seen.WorstBurst)
	switch {
	case seen.Over > 0 || seen.WorstSecond > askedQuota:
		t.Errorf("%d queries above a quota of %d/s: %+v", seen.Over, askedQuota, seen)
	case seen.WorstSecond < askedQuota/2:
		t.Errorf("at most %d queries a second: a quota of %d/s held nobody back", seen.WorstSecond, askedQuota)
	}
	var log struct{ Queries []simulator.QueryEntry }
	if err := f.ask(ctx, "/_sim/queries", &log); err != nil {
		t.Fatal(err)
	}
	if len(log.Queries) != seen.Accepted {
		t.Errorf("%d queries are logged, %d were counted", len(log.Queries), seen.Accepted)
	}
	return log.Queries
}
