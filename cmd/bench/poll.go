package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/e2e/leasewatch"
	"github.com/aivedio/aivedio/internal/testenv/services"
)

// pollCmd is the scenario of a vendor whose webhooks do not come: everything is
// learned by asking, inside the quota that the vendor measures.
type pollCmd struct {
	Tasks   int      `default:"10000" help:"Tasks in flight at the vendor."`
	Workers int      `default:"2" help:"Processes with the role poll."`
	Calls   int      `default:"128" help:"Queries that a worker has under way at once; fewer where the quota is small."`
	Seconds int      `default:"30" help:"How long the polling at rest is measured; the other parts last as long or less."`
	Quota   int      `default:"2000" help:"Queries that the vendor allows in any second."`
	Scarce  int      `default:"400" help:"The same, in the part where it is too little."`
	Peers   []string `default:"claim" help:"What to measure beside us: claim, which is pgbench leasing and releasing the same rows one by one." placeholder:"LIST"`
	Parts   []string `default:"rest,flood,scarce,alone,killed" help:"What to measure: polling at rest, all tasks due at once, a quota that is too small, Redis lost and found, a worker killed." placeholder:"LIST"`
	printing
}

// Run measures, prints, and says whether the figures may be used.
func (cmd pollCmd) Run(ctx context.Context, std output) error {
	if err := cmd.validate(); err != nil {
		return err
	}
	peers := slices.DeleteFunc(slices.Clone(cmd.Peers), func(p string) bool { return p == "" || !slices.Contains(cmd.Parts, partFlood) })
	return cmd.conduct(ctx, std, newReport("poll", peers...), &poll{cmd: cmd, std: std, peers: peers, asked: map[string]int64{}})
}

func (cmd pollCmd) validate() error {
	if cmd.Tasks < 1 || cmd.Workers < 2 || cmd.Calls < 1 || cmd.Seconds < 1 {
		return errors.New("at least one task, two workers, one call and one second are needed")
	}
	for _, quota := range []int{cmd.Quota, cmd.Scarce} {
		if cmd.limit(quota).perSecond < 1 {
			return fmt.Errorf("a quota of %d/s leaves nothing for %d workers", quota, cmd.Workers)
		}
	}
	for _, name := range cmd.Parts {
		if !slices.Contains(pollParts, name) {
			return fmt.Errorf("%q is no part; the parts are %v", name, pollParts)
		}
	}
	for _, p := range cmd.Peers {
		if p != "" && p != peerClaim {
			return fmt.Errorf("%q is no peer; the peer is %s", p, peerClaim)
		}
	}
	return nil
}

// limit is what we allow ourselves.
type limit struct {
	perSecond float64
	burst     int
	// calls is how many queries a worker may have under way.
	calls int
}

// limit keeps below the vendor's quota in any second, whatever the network and
// the scheduler do: what arrives in a second was permitted within it (the rate and
// the burst) or was under way when it began (every call of every worker). So a
// small quota is not left to calls that are under way, there are fewer of them.
func (cmd pollCmd) limit(quota int) limit {
	burst := max(1, quota/40)
	calls := max(1, min(cmd.Calls, quota/8/cmd.Workers))
	return limit{perSecond: float64(quota - burst - cmd.Workers*calls), burst: burst, calls: calls}
}

// pollProjects is over how many projects the tasks are spread.
const pollProjects = 500

// poll is one run.
type poll struct {
	cmd      pollCmd
	std      output
	peers    []string
	dir      string
	secrets  launch.Secrets
	cluster  *cluster
	redis    *services.Redis
	vendor   *pollVendor
	workers  *pollWorkers
	leases   *leasewatch.Watch
	peer     *pgbench
	observer *observer
	settings settings
	phases   []pollPhase
	claims   []figure         // of the peer, per second
	asked    map[string]int64 // when each job was last asked for
	killed   *killing
	outage   *outage
}

// measure prepares, measures and reports.
func (p *poll) measure(ctx context.Context, r *report, dir string) error {
	p.dir = dir
	if err := p.prepare(ctx); err != nil {
		return err
	}
	if err := p.run(ctx); err != nil {
		return err
	}
	p.std.say("checking")
	if err := p.check(ctx, r); err != nil {
		return err
	}
	p.summarise(r)
	return nil
}

// complaints is what the processes logged.
func (p *poll) complaints() string {
	if p.workers == nil {
		return ""
	}
	return p.workers.complaints()
}

// close stops everything that was started.
func (p *poll) close() error {
	var errs []error
	if p.workers != nil {
		errs = append(errs, p.workers.kill())
	}
	if p.vendor != nil {
		errs = append(errs, p.vendor.process.Kill())
	}
	if p.observer != nil {
		p.observer.close()
	}
	if p.redis != nil {
		errs = append(errs, p.redis.Stop())
	}
	if p.cluster != nil {
		errs = append(errs, p.cluster.Stop())
	}
	return errors.Join(errs...)
}

// prepare starts the services and the vendor, has the vendor take the jobs, and
// makes a running task for each of them.
func (p *poll) prepare(ctx context.Context) (err error) {
	if p.has(peerClaim) { // before the work, not after it
		if _, err := newPgbench(p.dir, ""); err != nil {
			return err
		}
	}
	p.secrets = launch.NewSecrets()
	p.std.say("starting PostgreSQL with fsync on, and Redis")
	if p.cluster, err = startCluster(ctx); err != nil {
		return err
	}
	if p.redis, err = services.StartRedis(ctx, services.RedisOptions{}); err != nil {
		return fmt.Errorf("start Redis: %w", err)
	}
	p.std.say("building the binary")
	binary, err := launch.Build(ctx, "aivedio", p.dir)
	if err != nil {
		return err
	}
	p.std.say("the vendor takes %d jobs", p.cmd.Tasks)
	if p.vendor, err = startPollVendor(ctx, binary, p.secrets); err != nil {
		return err
	}
	jobs, err := p.vendor.create(ctx, p.cmd.Tasks)
	if err != nil {
		return err
	}
	p.std.say("making a task for each of them")
	if err := p.seed(ctx, jobs); err != nil {
		return err
	}
	var copies []string
	if p.has(peerClaim) {
		copies = append(copies, peerDatabase)
		if err := p.cluster.copyAs(ctx, peerDatabase); err != nil {
			return err
		}
	}
	if p.settings, err = p.cluster.settings(ctx, copies...); err != nil {
		return err
	}
	p.workers = &pollWorkers{binary: binary, dir: p.dir, deployment: launch.Deployment{
		Secrets: p.secrets, Database: p.cluster.URL(oursDatabase), Redis: "redis://" + p.redis.Addr() + "/0", RedisPrefix: "bench",
		Public: "http://127.0.0.1:9", Vendor: p.vendor.process.URL(),
	}}
	if p.observer, err = newObserver(ctx, p.cluster.URL(oursDatabase)); err != nil {
		return err
	}
	if p.leases, err = leasewatch.Install(ctx, p.observer.conn); err != nil {
		return err
	}
	return p.preparePeer()
}

func (p *poll) preparePeer() (err error) {
	if !p.has(peerClaim) {
		return nil
	}
	if p.peer, err = newPgbench(p.dir, p.cluster.URL(peerDatabase)); err != nil {
		return err
	}
	return p.peer.script(peerClaim, claimScript)
}

func (p *poll) has(peer string) bool { return slices.Contains(p.peers, peer) }

func (p *poll) seconds() time.Duration { return time.Duration(p.cmd.Seconds) * time.Second }

// check looks at the database and notes who took part.
func (p *poll) check(ctx context.Context, r *report) error {
	violations, named, err := p.observer.violations(ctx)
	if err != nil {
		return err
	}
	for _, v := range named {
		p.std.say("%s", v)
	}
	r.Violations = violations
	r.Settings = p.settings
	for _, w := range p.workers.all {
		r.ran(w.Command(), w.PIDs()...)
	}
	r.ran(p.vendor.process.Command(), p.vendor.process.PIDs()...)
	r.ran(commandOf(p.cluster.PID()), p.cluster.PID())
	if p.peer != nil {
		p.peer.report(r)
	}
	return nil
}
