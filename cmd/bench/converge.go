package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/e2e/load"
)

// convergeCmd is the scenario of the first sentence of the README: webhooks come
// in, one state comes out.
type convergeCmd struct {
	Seconds  int      `default:"20" help:"How long each side is measured in all, over the rounds."`
	Rounds   int      `default:"4" help:"Into how many rounds that is divided; the sides take turns, medians count."`
	Projects int      `default:"500" help:"Projects, each with a stream of its own."`
	Conns    int      `default:"256" help:"Deliveries that are under way at once."`
	Streams  int      `default:"100" help:"Clients of event streams while latency is measured."`
	Peers    []string `default:"pgbench,naive" help:"What to measure beside us: pgbench, naive." placeholder:"LIST"`
	printing
}

// Run measures, prints, and says whether the figures may be used.
func (cmd convergeCmd) Run(ctx context.Context, std output) error {
	if err := cmd.validate(); err != nil {
		return err
	}
	peers := slices.DeleteFunc(slices.Clone(cmd.Peers), func(p string) bool { return p == "" })
	return cmd.conduct(ctx, std, newReport("converge", peers...), &converge{cmd: cmd, std: std})
}

func (cmd convergeCmd) validate() error {
	if cmd.Rounds < 1 || cmd.Seconds < cmd.Rounds || cmd.Projects < 1 || cmd.Conns < 1 || cmd.Streams < 1 || cmd.Streams > cmd.Projects {
		return errors.New("at least one second a round, one project, one connection and one stream are needed, and no more streams than projects")
	}
	if cmd.Rounds > maxRounds {
		return fmt.Errorf("at most %d rounds: progress ends at 100 %%", maxRounds)
	}
	for _, p := range cmd.Peers {
		if p != "" && p != peerInsert && p != peerNaive {
			return fmt.Errorf("%q is no peer; the peers are %s and %s", p, peerInsert, peerNaive)
		}
	}
	return nil
}

// Every volley raises the progress of its tasks by progressStep percent, so that
// each delivery is a real transition; what a round and the preparations need of
// the hundred bounds the rounds.
const (
	progressStep = 6
	maxRounds    = (100/progressStep - 3) / 2
)

// tasksPerSecond is how many deliveries per second of a round are signed ahead;
// a side that is faster ends its part early.
const tasksPerSecond = 16000

// warmUp is how long each part runs before anything is counted.
const warmUp = 2 * time.Second

// converge is one run.
type converge struct {
	cmd      convergeCmd
	std      output
	dir      string
	cluster  *cluster
	system   *system
	peer     *pgbench
	people   *population
	observer *observer
	rounds   []round
	latency  latency
	settings settings

	progress     int
	acknowledged []string
	refused      int
}

// measure prepares, measures and reports.
func (c *converge) measure(ctx context.Context, r *report, dir string) error {
	c.dir = dir
	if err := c.prepare(ctx); err != nil {
		return err
	}
	if err := c.run(ctx); err != nil {
		return err
	}
	c.std.say("checking")
	if err := c.check(ctx, r); err != nil {
		return err
	}
	c.summarise(r)
	return nil
}

// complaints is what the processes logged.
func (c *converge) complaints() string {
	if c.system == nil {
		return ""
	}
	return c.system.complaints()
}

func (c *converge) roundTime() time.Duration {
	return time.Duration(c.cmd.Seconds) * time.Second / time.Duration(c.cmd.Rounds)
}

// close stops everything that was started.
func (c *converge) close() error {
	var errs []error
	if c.system != nil {
		errs = append(errs, c.system.kill())
	}
	if c.observer != nil {
		c.observer.close()
	}
	if c.cluster != nil {
		errs = append(errs, c.cluster.Stop())
	}
	return errors.Join(errs...)
}

// prepare starts the server, makes the tasks, copies them for the peer, and warms
// up both sides.
func (c *converge) prepare(ctx context.Context) (err error) {
	if len(c.cmd.Peers) > 0 && c.cmd.Peers[0] != "" { // before the work, not after it
		if _, err := newPgbench(c.dir, ""); err != nil {
			return err
		}
	}
	secrets := launch.NewSecrets()
	c.std.say("starting PostgreSQL with fsync on")
	if c.cluster, err = startCluster(ctx); err != nil {
		return err
	}
	tasks := int(tasksPerSecond * c.roundTime().Seconds())
	c.std.say("making %d tasks in %d projects", tasks, c.cmd.Projects)
	if c.people, err = seed(ctx, c.cluster.URL(oursDatabase), secrets, c.cmd.Projects, tasks); err != nil {
		return err
	}
	if err := c.cluster.copyForPeer(ctx); err != nil {
		return err
	}
	if c.settings, err = c.cluster.settings(ctx); err != nil {
		return err
	}
	c.std.say("building the binary")
	if c.system, err = newSystem(ctx, c.dir, c.cluster.URL(oursDatabase), secrets); err != nil {
		return err
	}
	if c.observer, err = newObserver(ctx, c.cluster.URL(oursDatabase)); err != nil {
		return err
	}
	c.std.say("warming up")
	if _, err := c.intake(ctx, warmUp); err != nil {
		return err
	}
	if _, err := c.drain(ctx); err != nil {
		return err
	}
	return c.preparePeer(ctx)
}

func (c *converge) preparePeer(ctx context.Context) (err error) {
	if !c.has(peerInsert) && !c.has(peerNaive) {
		return nil
	}
	if c.peer, err = newPgbench(c.dir, c.cluster.URL(peerDatabase)); err != nil {
		return err
	}
	like, err := storedRow(ctx, c.observer)
	if err != nil {
		return err
	}
	if err := c.peer.prepare(like); err != nil {
		return err
	}
	if c.has(peerInsert) {
		_, err = c.peer.insert(ctx, warmUp)
	}
	return err
}

func (c *converge) has(peer string) bool { return slices.Contains(c.cmd.Peers, peer) }

// run runs the rounds: ours, peer, ours, peer.
func (c *converge) run(ctx context.Context) error {
	for n := range c.cmd.Rounds {
		r := round{Peers: map[string]peerRun{}}
		c.std.say("round %d of %d", n+1, c.cmd.Rounds)
		if err := c.round(ctx, &r); err != nil {
			return err
		}
		c.rounds = append(c.rounds, r)
	}
	c.std.say("measuring latency")
	return c.measureLatency(ctx)
}

func (c *converge) round(ctx context.Context, r *round) (err error) {
	if r.Intake, err = c.intake(ctx, c.roundTime()); err != nil {
		return err
	}
	if c.has(peerInsert) {
		if err := c.cluster.settle(ctx); err != nil {
			return err
		}
		if r.Peers[peerInsert], err = c.peer.insert(ctx, c.roundTime()); err != nil {
			return err
		}
	}
	if r.Drain, err = c.drain(ctx); err != nil {
		return err
	}
	if c.has(peerNaive) {
		if err := c.cluster.settle(ctx); err != nil {
			return err
		}
		if r.Peers[peerNaive], err = c.peer.naive(ctx, c.roundTime()); err != nil {
			return err
		}
	}
	r.Together, err = c.together(ctx)
	return err
}

// volley signs the next news for every task.
func (c *converge) volley() (*volley, error) {
	c.progress += progressStep
	return newVolley(load.Sender{Host: c.system.callbackAddr, Secret: c.system.secrets.WebhookSecret}, c.people.tasks, c.progress, c.cmd.Conns)
}

// note keeps what a volley promised, for the check at the end.
func (c *converge) note(f fired) {
	c.acknowledged = append(c.acknowledged, f.acknowledged...)
	c.refused += f.refused
}

// check compares what was promised with what is there.
func (c *converge) check(ctx context.Context, r *report) (err error) {
	if r.Lost, err = c.observer.missing(ctx, c.acknowledged); err != nil {
		return err
	}
	violations, named, err := c.observer.violations(ctx)
	if err != nil {
		return err
	}
	for _, v := range named {
		c.std.say("%s", v)
	}
	r.Violations, r.Settings = violations, c.settings
	r.Commands, r.PIDs = c.system.commands()
	r.ran("", c.cluster.PID())
	if c.peer != nil {
		r.Commands = append(r.Commands, c.peer.commands...)
		r.ran("", c.peer.pids...)
	}
	return nil
}
