package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// ingestCmd is the scenario of the callback role alone: how many deliveries are
// acknowledged, how soon, and what happens when too many come.
type ingestCmd struct {
	Seconds  int      `default:"20" help:"How long each side is measured in all, over the rounds."`
	Rounds   int      `default:"4" help:"Into how many rounds that is divided; the sides take turns, medians count."`
	Projects int      `default:"500" help:"Projects that the tasks belong to."`
	Conns    int      `default:"256" help:"Deliveries that are under way at once."`
	Rate     float64  `default:"5000" help:"Deliveries per second while the answer time is measured."`
	Factor   float64  `default:"10" help:"How many times its capacity the role is offered in the overload."`
	Overload int      `default:"6" help:"Seconds of each overload; 0 leaves them out."`
	Peers    []string `default:"pgbench,naive" help:"What to measure beside us: pgbench, naive." placeholder:"LIST"`
	printing
}

// Run measures, prints, and says whether the figures may be used.
func (cmd ingestCmd) Run(ctx context.Context, std output) error {
	if cmd.Rounds < 1 || cmd.Seconds < cmd.Rounds || cmd.Projects < 1 || cmd.Conns < 1 || cmd.Rate <= 0 || cmd.Factor < 1 || cmd.Overload < 0 {
		return errors.New("at least one second a round, one project, one connection, a rate and a factor of at least 1 are needed")
	}
	if err := knownPeers(cmd.Peers, peerInsert, peerNaive); err != nil {
		return err
	}
	cmd.Peers = peerList(cmd.Peers)
	return cmd.conduct(ctx, std, newReport("ingest", cmd.Peers...), &ingest{cmd: cmd, std: std})
}

const (
	// naiveDatabase is that of the naive handler, which has as many connections as
	// pgbench and commits each delivery by itself.
	naiveDatabase = "naive"
	naiveConns    = insertClients
	// ingestTasks is how many tasks the deliveries are about: none is digested, so
	// few will do.
	ingestTasks = 4000
	// signedPerSecond is how many deliveries per second of a part are signed ahead.
	signedPerSecond = 24_000
)

// ingest is one run.
type ingest struct {
	bed
	cmd  ingestCmd
	std  output
	peer *pgbench

	naive     *launch.Process
	naiveAddr string
	// promised are the ids that the naive handler has acknowledged.
	promised []string
	reads    *reads

	rounds    []ingestRound
	paced     pacedFigures
	overloads map[string]overloadFigures
}

// ingestRound is one pass over all sides.
type ingestRound struct {
	Ours intakeFigures `json:"ours"`
	// Inserts are pgbench's, by the number of its connections.
	Inserts map[string]figure `json:"pgbench_per_s,omitempty"`
	Naive   *intakeFigures    `json:"naive,omitempty"`
}

// pacedFigures: at a rate that leaves room, from the moment at which a delivery was
// due, so that one that had to wait for another counts its wait.
type pacedFigures struct {
	quantiles
	Rate         figure             `json:"rate_per_s"`
	Acknowledged int                `json:"acknowledged"`
	Refused      int                `json:"refused"`
	Reads        quantiles          `json:"read_ms"`
	CPU          map[string]cpuTime `json:"cpu_s"`
	CPUPerOne    figure             `json:"cpu_us_per_callback"`
}

func (s *ingest) has(peer string) bool { return slices.Contains(s.cmd.Peers, peer) }

func (s *ingest) roundTime() time.Duration {
	return time.Duration(s.cmd.Seconds) * time.Second / time.Duration(s.cmd.Rounds)
}

// measure prepares, measures and reports.
func (s *ingest) measure(ctx context.Context, r *report, dir string) error {
	if err := s.prepare(ctx, dir); err != nil {
		return err
	}
	for n := range s.cmd.Rounds {
		s.std.say("round %d of %d", n+1, s.cmd.Rounds)
		round, err := s.round(ctx)
		if err != nil {
			return err
		}
		s.rounds = append(s.rounds, round)
	}
	s.std.say("pacing %v deliveries per second", s.cmd.Rate)
	if err := s.pace(ctx); err != nil {
		return err
	}
	if err := s.overload(ctx); err != nil {
		return err
	}
	s.std.say("checking")
	if err := s.check(ctx, r); err != nil {
		return err
	}
	if err := s.checkNaive(ctx, r); err != nil {
		return err
	}
	if s.peer != nil {
		s.peer.report(r)
	}
	s.summarise(r)
	return nil
}

func (s *ingest) prepare(ctx context.Context, dir string) (err error) {
	if s.has(peerInsert) { // before the work, not after it
		if _, err := newPgbench(dir, ""); err != nil {
			return err
		}
	}
	spec := bedSpec{projects: s.cmd.Projects, tasks: max(ingestTasks, s.cmd.Projects), conns: s.cmd.Conns, peers: []string{peerDatabase, naiveDatabase}}
	if err := s.open(ctx, s.std, dir, spec); err != nil {
		return err
	}
	s.progress = progressStep
	s.naive, s.naiveAddr, err = s.system.serve("naive", "callback", launch.Deployment{Database: s.cluster.URL(naiveDatabase)},
		"AIVEDIO_DATABASE_CALLBACK_CONNS="+strconv.Itoa(naiveConns), "AIVEDIO_CALLBACK_BATCH=1")
	if err != nil {
		return err
	}
	s.std.say("warming up")
	if _, err := s.intakeOf(ctx, s.system.callback, s.system.callbackAddr, warmUp); err != nil {
		return err
	}
	if s.has(peerInsert) {
		if s.peer, err = s.likeOurs(ctx, peerDatabase); err != nil {
			return err
		}
	}
	s.reads, err = s.startReads(ctx)
	return err
}

// intakeOf runs one receiver under full load.
func (s *ingest) intakeOf(ctx context.Context, p *launch.Process, addr string, d time.Duration) (intakeFigures, error) {
	v, err := s.arm(ctx, addr, s.people.tasks, int(signedPerSecond*d.Seconds()))
	if err != nil {
		return intakeFigures{}, err
	}
	return s.take(ctx, v, p, order{Conns: s.conns, For: d})
}

// round measures every side once.
func (s *ingest) round(ctx context.Context) (r ingestRound, err error) {
	if r.Ours, err = s.intakeOf(ctx, s.system.callback, s.system.callbackAddr, s.roundTime()); err != nil {
		return r, err
	}
	if s.has(peerInsert) {
		r.Inserts = map[string]figure{}
		for _, clients := range append([]int{insertClients}, otherClients...) {
			d := s.roundTime()
			if clients != insertClients {
				d = max(d/3, 2*time.Second)
			}
			if err := s.cluster.settle(ctx); err != nil {
				return r, err
			}
			run, err := s.peer.insert(ctx, clients, d)
			if err != nil {
				return r, err
			}
			r.Inserts[strconv.Itoa(clients)] = run.PerSecond
		}
	}
	if s.has(peerNaive) {
		ours := s.acknowledged
		s.acknowledged = s.promised
		n, err := s.intakeOf(ctx, s.naive, s.naiveAddr, s.roundTime())
		s.promised, s.acknowledged = s.acknowledged, ours
		if err != nil {
			return r, err
		}
		r.Naive = &n
	}
	return r, nil
}

// pace measures the answer time at a rate that leaves room.
func (s *ingest) pace(ctx context.Context) error {
	d := max(s.roundTime(), 5*time.Second)
	warm, err := s.arm(ctx, s.system.callbackAddr, s.people.tasks, int(s.cmd.Rate*warmUp.Seconds()))
	if err != nil {
		return err
	}
	v, err := s.arm(ctx, s.system.callbackAddr, s.people.tasks, int(s.cmd.Rate*d.Seconds()))
	if err != nil {
		return errors.Join(err, warm.drop())
	}
	if err := errors.Join(s.cluster.settle(ctx), s.system.start(ctx, s.system.callback)); err != nil {
		return errors.Join(err, warm.drop(), v.drop())
	}
	// The first deliveries open connections and make plans, and after a checkpoint the
	// first change of a page is written whole.
	w, err := warm.fire(ctx, order{Conns: s.conns, For: warmUp + time.Second, Rate: s.cmd.Rate})
	if err != nil {
		return errors.Join(err, v.drop())
	}
	s.note(w)
	stopReads := s.reads.run(ctx)
	cpu := startCPU(s.system.parts(s.cluster.PID()))
	f, err := v.fire(ctx, order{Conns: s.conns, For: d + time.Second, Rate: s.cmd.Rate})
	read, errRead := stopReads()
	if err := errors.Join(err, errRead); err != nil {
		return err
	}
	s.note(f)
	used := cpu.stop()
	n := f.count(acknowledged)
	s.paced = pacedFigures{
		quantiles: quantilesOf(f.times(acknowledged, f.Waited)), Rate: perSecond(n, f.Lasted), Acknowledged: n, Refused: len(f.Status) - n,
		Reads: quantilesOf(read), CPU: used,
	}
	if n > 0 {
		s.paced.CPUPerOne = (used["callback"] + used["postgres"]) * 1e6 / figure(n)
	}
	used["load"] = figure(f.CPU)
	return s.system.stop(s.system.callback)
}

// checkNaive holds what the naive handler has acknowledged against its inbox: one
// that loses would be no peer.
func (s *ingest) checkNaive(ctx context.Context, r *report) error {
	if !s.has(peerNaive) {
		return nil
	}
	o, err := newObserver(ctx, s.cluster.URL(naiveDatabase))
	if err != nil {
		return err
	}
	defer o.close()
	lost, err := o.missing(ctx, s.promised)
	r.Lost += lost
	return err
}

// summarise puts medians, ratios and the table into the report.
func (s *ingest) summarise(r *report) {
	for _, rd := range s.rounds {
		r.Rounds = append(r.Rounds, rd)
	}
	ours := each(s.rounds, func(rd ingestRound) figure { return rd.Ours.PerSecond })
	median := r.ours("acknowledged_per_s", ours)
	r.line("acknowledged over HTTP", ours)
	inserts := func(clients int) []figure {
		return each(s.rounds, func(rd ingestRound) figure { return rd.Inserts[strconv.Itoa(clients)] })
	}
	r.peer(peerInsert, inserts(insertClients), median)
	r.peerLine(peerInsert, fmt.Sprintf("pgbench, one-row inserts, %d connections", insertClients), "≥ 1.1", inserts(insertClients))
	for _, clients := range otherClients {
		name := peerInsert + "_" + strconv.Itoa(clients)
		r.peer(name, inserts(clients), median)
		r.peerLine(name, fmt.Sprintf("pgbench, %d connections", clients), "", inserts(clients))
	}
	naive := each(s.rounds, func(rd ingestRound) figure {
		if rd.Naive == nil {
			return 0
		}
		return rd.Naive.PerSecond
	})
	r.peer(peerNaive, naive, median)
	r.peerLine(peerNaive, "our handler, one commit per delivery", "≥ 2.5", naive)
	r.Latency, r.CPU = &s.paced.quantiles, s.paced.CPUPerOne
	r.Details["paced"] = s.paced
	r.note("answer at %v/s, from the moment due: %v ms (goal p99 ≤ 10), reads meanwhile %v ms, CPU per callback %v µs", s.paced.Rate, s.paced.quantiles, s.paced.Reads, s.paced.CPUPerOne)
	for name, o := range s.overloads {
		r.Details["overload_"+name] = o
		r.note("overload (%s): %v", name, o)
	}
}
