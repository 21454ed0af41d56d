package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// hotCmd is the scenario of one project that has all the load: its stream's counter
// is one row, which every transition of the project has to lock.
type hotCmd struct {
	Seconds  int      `default:"12" help:"How long each side is measured in all, over the rounds."`
	Rounds   int      `default:"3" help:"Into how many rounds that is divided; the sides take turns, medians count."`
	Projects int      `default:"500" help:"Projects of the other side."`
	Conns    int      `default:"256" help:"Deliveries that are under way at once."`
	Peers    []string `default:"naive" help:"What to measure beside us: naive." placeholder:"LIST"`
	printing
}

// Run measures, prints, and says whether the figures may be used.
func (cmd hotCmd) Run(ctx context.Context, std output) error {
	if cmd.Rounds < 1 || cmd.Seconds < cmd.Rounds || cmd.Projects < 2 || cmd.Conns < 1 || cmd.Rounds > maxVolleys-1 {
		return errors.New("at least one second a round, two projects and one connection are needed, and not more rounds than there is progress")
	}
	if err := knownPeers(cmd.Peers, peerNaive); err != nil {
		return err
	}
	cmd.Peers = peerList(cmd.Peers)
	return cmd.conduct(ctx, std, newReport("hot-project", cmd.Peers...), &hot{cmd: cmd, std: std})
}

// hot is one run: two beds, each with a server of its own and the same settings.
type hot struct {
	cmd       hotCmd
	std       output
	one, many bed
	peer      *pgbench
	rounds    []hotRound
}

// hotRound is one pass over all sides.
type hotRound struct {
	Hot   drainFigures `json:"hot"`
	Many  drainFigures `json:"many"`
	Naive *peerRun     `json:"naive,omitempty"`
}

func (s *hot) roundTime() time.Duration {
	return time.Duration(s.cmd.Seconds) * time.Second / time.Duration(s.cmd.Rounds)
}

func (s *hot) close() error { return errors.Join(s.one.close(), s.many.close()) }

func (s *hot) complaints() string { return s.one.complaints() + s.many.complaints() }

// measure prepares, measures and reports.
func (s *hot) measure(ctx context.Context, r *report, dir string) error {
	if err := s.prepare(ctx, dir); err != nil {
		return err
	}
	for n := range s.cmd.Rounds {
		s.std.say("round %d of %d", n+1, s.cmd.Rounds)
		var round hotRound
		var err error
		if round.Hot, err = s.drained(ctx, &s.one); err != nil {
			return err
		}
		if s.peer != nil {
			if err := s.one.cluster.settle(ctx); err != nil {
				return err
			}
			run, err := s.peer.naive(ctx, s.roundTime())
			if err != nil {
				return err
			}
			round.Naive = &run
		}
		if round.Many, err = s.drained(ctx, &s.many); err != nil {
			return err
		}
		s.rounds = append(s.rounds, round)
	}
	s.std.say("checking")
	return s.finish(ctx, r)
}

func (s *hot) prepare(ctx context.Context, dir string) (err error) {
	naive := slices.Contains(s.cmd.Peers, peerNaive)
	if naive { // before the work, not after it
		if _, err := newPgbench(dir, ""); err != nil {
			return err
		}
	}
	for _, side := range []struct {
		bed      *bed
		name     string
		projects int
		peers    []string
	}{{&s.one, "one", 1, []string{peerDatabase}}, {&s.many, "many", s.cmd.Projects, nil}} {
		path := filepath.Join(dir, side.name)
		if err := os.Mkdir(path, 0o755); err != nil {
			return err
		}
		spec := bedSpec{projects: side.projects, tasks: int(tasksPerSecond * s.roundTime().Seconds()), conns: s.cmd.Conns, peers: side.peers}
		if err := side.bed.open(ctx, s.std, path, spec); err != nil {
			return err
		}
	}
	s.std.say("warming up")
	for _, b := range []*bed{&s.one, &s.many} {
		if _, err := b.intake(ctx, warmUp); err != nil {
			return err
		}
		if _, err := b.drain(ctx); err != nil {
			return err
		}
	}
	if naive {
		s.peer, err = s.one.likeOurs(ctx, peerDatabase)
	}
	return err
}

// drained fills the inbox of a bed over HTTP and measures how it is worked off.
func (s *hot) drained(ctx context.Context, b *bed) (drainFigures, error) {
	if _, err := b.intake(ctx, s.roundTime()); err != nil {
		return drainFigures{}, err
	}
	return b.drain(ctx)
}

// finish checks both beds and fills the report.
func (s *hot) finish(ctx context.Context, r *report) error {
	if err := s.many.check(ctx, r); err != nil {
		return err
	}
	lost, violations := r.Lost, r.Violations
	if err := s.one.check(ctx, r); err != nil {
		return err
	}
	gaps, err := s.one.observer.gaps(ctx)
	if err != nil {
		return err
	}
	r.Lost, r.Violations = r.Lost+lost, r.Violations+violations+gaps
	r.Settings.Peer = s.many.settings.Ours // the other bed's server is as much a side as the peer's database
	if s.peer != nil {
		s.peer.report(r)
	}
	for _, rd := range s.rounds {
		r.Rounds = append(r.Rounds, rd)
	}
	hot := each(s.rounds, func(rd hotRound) figure { return rd.Hot.PerSecond })
	many := each(s.rounds, func(rd hotRound) figure { return rd.Many.PerSecond })
	naive := each(s.rounds, func(rd hotRound) figure {
		if rd.Naive == nil {
			return 0
		}
		return rd.Naive.PerSecond
	})
	median := r.ours("hot_transitions_per_s", hot)
	r.line("transitions, all in one project", hot)
	r.peer(peerNaive, naive, median)
	r.peerLine(peerNaive, "pgbench, one by one, in one project", "≥ 10", naive)
	spread := r.ours("many_transitions_per_s", many)
	r.line(fmt.Sprintf("transitions over %d projects", s.cmd.Projects), many)
	if spread > 0 {
		r.Ratio["many_projects"] = median / spread
		r.note("one hot project against many: %v (goal: as fast)", r.Ratio["many_projects"])
	}
	r.Details["cpu_us_per_transition"] = map[string]figure{
		"hot":  costOf(s.rounds, func(rd hotRound) drainFigures { return rd.Hot }),
		"many": costOf(s.rounds, func(rd hotRound) drainFigures { return rd.Many }),
	}
	r.Details["gaps"] = gaps
	r.note("CPU per transition, process role and PostgreSQL: %v µs; gaps in event ids: %d", r.Details["cpu_us_per_transition"], gaps)
	return nil
}

// costOf is the median CPU of a transition in µs.
func costOf[R any](rounds []R, of func(R) drainFigures) figure {
	return median(each(rounds, func(r R) figure { return of(r).cost() }))
}

// cost is the CPU of one transition in µs, of the process role and PostgreSQL.
func (d drainFigures) cost() figure {
	if d.Transitions == 0 {
		return 0
	}
	return (d.CPU["process"] + d.CPU["postgres"]) * 1e6 / figure(d.Transitions)
}

// cost is the CPU of one acknowledged delivery in µs, of the callback role and
// PostgreSQL.
func (i intakeFigures) cost() figure {
	if i.Acknowledged == 0 {
		return 0
	}
	return (i.CPU["callback"] + i.CPU["postgres"]) * 1e6 / figure(i.Acknowledged)
}

// gaps counts projects whose event ids are not exactly 1, 2, 3 … up to their stream's
// counter.
func (o *observer) gaps(ctx context.Context) (n int, err error) {
	err = o.conn.QueryRow(ctx, `SELECT count(*) FROM project_streams s JOIN (
			SELECT project_id, count(*) AS n, count(DISTINCT event_id) AS different, min(event_id) AS first, max(event_id) AS last
			FROM task_events GROUP BY project_id
		) AS e USING (project_id)
		WHERE (e.n, e.different, e.first, e.last) IS DISTINCT FROM (s.last_event_id, s.last_event_id, 1::bigint, s.last_event_id)`).Scan(&n)
	if err != nil {
		return 0, fmt.Errorf("look for gaps: %w", err)
	}
	return n, nil
}
