package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"time"
)

// convergeCmd is the scenario of the first sentence of the README: webhooks come
// in, one state comes out.
type convergeCmd struct {
	Seconds  int      `default:"12" help:"How long each side is measured in all, over the rounds."`
	Rounds   int      `default:"3" help:"Into how many rounds that is divided; the sides take turns, medians count."`
	Projects int      `default:"500" help:"Projects, each with a stream of its own."`
	Conns    int      `default:"256" help:"Deliveries that are under way at once."`
	Streams  int      `default:"100" help:"Clients of event streams while latency is measured."`
	Rate     float64  `default:"5000" help:"Deliveries per second of the paced run of all roles; 0 leaves it out."`
	Broker   bool     `default:"true" negatable:"" help:"Measure the way to a real RocketMQ broker, too."`
	Peers    []string `default:"pgbench,naive,river" help:"What to measure beside us: pgbench, naive, river." placeholder:"LIST"`
	printing
}

// Run measures, prints, and says whether the figures may be used.
func (cmd convergeCmd) Run(ctx context.Context, std output) error {
	if err := cmd.validate(); err != nil {
		return err
	}
	cmd.Peers = peerList(cmd.Peers)
	return cmd.conduct(ctx, std, newReport("converge", cmd.Peers...), &converge{cmd: cmd, std: std})
}

func (cmd convergeCmd) validate() error {
	if cmd.Rounds < 1 || cmd.Seconds < cmd.Rounds || cmd.Projects < 1 || cmd.Conns < 1 || cmd.Streams < 1 || cmd.Streams > cmd.Projects {
		return errors.New("at least one second a round, one project, one connection and one stream are needed, and no more streams than projects")
	}
	if cmd.Rounds > maxRounds {
		return fmt.Errorf("at most %d rounds: progress ends at 100 %%", maxRounds)
	}
	return knownPeers(cmd.Peers, peerInsert, peerNaive, peerRiver)
}

// peerList is what a flag names, without the empty word that means none.
func peerList(names []string) []string {
	return slices.DeleteFunc(slices.Clone(names), func(p string) bool { return p == "" })
}

// knownPeers refuses a word that is no peer of a scenario.
func knownPeers(names []string, known ...string) error {
	for _, p := range peerList(names) {
		if !slices.Contains(known, p) {
			return fmt.Errorf("%q is no peer; the peers are %v", p, known)
		}
	}
	return nil
}

// steadyTime is how long a paced run of all roles lasts at least.
const steadyTime = 10 * time.Second

// maxRounds is bounded by the progress: a round needs two volleys, and what comes
// before and after them seven.
const maxRounds = (maxVolleys - 7) / 2

// tasksPerSecond is how many deliveries per second of a round are signed ahead;
// a side that is faster ends its part early.
const tasksPerSecond = 16000

// warmUp is how long each part runs before anything is counted.
const warmUp = 2 * time.Second

// converge is one run.
type converge struct {
	bed
	cmd      convergeCmd
	std      output
	peer     *pgbench
	river    *river
	rounds   []round
	latency  latency
	steadily steadyFigures
	broker   *brokerFigures
}

// tasks is how many are needed: each part gives every task one delivery at most.
func (c *converge) tasks() int {
	return int(max(tasksPerSecond*c.roundTime().Seconds(), c.cmd.Rate*steadyTime.Seconds()))
}

func (c *converge) roundTime() time.Duration {
	return time.Duration(c.cmd.Seconds) * time.Second / time.Duration(c.cmd.Rounds)
}

// measure prepares, measures and reports.
func (c *converge) measure(ctx context.Context, r *report, dir string) error {
	if err := c.prepare(ctx, dir); err != nil {
		return err
	}
	for n := range c.cmd.Rounds {
		r := round{Peers: map[string]peerRun{}}
		c.std.say("round %d of %d", n+1, c.cmd.Rounds)
		if err := c.round(ctx, &r); err != nil {
			return err
		}
		c.rounds = append(c.rounds, r)
	}
	c.std.say("measuring latency")
	if err := c.measureLatency(ctx); err != nil {
		return err
	}
	if c.cmd.Rate > 0 {
		c.std.say("pacing %v deliveries per second through all roles", c.cmd.Rate)
		var err error
		if c.steadily, err = c.steady(ctx, c.cmd.Rate, max(c.roundTime(), steadyTime)); err != nil {
			return err
		}
	}
	if c.cmd.Broker {
		c.std.say("following events to a real broker")
		b, err := c.throughBroker(ctx, r, max(c.roundTime(), 5*time.Second))
		if err != nil {
			return err
		}
		c.broker = &b
	}
	c.std.say("checking")
	if err := c.check(ctx, r); err != nil {
		return err
	}
	if c.peer != nil {
		c.peer.report(r)
	}
	if c.river != nil {
		c.river.report(r)
	}
	c.summarise(r)
	return nil
}

// prepare makes the bed and warms up both sides.
func (c *converge) prepare(ctx context.Context, dir string) error {
	if c.has(peerInsert) || c.has(peerNaive) { // before the work, not after it
		if _, err := newPgbench(dir, ""); err != nil {
			return err
		}
	}
	if c.has(peerRiver) {
		c.std.say("building River's benchmark")
		var err error
		if c.river, err = newRiver(ctx, dir); err != nil {
			return err
		}
	}
	spec := bedSpec{projects: c.cmd.Projects, tasks: c.tasks(), conns: c.cmd.Conns, peers: []string{peerDatabase}}
	if err := c.open(ctx, c.std, dir, spec); err != nil {
		return err
	}
	if c.has(peerRiver) {
		if err := c.prepareRiver(ctx); err != nil {
			return err
		}
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

// prepareRiver gives River a database of its own in the same cluster.
func (c *converge) prepareRiver(ctx context.Context) (err error) {
	if err := c.cluster.exec(ctx, "postgres", "CREATE DATABASE "+riverDatabase); err != nil {
		return err
	}
	if c.settings, err = c.cluster.settings(ctx, peerDatabase, riverDatabase); err != nil {
		return err
	}
	c.river.database, err = url.Parse(c.cluster.URL(riverDatabase))
	return err
}

func (c *converge) preparePeer(ctx context.Context) (err error) {
	if !c.has(peerInsert) && !c.has(peerNaive) {
		return nil
	}
	if c.peer, err = c.likeOurs(ctx, peerDatabase); err != nil {
		return err
	}
	if c.has(peerInsert) {
		_, err = c.peer.insert(ctx, insertClients, warmUp)
	}
	return err
}

func (c *converge) has(peer string) bool { return slices.Contains(c.cmd.Peers, peer) }

func (c *converge) round(ctx context.Context, r *round) (err error) {
	if r.Intake, err = c.intake(ctx, c.roundTime()); err != nil {
		return err
	}
	if c.has(peerInsert) {
		if err := c.cluster.settle(ctx); err != nil {
			return err
		}
		if r.Peers[peerInsert], err = c.peer.insert(ctx, insertClients, c.roundTime()); err != nil {
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
	if c.has(peerRiver) {
		if err := c.cluster.settle(ctx); err != nil {
			return err
		}
		if r.Peers[peerRiver], r.Peers[peerRiverBurn], err = c.river.both(ctx, c.roundTime()); err != nil {
			return err
		}
	}
	r.Together, err = c.together(ctx, order{Conns: c.conns, For: c.roundTime()})
	return err
}
