package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/internal/wire"
)

// fleetRoles are the roles, each in processes of its own.
var fleetRoles = []string{"api", "callback", "submit", "process", "poll", "relay", "dispatch", "gateway", "media", "sweep"}

// stopGrace is the stop time-out of the processes.
const stopGrace = 10 * time.Second

// fleet is a whole system: services, a vendor, and processes of every role behind
// balancers.
type fleet struct {
	t          *testing.T
	deployment launch.Deployment
	config     string
	group      string // prefix of the bus's consumer groups
	redis      *testenv.RedisServer
	rocket     *testenv.RocketMQServer
	vendor     *launch.Process
	gate       *gate
	tap        *tap   // nil unless asked for
	public     string // where the vendor finds the callbacks
	processes  map[string][]*launch.Process

	api, callback, gateway *balancer
	project, key           string
}

// fleetSpec says what a fleet is made of.
type fleetSpec struct {
	// each is the number of processes of a role, vendor and env the arguments of the
	// simulated vendor and variables of all processes.
	each        int
	vendor, env []string
	// database is an empty database; without one it is in the cluster that tests share.
	database string
	// queries bounds the queries with each account, over all processes.
	queries launch.Rate
	// tapped puts a tap between the vendor and the callbacks.
	tapped bool
}

// newFleet starts services, vendor and n processes of each role, and makes a
// project with a key.
func newFleet(t *testing.T, n int, vendorArgs []string, env ...string) *fleet {
	t.Helper()
	return newFleetOf(t, fleetSpec{each: n, vendor: vendorArgs, env: env})
}

// newFleetOf is newFleet with every choice.
func newFleetOf(t *testing.T, spec fleetSpec) *fleet {
	t.Helper()
	Binary(t) // before the services: it skips under -short
	rocket, redis := testenv.RocketMQ(t), testenv.Redis(t)
	if spec.database == "" {
		spec.database = testenv.EmptyPostgres(t).URL
	}
	name := strings.ReplaceAll(wire.NewID().String(), "-", "")
	f := &fleet{t: t, group: "e2e-" + name + "-", redis: redis, rocket: rocket, processes: map[string][]*launch.Process{}}
	f.api, f.callback, f.gateway = newBalancer(t), newBalancer(t), newBalancer(t)
	f.public = f.callback.URL()
	if spec.tapped {
		f.tap = newTap(t, f.callback.URL())
		f.public = f.tap.URL()
	}
	secrets := launch.NewSecrets()
	f.startVendor(secrets, spec.vendor)
	f.gate = newGate(t, f.vendor.URL())
	f.deployment = launch.Deployment{
		Secrets: secrets, Database: spec.database, Redis: "redis://" + redis.Addr + "/0", RedisPrefix: "e2e-" + name,
		NameServers: []string{rocket.NameServer}, Topic: "e2e-" + name, Vendor: f.gate.URL(), Public: f.public, Queries: spec.queries,
	}
	f.config = Deploy(t, f.deployment)
	f.mustCommand("migrate", "--config", f.config)
	f.createKey()
	f.startAll(spec.each, spec.env)
	f.api.serve(f.processes["api"])
	f.callback.serve(f.processes["callback"])
	f.gateway.serve(f.processes["gateway"])
	return f
}

func (f *fleet) startVendor(secrets launch.Secrets, args []string) {
	f.t.Helper()
	f.vendor = launch.New(launch.Spec{
		Name: "vendor", Path: Binary(f.t), Args: append([]string{"simulate", "--listen", "127.0.0.1:0", "--openai-webhook", f.public + "/callbacks/openaivideo/a/" + launch.Account}, args...),
		Env: []string{"AIVEDIO_SIMULATE_KEY=" + secrets.VendorKey, "AIVEDIO_SIMULATE_SECRET=" + secrets.WebhookSecret, "GOMEMLIMIT=128MiB"},
	})
	f.endWithTest(f.vendor)
	ctx, cancel := context.WithTimeout(f.t.Context(), startTimeout)
	defer cancel()
	if err := f.vendor.Start(ctx); err != nil {
		f.t.Fatal(err)
	}
}

// startAll starts the processes, a few at a time.
func (f *fleet) startAll(n int, env []string) {
	f.t.Helper()
	env = append([]string{
		"GOMAXPROCS=1", "GOMEMLIMIT=64MiB", "AIVEDIO_DATABASE_CONNS=4", "AIVEDIO_DATABASE_CALLBACK_CONNS=1",
		"AIVEDIO_ROCKETMQ_GROUP_PREFIX=" + f.group, "AIVEDIO_STOP_TIMEOUT=" + stopGrace.String(),
		// What a killed process had in hand is taken up within the test.
		"AIVEDIO_SUBMIT_TIMEOUT=5s", "AIVEDIO_SUBMIT_LEASE=10s", "AIVEDIO_MEDIA_TIMEOUT=10s", "AIVEDIO_MEDIA_LEASE=15s",
	}, env...)
	ctx, cancel := context.WithTimeout(f.t.Context(), 2*startTimeout)
	defer cancel()
	var g errgroup.Group
	g.SetLimit(4)
	for _, role := range fleetRoles {
		for i := range n {
			p := launch.New(launch.Spec{
				Name: fmt.Sprintf("%s-%d", role, i+1), Path: Binary(f.t), Env: env,
				Args: []string{"serve", "--config", f.config, "--listen", "127.0.0.1:0", "--roles", role},
			})
			f.processes[role] = append(f.processes[role], p)
			f.endWithTest(p)
			g.Go(func() error { return p.Start(ctx) })
		}
	}
	if err := g.Wait(); err != nil {
		f.t.Fatal(err)
	}
}

// endWithTest kills the process at the end and shows its output on failure.
func (f *fleet) endWithTest(p *launch.Process) {
	f.t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			f.t.Error(err)
		}
		if f.t.Failed() {
			f.t.Logf("output of %s (pids %v):\n%s", p.Name(), p.PIDs(), p.Tail(4<<10))
		}
	})
}

// stopAll ends every process in order, all at the same time, and fails the test
// for one that is late or has another exit code than 0.
func (f *fleet) stopAll() {
	f.t.Helper()
	var g errgroup.Group
	for _, role := range fleetRoles {
		for _, p := range f.processes[role] {
			g.Go(func() error {
				began := time.Now()
				if err := p.Stop(stopGrace + 2*time.Second); err != nil {
					f.t.Error(err)
				}
				f.t.Logf("%s stopped after %v", p.Name(), time.Since(began).Round(10*time.Millisecond))
				return nil
			})
		}
	}
	_ = g.Wait() // errors are the test's already
}

// noErrorLogged fails the test for each line at the level of errors.
func (f *fleet) noErrorLogged() {
	f.t.Helper()
	for _, role := range fleetRoles {
		for _, p := range f.processes[role] {
			for line := range strings.Lines(p.Tail(1 << 20)) {
				if strings.Contains(line, `"level":"ERROR"`) {
					f.t.Errorf("%s logged %s", p.Name(), line)
				}
			}
		}
	}
}

// command runs the binary as a person would, and returns its standard output and
// its exit code.
func (f *fleet) command(args ...string) (out string, code int) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(f.t), args...)
	cmd.Env = append(os.Environ(), "AIVEDIO_URL="+f.api.URL(), "AIVEDIO_PROJECT="+f.project, "AIVEDIO_API_KEY="+f.key)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		f.t.Logf("aivedio %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return stdout.String(), cmd.ProcessState.ExitCode()
}

// mustCommand is a command that has to end with 0.
func (f *fleet) mustCommand(args ...string) string {
	f.t.Helper()
	out, code := f.command(args...)
	if code != 0 {
		f.t.Fatalf("aivedio %s ended with %d: %s", strings.Join(args, " "), code, out)
	}
	return out
}

func (f *fleet) createKey() {
	f.t.Helper()
	var made struct{ Key, Project string }
	out := f.mustCommand("key", "create", "--config", f.config, "--tenant", "acme", "--project", "films", "--scopes", "read,write,operator,platform", "--json")
	if err := json.Unmarshal([]byte(out), &made); err != nil || made.Key == "" || made.Project == "" {
		f.t.Fatalf("key create printed %q: %v", out, err)
	}
	f.project, f.key = made.Project, made.Key
}
