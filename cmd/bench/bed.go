package main

import (
	"context"
	"errors"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// bed is what scenarios of webhooks stand on: a cluster with tasks that the vendor
// has accepted, the product's processes, a load, and a look from outside.
type bed struct {
	std     output
	dir     string
	conns   int
	secrets launch.Secrets

	cluster  *cluster
	system   *system
	people   *population
	observer *observer
	settings settings

	began        time.Time
	progress     int
	acknowledged []string
	refused      int
	loads        []int
}

// bedSpec says how large it is.
type bedSpec struct {
	projects, tasks int
	// conns is how many deliveries are under way at once.
	conns int
	// peers are the databases that get a copy of ours before anything runs.
	peers []string
	// settings are further ones of the server.
	settings map[string]string
}

// Every volley raises the progress of its tasks by progressStep percent, so that
// each delivery is a real transition; the hundred bounds the volleys.
const (
	progressStep = 6
	maxVolleys   = 100 / progressStep
)

// open starts the server, makes the tasks, copies them for the peers and builds the
// binary. close ends all of it, also after an error.
func (b *bed) open(ctx context.Context, std output, dir string, spec bedSpec) (err error) {
	b.std, b.dir, b.conns, b.secrets = std, dir, spec.conns, launch.NewSecrets()
	b.began = time.Now().Add(-time.Minute).Truncate(time.Millisecond)
	std.say("starting PostgreSQL with fsync on")
	if b.cluster, err = startCluster(ctx, spec.settings); err != nil {
		return err
	}
	// They run already, as most jobs do that a delivery tells of, and their next query
	// is far away: without a poller it would be overdue for all of them, which a
	// delivery corrects with a write into every index of the attempt.
	std.say("making %d tasks in %d projects", spec.tasks, spec.projects)
	if b.people, err = seed(ctx, b.cluster.URL(oursDatabase), b.secrets, spec.projects, spec.tasks, (*seeder).running); err != nil {
		return err
	}
	for _, name := range spec.peers {
		if err := b.cluster.copyAs(ctx, name); err != nil {
			return err
		}
	}
	if b.settings, err = b.cluster.settings(ctx, spec.peers...); err != nil {
		return err
	}
	std.say("building the binary")
	if b.system, err = newSystem(ctx, dir, b.cluster.URL(oursDatabase), b.secrets); err != nil {
		return err
	}
	b.observer, err = newObserver(ctx, b.cluster.URL(oursDatabase))
	return err
}

// close stops everything that was started.
func (b *bed) close() error {
	var errs []error
	if b.system != nil {
		errs = append(errs, b.system.kill())
	}
	if b.observer != nil {
		b.observer.close()
	}
	if b.cluster != nil {
		errs = append(errs, b.cluster.Stop())
	}
	return errors.Join(errs...)
}

// complaints is what the processes logged.
func (b *bed) complaints() string {
	if b.system == nil {
		return ""
	}
	return b.system.complaints()
}

// volley signs the next news for every task.
func (b *bed) volley(ctx context.Context) (*volley, error) {
	b.progress += progressStep
	if b.progress > 100 {
		return nil, errors.New("there is no progress left for another part; measure fewer rounds")
	}
	return b.arm(ctx, b.system.callbackAddr, b.people.tasks, len(b.people.tasks))
}

// arm signs count deliveries for the tasks.
func (b *bed) arm(ctx context.Context, host string, tasks []seededTask, count int) (*volley, error) {
	a := ammunition{Host: host, Secret: b.secrets.WebhookSecret, Count: count, Progress: b.progress, Began: b.began}
	for _, t := range tasks {
		a.Tasks = append(a.Tasks, t.target)
	}
	v, err := newVolley(ctx, a)
	if err != nil {
		return nil, err
	}
	b.loads = append(b.loads, v.pid())
	return v, nil
}

// note keeps what was promised, for the check at the end.
func (b *bed) note(f *fired) {
	f.acknowledged(func(id string, _ int, _, _ time.Time) { b.acknowledged = append(b.acknowledged, id) })
	b.refused += f.count(func(status int16) bool { return !acknowledged(status) })
}

// check compares what was promised with what is there, and notes who took part.
func (b *bed) check(ctx context.Context, r *report) (err error) {
	if r.Lost, err = b.observer.missing(ctx, b.acknowledged); err != nil {
		return err
	}
	violations, named, err := b.observer.violations(ctx)
	if err != nil {
		return err
	}
	for _, v := range named {
		b.std.say("%s", v)
	}
	r.Violations, r.Settings = violations, b.settings
	commands, pids := b.system.commands()
	r.Commands = append(r.Commands, commands...)
	r.ran("", pids...)
	_, line, err := loadCommand()
	if err != nil {
		return err
	}
	r.ran(line, b.loads...)
	r.ran(commandOf(b.cluster.PID()), b.cluster.PID())
	return nil
}
