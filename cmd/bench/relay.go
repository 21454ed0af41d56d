package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/internal/e2e/backlog"
	"github.com/aivedio/aivedio/internal/e2e/backlog/topic"
	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/testenv/services"
)

// relayCmd is the scenario of the outbox: what was committed while the broker was
// away has to reach it, in order.
type relayCmd struct {
	Rows     int      `default:"100000" help:"Events in the backlog."`
	Projects int      `default:"500" help:"Projects that they belong to."`
	Relays   int      `default:"4" help:"Relay processes."`
	Rounds   int      `default:"3" help:"How often each side is measured; the sides take turns, medians count."`
	Hot      bool     `default:"true" negatable:"" help:"Also a backlog of one project, which is one queue and one relay."`
	Kill     bool     `default:"true" negatable:"" help:"Also a backlog whose relays are killed with SIGKILL at moments of it."`
	Kills    int      `default:"8" help:"How often one of them is killed."`
	Seed     uint64   `default:"1" help:"Decides whom, and when."`
	Peers    []string `default:"rocketmq" help:"What to measure beside us: rocketmq." placeholder:"LIST"`
	printing
}

// Run measures, prints, and says whether the figures may be used.
func (cmd relayCmd) Run(ctx context.Context, std output) error {
	if cmd.Rows < 100 || cmd.Projects < 1 || cmd.Projects > cmd.Rows || cmd.Relays < 1 || cmd.Rounds < 1 || cmd.Kills < 0 {
		return errors.New("at least a hundred rows, one project, one relay and one round are needed, and no more projects than rows")
	}
	if err := knownPeers(cmd.Peers, peerRocketMQ); err != nil {
		return err
	}
	cmd.Peers = peerList(cmd.Peers)
	return cmd.conduct(ctx, std, newReport("relay", cmd.Peers...), &relayRun{cmd: cmd, std: std})
}

// relayRun is one run.
type relayRun struct {
	cmd     relayCmd
	std     output
	cluster *cluster
	broker  *services.RocketMQ
	system  *system
	conn    *pgx.Conn
	topics  int

	rounds []relayRound
	kills  *drained
	hot    *drained
}

// relayRound is one pass over both sides.
type relayRound struct {
	Drain drained  `json:"drain"`
	Peer  *floored `json:"rocketmq,omitempty"`
}

// drained is one backlog.
type drained struct {
	backlog.Finding
	Rows int `json:"rows"`
	// PerSecond is from the first message that the broker stored to the last one, by
	// its clock.
	PerSecond figure             `json:"per_s"`
	CPU       map[string]cpuTime `json:"cpu_us_per_row,omitempty"`
	Kills     int                `json:"kills,omitempty"`
}

func (s *relayRun) close() error {
	var errs []error
	if s.system != nil {
		errs = append(errs, s.system.kill())
	}
	if s.conn != nil {
		errs = append(errs, s.conn.Close(context.Background()))
	}
	if s.broker != nil {
		errs = append(errs, s.broker.Stop())
	}
	if s.cluster != nil {
		errs = append(errs, s.cluster.Stop())
	}
	return errors.Join(errs...)
}

func (s *relayRun) complaints() string {
	if s.system == nil {
		return ""
	}
	return s.system.complaints()
}

// measure prepares, measures and reports.
func (s *relayRun) measure(ctx context.Context, r *report, dir string) error {
	if err := s.prepare(ctx, r, dir); err != nil {
		return err
	}
	many := backlog.Shape{Projects: s.cmd.Projects, Rows: s.cmd.Rows}
	for n := range s.cmd.Rounds {
		s.std.say("round %d of %d", n+1, s.cmd.Rounds)
		var round relayRound
		var err error
		if round.Drain, err = s.drain(ctx, many, 0); err != nil {
			return err
		}
		if slices.Contains(s.cmd.Peers, peerRocketMQ) {
			if round.Peer, err = s.floor(ctx); err != nil {
				return err
			}
		}
		s.rounds = append(s.rounds, round)
	}
	for _, extra := range []struct {
		wanted bool
		say    string
		shape  backlog.Shape
		kills  int
		into   **drained
	}{
		{s.cmd.Hot, "one project", backlog.Shape{Projects: 1, Rows: s.cmd.Rows}, 0, &s.hot},
		{s.cmd.Kill, "under kill -9", many, s.cmd.Kills, &s.kills},
	} {
		if !extra.wanted {
			continue
		}
		s.std.say("%s", extra.say)
		d, err := s.drain(ctx, extra.shape, extra.kills)
		if err != nil {
			return err
		}
		*extra.into = &d
	}
	return s.finish(r)
}

func (s *relayRun) prepare(ctx context.Context, r *report, dir string) (err error) {
	s.std.say("starting PostgreSQL with fsync on and a broker that acknowledges after fsync")
	if s.cluster, err = startCluster(ctx); err != nil {
		return err
	}
	if s.broker, err = services.StartRocketMQ(ctx, services.RocketMQOptions{SyncFlush: true}); err != nil {
		return invalid("the broker cannot be started: %v", err)
	}
	if r.Settings, err = s.cluster.settings(ctx); err != nil {
		return err
	}
	flush := s.flushDiskType()
	r.Details["broker"] = map[string]string{"flushDiskType": flush}
	if flush != "SYNC_FLUSH" {
		r.faults = append(r.faults, invalid("the broker's flushDiskType is %q", flush))
	}
	if s.conn, err = pgx.Connect(ctx, s.cluster.URL(oursDatabase)); err != nil {
		return err
	}
	s.std.say("building the binary")
	s.system, err = newSystem(ctx, dir, s.cluster.URL(oursDatabase), launch.NewSecrets())
	return err
}

// flushDiskType is that of the file which the broker was started with.
func (s *relayRun) flushDiskType() string {
	for _, pid := range s.broker.PIDs() {
		words := strings.Fields(commandOf(pid))
		at := slices.Index(words, "-c")
		if at < 0 || at+1 >= len(words) || filepath.Base(words[at+1]) != "broker.conf" {
			continue
		}
		text, err := os.ReadFile(words[at+1])
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(text)) {
			if value, ok := strings.CutPrefix(strings.TrimSpace(line), "flushDiskType="); ok {
				return value
			}
		}
	}
	return ""
}

// topic is a new one: what another part has left is not read again.
func (s *relayRun) topic() string {
	s.topics++
	return fmt.Sprintf("bench-relay-%d", s.topics)
}

// drain has fresh relays share the shards, commits a backlog at once, and holds what
// the broker got against it.
func (s *relayRun) drain(ctx context.Context, shape backlog.Shape, kills int) (out drained, err error) {
	name := s.topic()
	relays, err := s.relays(ctx, name)
	if err != nil {
		return out, err
	}
	if err := s.cluster.settle(ctx); err != nil {
		return out, err
	}
	want, err := backlog.Fill(ctx, s.conn, shape)
	if err != nil {
		return out, err
	}
	cpu := startCPU(s.parts(relays))
	if err := s.killAll(ctx, relays, shape.Rows, kills); err != nil {
		return out, err
	}
	if err := s.until(ctx, 0); err != nil {
		return out, err
	}
	used := cpu.stop()
	if err := s.system.stop(relays...); err != nil {
		return out, err
	}
	audit := backlog.NewAudit(want)
	reading, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := topic.Read(reading, s.broker.NameServer(), name, name+"-audit", int64(shape.Rows), audit); err != nil {
		return out, invalid("%v", err)
	}
	out = drained{Finding: audit.Finding(), Rows: shape.Rows, Kills: kills}
	out.PerSecond = perSecond(shape.Rows, out.Took)
	if kills == 0 { // of a killed process nobody knows what it used
		out.CPU = perRow(used, shape.Rows)
	}
	return out, s.cluster.exec(ctx, oursDatabase, "TRUNCATE outbox_events, outbox_queue")
}

// parts are the relays, the database, name server and broker.
func (s *relayRun) parts(relays []*launch.Process) map[string]part {
	parts := map[string]part{"postgres": {pid: s.cluster.PID(), tree: true}}
	for i, p := range relays {
		parts[fmt.Sprintf("relay-%d", i)] = part{pid: p.PID()}
	}
	for i, pid := range s.broker.PIDs() {
		parts[fmt.Sprintf("broker-%d", i)] = part{pid: pid}
	}
	return parts
}

// perRow adds up the parts of one kind, in µs per row.
func perRow(used map[string]cpuTime, rows int) map[string]cpuTime {
	cost := map[string]cpuTime{}
	for name, seconds := range used {
		kind, _, _ := strings.Cut(name, "-")
		cost[kind] += seconds * 1e6 / cpuTime(rows)
	}
	return cost
}

// relays starts processes and waits until each has its share of the shards.
func (s *relayRun) relays(ctx context.Context, topic string) ([]*launch.Process, error) {
	var all []*launch.Process
	for i := range s.cmd.Relays {
		p, _, err := s.system.serve(fmt.Sprintf("%s-%d", topic, i+1), "relay", launch.Deployment{
			Database: s.cluster.URL(oursDatabase), NameServers: []string{s.broker.NameServer()}, Topic: topic,
		})
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
	if err := s.system.start(ctx, all...); err != nil {
		return nil, err
	}
	return all, s.await(ctx, "the relays have no fair shares", `SELECT count(*) = $1 AND min(n) >= 64 / $1
		FROM (SELECT count(*) AS n FROM relay_shards WHERE lease_until > now() GROUP BY owner) s`, s.cmd.Relays)
}

// killAll kills relays at moments of the first half of the backlog and starts them
// again; the other half is for those that then hold the shards.
func (s *relayRun) killAll(ctx context.Context, relays []*launch.Process, rows, kills int) error {
	rng := rand.New(rand.NewPCG(s.cmd.Seed, 1))
	step := rows / 2 / max(kills, 1)
	for n := range kills {
		if err := s.until(ctx, rows-step*n-rng.IntN(step)); err != nil {
			return err
		}
		p := relays[rng.IntN(len(relays))]
		if err := errors.Join(p.Kill(), s.system.start(ctx, p)); err != nil {
			return err
		}
	}
	return nil
}

// until waits for the backlog to be down to so many rows.
func (s *relayRun) until(ctx context.Context, rows int) error {
	return s.await(ctx, "events wait in the outbox", "SELECT count(*) <= $1 FROM outbox_queue", rows)
}

func (s *relayRun) await(ctx context.Context, what, question string, arg int) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		var done bool
		if err := s.conn.QueryRow(ctx, question, arg).Scan(&done); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		if done {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return invalid("%s after %v", what, patience)
		}
	}
}
