package main

import (
	"context"
	"errors"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// intake measures acknowledgements: the callback role alone, under full load.
// What it takes waits in the inbox for drain.
func (b *bed) intake(ctx context.Context, d time.Duration) (out intakeFigures, err error) {
	v, err := b.volley(ctx)
	if err != nil {
		return out, err
	}
	return b.take(ctx, v, b.system.callback, order{Conns: b.conns, For: d})
}

// take runs a callback role for one volley.
func (b *bed) take(ctx context.Context, v *volley, callback *launch.Process, o order) (out intakeFigures, err error) {
	if err := errors.Join(b.cluster.settle(ctx), b.system.start(ctx, callback)); err != nil {
		return out, errors.Join(err, v.drop())
	}
	cpu := startCPU(b.system.parts(b.cluster.PID()))
	f, err := v.fire(ctx, o)
	if err != nil {
		return out, err
	}
	out = intakeOf(f, cpu.stop())
	b.note(f)
	if out.Acknowledged == 0 {
		return out, errors.Join(invalid("no delivery was acknowledged"), ctx.Err())
	}
	return out, b.system.stop(callback)
}

// intakeOf are the figures of what came back.
func intakeOf(f *fired, cpu map[string]cpuTime) intakeFigures {
	n := f.count(acknowledged)
	cpu["load"] = figure(f.CPU)
	return intakeFigures{
		Acknowledged: n, PerSecond: perSecond(n, f.Lasted), Refused: len(f.Status) - n,
		Answer: quantilesOf(f.times(acknowledged, f.Took)), CPU: cpu,
	}
}

// drain measures transitions: the process role alone, on what intake left. From
// the first event to the last one, by the server's clock.
func (b *bed) drain(ctx context.Context) (out drainFigures, err error) {
	if err := b.cluster.settle(ctx); err != nil {
		return out, err
	}
	began, err := b.observer.clock(ctx)
	if err != nil {
		return out, err
	}
	if err := b.system.start(ctx, b.system.process); err != nil {
		return out, err
	}
	cpu := startCPU(b.system.parts(b.cluster.PID()))
	if err := b.observer.awaitDrained(ctx); err != nil {
		return out, err
	}
	used := cpu.stop()
	done, err := b.observer.since(ctx, began)
	if err != nil {
		return out, err
	}
	out = drainFigures{Transitions: done.count, PerSecond: perSecond(done.count, done.last.Sub(done.first)), CPU: used}
	if err := b.system.stop(b.system.process); err != nil {
		return out, err
	}
	return out, b.allApplied(ctx)
}

// allApplied holds the events against the deliveries: each is news of a task of
// its own, so one that changed nothing means that something else was measured.
func (b *bed) allApplied(ctx context.Context) error {
	var idle int
	err := b.observer.conn.QueryRow(ctx, "SELECT count(*) FROM inbox_outcomes WHERE verdict <> 'applied'").Scan(&idle)
	if err == nil && idle > 0 {
		return invalid("%d deliveries changed nothing", idle)
	}
	return err
}

// together measures all roles at once under full load: acknowledgements while it
// lasts, transitions from its start to the last event.
func (b *bed) together(ctx context.Context, o order) (out togetherFigures, err error) {
	v, err := b.volley(ctx)
	if err != nil {
		return out, err
	}
	if err := b.startAll(ctx); err != nil {
		return out, errors.Join(err, v.drop())
	}
	began, err := b.observer.clock(ctx)
	if err != nil {
		return out, err
	}
	cpu := startCPU(b.system.parts(b.cluster.PID()))
	f, err := v.fire(ctx, o)
	if err != nil {
		return out, err
	}
	b.note(f)
	if err := errors.Join(b.observer.awaitDrained(ctx), b.observer.awaitPublished(ctx)); err != nil {
		return out, err
	}
	used := cpu.stop()
	done, err := b.observer.since(ctx, began)
	if err != nil {
		return out, err
	}
	acked := f.count(acknowledged)
	out = togetherFigures{
		Acknowledged: acked, AcknowledgedPerSec: perSecond(acked, f.Lasted),
		Transitions: done.count, TransitionsPerSec: perSecond(done.count, done.last.Sub(began)), CPU: used,
	}
	for _, s := range used {
		if done.count > 0 {
			out.CPUPerDelivery += s * 1e6 / figure(done.count)
		}
	}
	used["load"] = figure(f.CPU)
	return out, errors.Join(b.stopAll(), b.allApplied(ctx))
}

// startAll starts every role and lets the relay publish what earlier parts left,
// so that nobody pays for it later.
func (b *bed) startAll(ctx context.Context) error {
	if err := b.system.start(ctx, b.system.delivery); err != nil {
		return err
	}
	if err := b.observer.awaitPublished(ctx); err != nil {
		return err
	}
	return errors.Join(b.cluster.settle(ctx), b.system.start(ctx, b.system.callback, b.system.process))
}

func (b *bed) stopAll() error {
	return b.system.stop(b.system.callback, b.system.process, b.system.delivery)
}

// The latency is measured at a part of what all roles do at once, and not above
// latencyRate per second: a queue that grows measures only itself.
const (
	latencyShare = 0.25
	latencyRate  = 1000
)

// measureLatency measures from the commit to the client of a stream, at a paced rate.
func (c *converge) measureLatency(ctx context.Context) error {
	var together []figure
	for _, r := range c.rounds {
		together = append(together, r.Together.TransitionsPerSec)
	}
	rate := min(latencyShare*median(together), latencyRate)
	v, err := c.volley(ctx)
	if err != nil {
		return err
	}
	if err := c.startAll(ctx); err != nil {
		return errors.Join(err, v.drop())
	}
	w, err := watch(ctx, "http://"+c.system.deliveryAddr, c.people.key, c.people.projects[:c.cmd.Streams])
	if err != nil {
		return errors.Join(err, v.drop())
	}
	f, err := v.fire(ctx, order{Conns: c.conns, For: max(c.roundTime(), 5*time.Second), Rate: float64(rate)})
	if err != nil {
		_, errStop := w.stop()
		return errors.Join(err, errStop)
	}
	c.note(f)
	want := 0
	f.acknowledged(func(_ string, index int, _, _ time.Time) {
		if index%c.cmd.Projects < c.cmd.Streams {
			want++
		}
	})
	errWait := errors.Join(c.observer.awaitDrained(ctx), w.await(ctx, want))
	delays, err := w.stop()
	if err := errors.Join(errWait, err); err != nil {
		return err
	}
	c.latency = latency{quantiles: quantilesOf(delays), Rate: rate, Streams: c.cmd.Streams, Events: len(delays)}
	return c.stopAll()
}
