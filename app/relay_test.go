package app_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// fakeBus keeps what was published and fails when told to.
type fakeBus struct {
	ports.Bus
	fail func(rows []ports.OutboxRow) error

	mu   sync.Mutex
	sent []ports.StoredEvent
}

func (f *fakeBus) Publish(_ context.Context, rows []ports.OutboxRow) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	var failed *ports.PublishError
	if f.fail != nil {
		if err := f.fail(rows); err != nil && !errors.As(err, &failed) {
			return err
		}
	}
	for _, row := range rows {
		if failed == nil || failed.FailedProjects[row.Event.ProjectID.String()] == nil {
			f.sent = append(f.sent, row.Event)
		}
	}
	if failed != nil {
		return failed
	}
	return nil
}

// of lists the event numbers of a project that were sent.
func (f *fakeBus) of(project domain.ProjectID) []int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []int64
	for _, e := range f.sent {
		if e.ProjectID == project {
			ids = append(ids, e.EventID)
		}
	}
	return ids
}

func fail(cause error, projects ...domain.ProjectID) error {
	pe := &ports.PublishError{FailedProjects: map[string]error{}, Err: cause}
	for _, p := range projects {
		pe.FailedProjects[p.String()] = cause
	}
	return pe
}

// refuse marks the projects as those whose events the bus never takes.
func refuse(projects ...domain.ProjectID) error {
	return fail(fmt.Errorf("%w: too long", ports.ErrRefused), projects...)
}

func newRelay(b *bundle, bus ports.Bus, outbox ports.Outbox, cfg app.RelayConfig) *app.Relay {
	b.t.Helper()
	r, err := app.NewRelay(app.RelayDeps{Env: b.env, Outbox: outbox, Desk: b.store, Bus: bus}, cfg)
	b.must(err)
	return r
}

// secondProject adds a project with one event.
func secondProject(b *bundle) domain.ProjectID {
	b.t.Helper()
	p, err := b.store.CreateProject(b.ctx(), ports.Project{ID: domain.ProjectID{ID: newID()}, TenantID: b.project.TenantID, Name: "second"})
	b.must(err)
	cmd := b.command()
	cmd.Project = p
	_, err = b.submit.Create(b.ctx(), cmd)
	b.must(err)
	return p.ID
}

func TestRelaySendsOnceAndInOrder(t *testing.T) {
	t.Parallel()
	b := setup(t)
	bus := &fakeBus{}
	r := newRelay(b, bus, b.store, app.RelayConfig{Batch: 2})
	for range 5 {
		b.create()
	}
	for _, want := range []int{2, 2, 1, 0} {
		if n := b.step(r); n != want {
			t.Errorf("sent %d, want %d", n, want)
		}
	}
	if got := bus.of(b.project.ID); !slices.Equal(got, []int64{1, 2, 3, 4, 5}) {
		t.Errorf("sent %v", got)
	}
}

func TestRelayOutageParksNobody(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func([]ports.OutboxRow) error{
		"whole bus":     func([]ports.OutboxRow) error { return errAway },
		"every project": func(rows []ports.OutboxRow) error { return fail(errAway, rows[0].Event.ProjectID) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := setup(t)
			b.create()
			bus := &fakeBus{fail: fail}
			r := newRelay(b, bus, b.store, app.RelayConfig{MaxTries: 3})
			failed := 0
			for range 10 {
				if _, err := r.Step(b.ctx()); err != nil {
					failed++
				}
				b.clock.Advance(time.Hour)
			}
			bus.fail = nil
			if n := b.step(r); n != 1 || failed != 10 {
				t.Errorf("after %d failures the outage is over and %d rows were sent", failed, n)
			}
		})
	}
}

func TestRelayParksAPoisonedProject(t *testing.T) {
	t.Parallel()
	b := setup(t)
	var log bytes.Buffer
	g := &gauges{}
	b.env.Logger, b.env.Metrics = slog.New(slog.NewTextHandler(&log, nil)), g
	b.create()
	poison := secondProject(b)
	bus := &fakeBus{fail: func([]ports.OutboxRow) error { return refuse(poison) }}
	r := newRelay(b, bus, b.store, app.RelayConfig{MaxTries: 3})
	b.step(r)
	for range 6 { // others pass meanwhile
		b.create()
		b.clock.Advance(2 * time.Minute)
		b.step(r)
	}
	if n := strings.Count(log.String(), "level=WARN"); n != 1 || !strings.Contains(log.String(), poison.String()) {
		t.Errorf("%d warnings, want one that names %s:\n%s", n, poison, &log)
	}
	if parked, shards := g.get(app.MetricParked), g.get(app.MetricRelayShards); parked != 1 || shards != ports.OutboxShards {
		t.Errorf("%v parked projects, %v shards", parked, shards)
	}
	bus.fail = nil
	b.clock.Advance(time.Hour)
	if n := b.step(r); n != 0 {
		t.Errorf("a parked project was sent: %d rows", n)
	}
	if got := bus.of(b.project.ID); len(got) != 7 {
		t.Errorf("the other project got %v", got)
	}
	b.must(b.store.Unpark(b.ctx(), poison, ports.Audit{Actor: "op", Action: "outbox.unpark", Reason: "mended"}))
	if n := b.step(r); n != 1 {
		t.Errorf("%d rows were sent after the parking", n)
	}
}

// TestRelayPassesADeadBroker: while a broker takes nothing, its projects do not fill
// the batches, nothing is written about them, and they go on when it is back.
func TestRelayPassesADeadBroker(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 4 {
		b.create() // the first project fills two batches
	}
	other := secondProject(b)
	bus := &fakeBus{fail: func([]ports.OutboxRow) error { return fail(errAway, b.project.ID) }}
	outbox := &shortOutbox{Outbox: b.store, lease: func() time.Duration { return time.Hour }}
	r := newRelay(b, bus, outbox, app.RelayConfig{Batch: 2})
	if n, err := r.Step(b.ctx()); n != 0 || !errors.Is(err, errAway) {
		t.Errorf("the first batch: %d sent, %v", n, err)
	}
	if n := b.step(r); n != 1 || len(bus.of(other)) != 1 {
		t.Errorf("%d sent, of the other project %v", n, bus.of(other))
	}
	b.clock.Advance(time.Minute)
	if n, err := r.Step(b.ctx()); n != 0 || !errors.Is(err, errAway) {
		t.Errorf("a minute later: %d sent, %v", n, err)
	}
	if n, err := r.Step(b.ctx()); n != 0 || !errors.Is(err, errAway) {
		t.Errorf("at once again: %d sent, %v; want the error that makes the loop wait", n, err)
	}
	if outbox.failed != 0 {
		t.Errorf("an outage was written down %d times", outbox.failed)
	}
	bus.fail = nil
	b.clock.Advance(10 * time.Second)
	b.step(r)
	b.step(r)
	if got := bus.of(b.project.ID); !slices.Equal(got, []int64{1, 2, 3, 4}) {
		t.Errorf("after the outage %v", got)
	}
}

// shortOutbox gives leases of a set length and can lose the answer to a mark.
type shortOutbox struct {
	ports.Outbox
	lease   func() time.Duration
	markErr error
	failed  int
}

func (s *shortOutbox) LeaseShards(ctx context.Context, p ports.ShardParams) ([]ports.ShardLease, error) {
	d := s.lease()
	if d == 0 {
		return nil, errAway
	}
	p.For = d
	return s.Outbox.LeaseShards(ctx, p)
}

func (s *shortOutbox) MarkFailed(ctx context.Context, p ports.PublishFailure) (bool, error) {
	s.failed++
	return s.Outbox.MarkFailed(ctx, p)
}

func (s *shortOutbox) MarkPublished(ctx context.Context, shards []ports.ShardLease, ids []int64) error {
	if s.markErr != nil {
		return s.markErr
	}
	return s.Outbox.MarkPublished(ctx, shards, ids)
}

func TestRelayStopsBeforeItsLeaseEnds(t *testing.T) {
	t.Parallel()
	b := setup(t)
	lease := 30 * time.Second
	bus := &fakeBus{}
	outbox := &shortOutbox{Outbox: b.store, lease: func() time.Duration { return lease }}
	r := newRelay(b, bus, outbox, app.RelayConfig{SendTimeout: 5 * time.Second, Margin: 2 * time.Second, Lease: 30 * time.Second})
	b.create()
	b.step(r)
	lease = 0 // renewals fail from now on
	b.create()
	b.clock.Advance(22 * time.Second) // 8 s are left: enough for a send
	if n := b.step(r); n != 1 {
		t.Errorf("sent %d with 8 s left", n)
	}
	b.create()
	b.clock.Advance(2 * time.Second) // 6 s are left: not enough
	if n, err := r.Step(b.ctx()); n != 0 || err == nil {
		t.Errorf("sent %d with 6 s left, error %v", n, err)
	}
	lease = 30 * time.Second
	if n := b.step(r); n != 1 {
		t.Errorf("sent %d after the renewal", n)
	}
}

func TestRelayRepeatsWhatIsNotMarked(t *testing.T) {
	t.Parallel()
	b := setup(t)
	b.create()
	bus := &fakeBus{}
	outbox := &shortOutbox{Outbox: b.store, lease: func() time.Duration { return time.Minute }, markErr: errAway}
	r := newRelay(b, bus, outbox, app.RelayConfig{})
	if _, err := r.Step(b.ctx()); !errors.Is(err, errAway) {
		t.Errorf("got %v", err)
	}
	outbox.markErr = nil
	b.step(r)
	if got := bus.of(b.project.ID); !slices.Equal(got, []int64{1, 1}) {
		t.Errorf("sent %v: at least once means twice here", got)
	}
}

func TestRelayRunGivesShardsBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := setup(t)
		b.env.Now = time.Now
		b.create()
		bus := &fakeBus{}
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		r := newRelay(b, bus, b.store, app.RelayConfig{})
		go func() { done <- r.Run(ctx) }()
		synctest.Wait()
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		shards, err := b.store.LeaseShards(t.Context(), ports.ShardParams{Owner: newID(), Now: time.Now(), For: time.Minute})
		b.must(err)
		if len(shards) != ports.OutboxShards || len(bus.sent) != 1 {
			t.Errorf("%d shards are free, %d events sent", len(shards), len(bus.sent))
		}
	})
}

func TestRelayCleans(t *testing.T) {
	t.Parallel()
	b := setup(t)
	r := newRelay(b, &fakeBus{}, b.store, app.RelayConfig{Keep: time.Hour, CleanBatch: 2})
	for range 3 {
		b.create()
	}
	b.step(r)
	b.clock.Advance(2 * time.Hour)
	b.step(r) // removes two and comes again at once
	b.step(r)
	if n, err := b.store.Clean(b.ctx(), b.clock.Now(), 100); err != nil || n != 0 {
		t.Errorf("%d old rows are left, %v", n, err)
	}
}

func TestRelayConfig(t *testing.T) {
	t.Parallel()
	if err := (app.RelayConfig{}).Validate(); err != nil {
		t.Error(err)
	}
	for _, cfg := range []app.RelayConfig{{Lease: 9 * time.Second}, {Retry: time.Hour}, {Batch: -1}, {Gather: -1}, {Renew: 5 * time.Second}} {
		if cfg.Validate() == nil {
			t.Errorf("%+v is accepted", cfg)
		}
	}
}
