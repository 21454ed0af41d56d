package main

import (
	"context"
	"errors"
	"time"
)

// intake measures acknowledgements: the callback role alone, under full load.
// What it takes waits in the inbox for drain.
func (c *converge) intake(ctx context.Context, d time.Duration) (out intakeFigures, err error) {
	v, err := c.volley()
	if err != nil {
		return out, err
	}
	if err := errors.Join(c.cluster.settle(ctx), c.system.start(ctx, c.system.callback)); err != nil {
		return out, err
	}
	cpu := startCPU(c.system.parts(c.cluster.PID()))
	f := v.fire(ctx, c.system.callbackAddr, d, 0)
	out = intakeFigures{
		Acknowledged: len(f.acknowledged), PerSecond: perSecond(len(f.acknowledged), f.took), Refused: f.refused,
		Answer: quantilesOf(f.answers), CPU: cpu.stop(),
	}
	c.note(f)
	if len(f.acknowledged) == 0 {
		return out, errors.Join(invalid("no delivery was acknowledged"), ctx.Err())
	}
	return out, c.system.stop(c.system.callback)
}

// drain measures transitions: the process role alone, on what intake left. From
// the first event to the last one, by the server's clock.
func (c *converge) drain(ctx context.Context) (out drainFigures, err error) {
	if err := c.cluster.settle(ctx); err != nil {
		return out, err
	}
	began, err := c.observer.clock(ctx)
	if err != nil {
		return out, err
	}
	if err := c.system.start(ctx, c.system.process); err != nil {
		return out, err
	}
	cpu := startCPU(c.system.parts(c.cluster.PID()))
	if err := c.observer.awaitDrained(ctx); err != nil {
		return out, err
	}
	used := cpu.stop()
	done, err := c.observer.since(ctx, began)
	if err != nil {
		return out, err
	}
	out = drainFigures{Transitions: done.count, PerSecond: perSecond(done.count, done.last.Sub(done.first)), CPU: used}
	if err := c.system.stop(c.system.process); err != nil {
		return out, err
	}
	return out, c.allApplied(ctx)
}

// allApplied holds the events against the deliveries: each is news of a task of
// its own, so one that changed nothing means that something else was measured.
func (c *converge) allApplied(ctx context.Context) error {
	var idle int
	err := c.observer.conn.QueryRow(ctx, "SELECT count(*) FROM inbox_outcomes WHERE verdict <> 'applied'").Scan(&idle)
	if err == nil && idle > 0 {
		return invalid("%d deliveries changed nothing", idle)
	}
	return err
}

// together measures all roles at once under full load: acknowledgements while it
// lasts, transitions from its start to the last event.
func (c *converge) together(ctx context.Context) (out togetherFigures, err error) {
	v, err := c.volley()
	if err != nil {
		return out, err
	}
	if err := c.startAll(ctx); err != nil {
		return out, err
	}
	began, err := c.observer.clock(ctx)
	if err != nil {
		return out, err
	}
	cpu := startCPU(c.system.parts(c.cluster.PID()))
	f := v.fire(ctx, c.system.callbackAddr, c.roundTime(), 0)
	c.note(f)
	if err := errors.Join(c.observer.awaitDrained(ctx), c.observer.awaitPublished(ctx)); err != nil {
		return out, err
	}
	used := cpu.stop()
	done, err := c.observer.since(ctx, began)
	if err != nil {
		return out, err
	}
	out = togetherFigures{
		Acknowledged: len(f.acknowledged), AcknowledgedPerSec: perSecond(len(f.acknowledged), f.took),
		Transitions: done.count, TransitionsPerSec: perSecond(done.count, done.last.Sub(began)), CPU: used,
	}
	for name, s := range used {
		if name != "load" && done.count > 0 {
			out.CPUPerDelivery += s * 1e6 / figure(done.count)
		}
	}
	return out, errors.Join(c.stopAll(), c.allApplied(ctx))
}

// startAll starts every role and lets the relay publish what earlier parts left,
// so that nobody pays for it later.
func (c *converge) startAll(ctx context.Context) error {
	if err := c.system.start(ctx, c.system.delivery); err != nil {
		return err
	}
	if err := c.observer.awaitPublished(ctx); err != nil {
		return err
	}
	return errors.Join(c.cluster.settle(ctx), c.system.start(ctx, c.system.callback, c.system.process))
}

func (c *converge) stopAll() error {
	return c.system.stop(c.system.callback, c.system.process, c.system.delivery)
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
	v, err := c.volley()
	if err != nil {
		return err
	}
	if err := c.startAll(ctx); err != nil {
		return err
	}
	w, err := watch(ctx, "http://"+c.system.deliveryAddr, c.people.key, c.people.projects[:c.cmd.Streams])
	if err != nil {
		return err
	}
	f := v.fire(ctx, c.system.callbackAddr, max(c.roundTime(), 5*time.Second), float64(rate))
	c.note(f)
	want := 0
	for i := range len(f.acknowledged) { // the first so many tasks have had their delivery
		if i%c.cmd.Projects < c.cmd.Streams {
			want++
		}
	}
	errWait := errors.Join(c.observer.awaitDrained(ctx), w.await(ctx, want))
	delays, err := w.stop()
	if err := errors.Join(errWait, err); err != nil {
		return err
	}
	c.latency = latency{quantiles: quantilesOf(delays), Rate: rate, Streams: c.cmd.Streams, Events: len(delays)}
	return c.stopAll()
}
