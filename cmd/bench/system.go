package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/testenv/services"
)

// system is this product as it is deployed: the real binary, one process per
// role. Relay, dispatch and gateway share a process, and with it the bus and the
// notifier inside it: a broker on the same two cores would be measured, not we.
type system struct {
	secrets launch.Secrets
	// callback, process and delivery are not running until a phase starts them.
	callback, process, delivery *launch.Process
	// callbackAddr and deliveryAddr stay the same over restarts.
	callbackAddr, deliveryAddr string
}

// stopGrace is how long a process may take to stop in order.
const stopGrace = 20 * time.Second

// newSystem builds the binary into dir and configures it for the database.
func newSystem(ctx context.Context, dir, database string, secrets launch.Secrets) (*system, error) {
	binary, err := launch.Build(ctx, "aivedio", dir)
	if err != nil {
		return nil, err
	}
	s := &system{secrets: secrets}
	ports := make([]string, 3)
	for i := range ports {
		port, err := services.FreePort()
		if err != nil {
			return nil, err
		}
		ports[i] = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	}
	s.callbackAddr, s.deliveryAddr = ports[0], ports[1]
	media := filepath.Join(dir, "media")
	if err := os.MkdirAll(media, 0o755); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "aivedio.yaml")
	d := launch.Deployment{Secrets: secrets, Database: database, Public: "http://" + s.callbackAddr, Vendor: "http://127.0.0.1:9", Media: media}
	if err := d.WriteConfig(config); err != nil {
		return nil, err
	}
	serve := func(roles, listen string) *launch.Process {
		return launch.New(launch.Spec{Name: roles, Path: binary, Args: []string{"serve", "--config", config, "--roles", roles, "--listen", listen}})
	}
	s.callback = serve("callback", s.callbackAddr)
	s.process = serve("process", ports[2])
	s.delivery = serve("relay,dispatch,gateway", s.deliveryAddr)
	return s, nil
}

// start starts processes; the caller stops them.
func (s *system) start(ctx context.Context, all ...*launch.Process) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, p := range all {
		if err := p.Start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stop stops processes in order; one that needs force is an error.
func (s *system) stop(all ...*launch.Process) error {
	var errs []error
	for _, p := range all {
		errs = append(errs, p.Stop(stopGrace))
	}
	return errors.Join(errs...)
}

// kill ends whatever still runs.
func (s *system) kill() error {
	return errors.Join(s.callback.Kill(), s.process.Kill(), s.delivery.Kill())
}

// parts are the running processes, the database and this one.
func (s *system) parts(postgres int) map[string]part {
	parts := map[string]part{"postgres": {pid: postgres, tree: true}, "load": {pid: os.Getpid()}}
	for name, p := range map[string]*launch.Process{"callback": s.callback, "process": s.process, "delivery": s.delivery} {
		if pid := p.PID(); pid != 0 {
			parts[name] = part{pid: pid}
		}
	}
	return parts
}

// commands are the command lines, pids the ids of all their lives.
func (s *system) commands() (lines []string, pids []int) {
	for _, p := range []*launch.Process{s.callback, s.process, s.delivery} {
		lines = append(lines, p.Command())
		pids = append(pids, p.PIDs()...)
	}
	return lines, pids
}

// complaints is what the processes logged; at level warn a healthy run says
// nothing.
func (s *system) complaints() string {
	text := ""
	for _, p := range []*launch.Process{s.callback, s.process, s.delivery} {
		text += fmt.Sprintf("[%s]\n%s\n", p.Name(), p.Tail(3000))
	}
	return text
}
