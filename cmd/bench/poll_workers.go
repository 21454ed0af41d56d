package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// pollWorkers are the processes with the role poll. A change of their limits is a
// new set of them.
type pollWorkers struct {
	binary, dir string
	deployment  launch.Deployment

	all     []*launch.Process // of all sets
	current []*launch.Process
}

// start starts n workers under the limits.
func (w *pollWorkers) start(ctx context.Context, n int, allowed limit) error {
	config := filepath.Join(w.dir, fmt.Sprintf("poll-%.0f.yaml", allowed.perSecond))
	w.deployment.Media = w.dir
	w.deployment.Queries = launch.Rate{PerSecond: allowed.perSecond, Burst: allowed.burst}
	if err := w.deployment.WriteConfig(config); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	w.current = nil
	for i := range n {
		p := launch.New(launch.Spec{
			Name: fmt.Sprintf("poll-%d", i+1), Path: w.binary, Env: []string{"AIVEDIO_POLLS=" + strconv.Itoa(allowed.calls)},
			Args: []string{"serve", "--config", config, "--roles", "poll", "--listen", "127.0.0.1:0"},
		})
		w.all, w.current = append(w.all, p), append(w.current, p)
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stop stops the workers in order.
func (w *pollWorkers) stop() error {
	var errs []error
	for _, p := range w.current {
		errs = append(errs, p.Stop(stopGrace))
	}
	return errors.Join(errs...)
}

// kill ends whatever still runs.
func (w *pollWorkers) kill() error {
	var errs []error
	for _, p := range w.all {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

// complaints is what they logged.
func (w *pollWorkers) complaints() string {
	text := ""
	for _, p := range w.all {
		text += fmt.Sprintf("[%s]\n%s\n", p.Name(), p.Tail(3000))
	}
	return text
}

// parts are the workers, the database and the vendor, for the meter of CPU.
func (p *poll) parts() map[string]part {
	parts := map[string]part{"postgres": {pid: p.cluster.PID(), tree: true}, "vendor": {pid: p.vendor.process.PID()}}
	for _, w := range p.workers.current {
		parts[w.Name()] = part{pid: w.PID()}
	}
	return parts
}
