package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// SweepConfig sets the periods of the chores. Each runs as often as its period
// says, in every process that has the role; the store makes that safe.
type SweepConfig struct {
	// ProgressEvery is for deferred progress; 500 ms when zero.
	ProgressEvery time.Duration
	// InboxEvery is for deliveries that wait for a retry or for their task; 2 s when
	// zero.
	InboxEvery time.Duration
	// OverdueEvery is for attempts that take too long; 15 s when zero.
	OverdueEvery time.Duration
	// HeadsEvery is for the repair of stream counters, ExpiredEvery for rows past
	// their time and for new partitions; 5 min and 10 min when zero.
	HeadsEvery   time.Duration
	ExpiredEvery time.Duration
	// DurationsEvery is for the learned durations of jobs; 1 min when zero.
	DurationsEvery time.Duration
	// MeasureEvery is for the books and for what waits; 10 s when zero.
	MeasureEvery time.Duration
	// Batch is how many rows one run of a chore takes; 500 when zero. A chore that
	// took as many runs again at once.
	Batch int
	// MaxErrors is how often a delivery may fail before it is dead; 8 when zero.
	MaxErrors int
	// OrphanFor is how long a delivery waits for its task; 24 h when zero.
	OrphanFor time.Duration
	// StuckAfter is how long a delivery may wait without being queued; 1 min when
	// zero.
	StuckAfter time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c SweepConfig) WithDefaults() SweepConfig {
	c.ProgressEvery = cmp.Or(c.ProgressEvery, 500*time.Millisecond)
	c.InboxEvery = cmp.Or(c.InboxEvery, 2*time.Second)
	c.OverdueEvery = cmp.Or(c.OverdueEvery, 15*time.Second)
	c.HeadsEvery = cmp.Or(c.HeadsEvery, 5*time.Minute)
	c.ExpiredEvery = cmp.Or(c.ExpiredEvery, 10*time.Minute)
	c.DurationsEvery = cmp.Or(c.DurationsEvery, time.Minute)
	c.MeasureEvery = cmp.Or(c.MeasureEvery, 10*time.Second)
	c.Batch = cmp.Or(c.Batch, 500)
	c.MaxErrors = cmp.Or(c.MaxErrors, 8)
	c.OrphanFor = cmp.Or(c.OrphanFor, 24*time.Hour)
	c.StuckAfter = cmp.Or(c.StuckAfter, time.Minute)
	return c
}

// Validate joins every fault.
func (c SweepConfig) Validate() error {
	if c.ProgressEvery < 0 || c.InboxEvery < 0 || c.OverdueEvery < 0 || c.HeadsEvery < 0 || c.ExpiredEvery < 0 || c.MeasureEvery < 0 || c.DurationsEvery < 0 ||
		c.Batch < 0 || c.MaxErrors < 0 || c.OrphanFor < 0 || c.StuckAfter < 0 {
		return errors.New("sweep: a period or limit is negative")
	}
	return nil
}

// SweepDeps are what [Sweep] works with. Durations may be nil when nothing is to be
// learned; the rest is required.
type SweepDeps struct {
	Env
	Transitions ports.Transitions
	Inbox       ports.Inbox
	Work        ports.Work
	Desk        ports.Desk
	Log         ports.SweepLog
	Durations   ports.Durations
	Vendors     Vendors
}

// Sweep does the chores that no event starts (specification 12.8.5). Step and
// Run must not be called at the same time.
type Sweep struct {
	deps    SweepDeps
	cfg     SweepConfig
	applier *applier
	chores  []*chore
	book    sweepBook
	// fewDays is whether the alarm about partitions was raised.
	fewDays bool
}

// chore is one periodic duty.
type chore struct {
	name  string
	every time.Duration
	// do returns how many rows it took.
	do   func(context.Context) (int, error)
	next time.Time
}

// NewSweep checks what it is given.
func NewSweep(deps SweepDeps, cfg SweepConfig) (*Sweep, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("sweep", map[string]bool{
		"Transitions": deps.Transitions != nil, "Inbox": deps.Inbox != nil, "Work": deps.Work != nil,
		"Desk": deps.Desk != nil, "Log": deps.Log != nil, "Vendors": deps.Vendors.providers != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	s := &Sweep{deps: deps, cfg: cfg, applier: newApplier(deps.Env, deps.Transitions)}
	s.chores = []*chore{
		{name: "progress", every: cfg.ProgressEvery, do: s.progress},
		{name: "inbox", every: cfg.InboxEvery, do: s.inbox},
		{name: "overdue", every: cfg.OverdueEvery, do: s.overdue},
		{name: "heads", every: cfg.HeadsEvery, do: s.heads},
		{name: "expired", every: cfg.ExpiredEvery, do: s.expired},
	}
	s.chores = append(s.chores, &chore{name: "measure", every: cfg.MeasureEvery, do: s.measure})
	if deps.Durations != nil {
		s.chores = append(s.chores, &chore{name: "durations", every: cfg.DurationsEvery, do: s.durations})
	}
	return s, nil
}

// Step runs the chores that are due and returns how many rows they took. One that
// fails does not stop the others and comes again after its period.
func (s *Sweep) Step(ctx context.Context) (worked int, err error) {
	var errs []error
	for _, c := range s.chores {
		now := s.deps.Now()
		if now.Before(c.next) {
			continue
		}
		c.next = now.Add(time.Duration(float64(c.every) * s.deps.Jitter()))
		n, err := c.do(ctx)
		s.report(c, now, n, err)
		if err != nil {
			errs = append(errs, fmt.Errorf("sweep %s: %w", c.name, err))
			continue
		}
		if n >= s.cfg.Batch {
			c.next = now // there is more
		}
		worked += n
	}
	return worked, errors.Join(errs...)
}

// Run sweeps until the context ends.
func (s *Sweep) Run(ctx context.Context) error {
	interval := s.chores[0].every
	for _, c := range s.chores {
		interval = min(interval, c.every)
	}
	return Loop{Name: "sweep", Step: s.Step, Interval: interval, Env: s.deps.Env}.Run(ctx)
}

// progress makes deferred percentages public.
func (s *Sweep) progress(ctx context.Context) (int, error) {
	jobs, err := s.deps.Work.Claim(ctx, ports.ClaimParams{Kind: ports.WorkProgress, Now: s.deps.Now(), Limit: s.cfg.Batch})
	if err != nil {
		return 0, err
	}
	return s.applyEach(ctx, jobs, domain.InputProgressDue)
}

// overdue slows down and reports what takes longer than its vendor ever should.
func (s *Sweep) overdue(ctx context.Context) (int, error) {
	total := 0
	for _, name := range s.deps.Vendors.Names() {
		now := s.deps.Now()
		jobs, err := s.deps.Work.Claim(ctx, ports.ClaimParams{
			Kind: ports.WorkOverdue, Now: now, Before: now.Add(-s.deps.Vendors.Policy(name).MaxDuration), Provider: name, Limit: s.cfg.Batch,
		})
		if err != nil {
			return total, err
		}
		n, err := s.applyEach(ctx, jobs, domain.InputOverdue)
		total += n
		if err != nil {
			return total, err
		}
	}
	return total, nil
}

func (s *Sweep) applyEach(ctx context.Context, jobs []ports.Job, kind domain.Kind) (int, error) {
	items := make([]ports.Item, len(jobs))
	for i, job := range jobs {
		items[i] = ports.Item{
			Ref:   ports.Ref{AttemptID: job.Attempt.ID},
			Input: domain.Input{Kind: kind, Policy: s.deps.Vendors.Policy(job.Attempt.Provider), Jitter: s.deps.Jitter()},
		}
	}
	return len(items), s.applier.applyAll(ctx, items...)
}

// inbox puts waiting deliveries back to work, or gives them up.
func (s *Sweep) inbox(ctx context.Context) (int, error) {
	report, err := s.deps.Inbox.Revive(ctx, ports.ReviveParams{
		Now: s.deps.Now(), MaxErrors: s.cfg.MaxErrors, OrphanFor: s.cfg.OrphanFor, StuckAfter: s.cfg.StuckAfter, Limit: s.cfg.Batch,
	})
	if err != nil {
		return 0, err
	}
	if report.Dead > 0 {
		s.deps.Metrics.Add(MetricSwept, float64(report.Dead), "dead_letters")
		s.deps.Logger.Error("deliveries were given up; look at the dead letters", "count", report.Dead)
	}
	if report.Revived > 0 {
		s.deps.Bells.Process.Ring()
	}
	return report.Revived + report.Dead, nil
}

// heads raises stream counters that fell behind their events, as a restore could
// leave them.
func (s *Sweep) heads(ctx context.Context) (int, error) {
	repaired, err := s.deps.Desk.RepairHeads(ctx, s.cfg.Batch)
	if err != nil {
		return 0, err
	}
	for _, project := range repaired {
		s.deps.Logger.Error("a stream's counter was behind its events and was raised", "project", project.String())
	}
	return len(repaired), nil
}

// expired removes what is past its time. It counts as the kind that lost the most,
// since that says whether there is more.
func (s *Sweep) expired(ctx context.Context) (most int, err error) {
	removed, err := s.deps.Desk.CleanExpired(ctx, s.deps.Now(), s.cfg.Batch)
	for kind, n := range removed {
		s.deps.Metrics.Add(MetricExpired, float64(n), kind)
		most = max(most, n)
	}
	return most, err
}
