package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"
)

// growthCmd is the scenario of a database that fills: what a delivery and a
// transition cost must not depend on how many are stored.
type growthCmd struct {
	Stored   []int `default:"1000000,2000000,4000000" help:"How many events are stored before each stage, rising." placeholder:"LIST"`
	Seconds  int   `default:"9" help:"How long each stage is measured, over the rounds."`
	Rounds   int   `default:"3" help:"Into how many rounds that is divided; medians count."`
	Projects int   `default:"500" help:"Projects of the tasks that get news."`
	Conns    int   `default:"256" help:"Deliveries that are under way at once."`
	printing
}

// Run measures, prints, and says whether the figures may be used.
func (cmd growthCmd) Run(ctx context.Context, std output) error {
	if len(cmd.Stored) < 2 || !slices.IsSorted(cmd.Stored) || cmd.Stored[0] < 0 {
		return errors.New("at least two numbers of stored events are needed, rising")
	}
	if cmd.Rounds < 1 || cmd.Seconds < cmd.Rounds || cmd.Projects < 1 || cmd.Conns < 1 || len(cmd.Stored)*cmd.Rounds > maxVolleys-1 {
		return errors.New("at least one second a round, one project and one connection are needed, and not more rounds in all than there is progress")
	}
	return cmd.conduct(ctx, std, newReport("growth"), &growth{cmd: cmd, std: std})
}

// growth is one run.
type growth struct {
	bed
	cmd    growthCmd
	std    output
	stages []stage
}

// stage is what is measured with so many events stored.
type stage struct {
	Events int             `json:"events"`
	Filled figure          `json:"filled_in_s"`
	Intake []intakeFigures `json:"intake"`
	Drain  []drainFigures  `json:"drain"`
}

func (s *growth) roundTime() time.Duration {
	return time.Duration(s.cmd.Seconds) * time.Second / time.Duration(s.cmd.Rounds)
}

// measure prepares, measures and reports.
func (s *growth) measure(ctx context.Context, r *report, dir string) error {
	spec := bedSpec{projects: s.cmd.Projects, tasks: int(tasksPerSecond * s.roundTime().Seconds()), conns: s.cmd.Conns}
	if err := s.open(ctx, s.std, dir, spec); err != nil {
		return err
	}
	s.std.say("warming up")
	if _, err := s.intake(ctx, warmUp); err != nil {
		return err
	}
	if _, err := s.drain(ctx); err != nil {
		return err
	}
	h, err := s.newHistory(ctx)
	if err != nil {
		return err
	}
	for _, events := range s.cmd.Stored {
		st, err := s.stage(ctx, h, events)
		if err != nil {
			return err
		}
		s.stages = append(s.stages, st)
	}
	s.std.say("checking")
	if err := s.check(ctx, r); err != nil {
		return err
	}
	s.summarise(r)
	return nil
}

// stage fills the database and measures.
func (s *growth) stage(ctx context.Context, h *history, events int) (st stage, err error) {
	s.std.say("storing %d events", events)
	began := time.Now()
	if err := h.grow(ctx, events); err != nil {
		return st, err
	}
	st.Filled = figure(time.Since(began).Seconds())
	if st.Events, err = s.observer.stored(ctx); err != nil {
		return st, err
	}
	s.std.say("measuring with %d events", st.Events)
	for range s.cmd.Rounds {
		in, err := s.intake(ctx, s.roundTime())
		if err != nil {
			return st, err
		}
		out, err := s.drain(ctx)
		if err != nil {
			return st, err
		}
		st.Intake, st.Drain = append(st.Intake, in), append(st.Drain, out)
	}
	return st, nil
}

// summarise puts the stages into the report.
func (s *growth) summarise(r *report) {
	per := map[string][]figure{}
	for _, st := range s.stages {
		r.Rounds = append(r.Rounds, st)
		for name, value := range map[string]figure{
			"acknowledged_per_s":    median(each(st.Intake, func(i intakeFigures) figure { return i.PerSecond })),
			"transitions_per_s":     median(each(st.Drain, func(d drainFigures) figure { return d.PerSecond })),
			"cpu_us_per_callback":   median(each(st.Intake, intakeFigures.cost)),
			"cpu_us_per_transition": median(each(st.Drain, drainFigures.cost)),
		} {
			per[name] = append(per[name], value)
			r.Median.Ours[name+"_at_"+strconv.Itoa(st.Events)] = value
		}
	}
	spread := map[string]figure{}
	for _, name := range []string{"acknowledged_per_s", "transitions_per_s", "cpu_us_per_callback", "cpu_us_per_transition"} {
		spread[name] = spreadOf(per[name])
		r.line(name, per[name])
		r.note("%s: %v %% between the stages (goal ≤ 15)", name, fmt.Sprintf("%.1f", float64(100*spread[name])))
	}
	r.Details["spread"] = spread
}
