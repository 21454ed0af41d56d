package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
	"github.com/aivedio/aivedio/internal/testenv/services"
)

// system is this product as it is deployed: the real binary, one process per
// role. Relay, dispatch and gateway share a process, and with it the bus and the
// notifier inside it: a broker on the same two cores would be measured, not we.
type system struct {
	secrets launch.Secrets
	binary  string
	dir     string
	all     []served
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
	s := &system{secrets: secrets, binary: binary, dir: dir}
	if err := os.MkdirAll(filepath.Join(dir, "media"), 0o755); err != nil {
		return nil, err
	}
	ours := launch.Deployment{Database: database}
	if s.callback, s.callbackAddr, err = s.serve("callback", "callback", ours); err != nil {
		return nil, err
	}
	if s.process, _, err = s.serve("process", "process", ours); err != nil {
		return nil, err
	}
	s.delivery, s.deliveryAddr, err = s.serve("delivery", "relay,dispatch,gateway", ours)
	return s, err
}

// serve configures one more process with an address of its own, which does not run
// yet. The deployment names what differs from the others: at least the database.
func (s *system) serve(name, roles string, d launch.Deployment, env ...string) (p *launch.Process, addr string, err error) {
	port, err := services.FreePort()
	if err != nil {
		return nil, "", err
	}
	addr = net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	config := filepath.Join(s.dir, name+".yaml")
	d.Secrets, d.Public, d.Vendor, d.Media = s.secrets, "http://"+addr, "http://127.0.0.1:9", filepath.Join(s.dir, "media")
	if err := d.WriteConfig(config); err != nil {
		return nil, "", err
	}
	p = launch.New(launch.Spec{Name: name, Path: s.binary, Args: []string{"serve", "--config", config, "--roles", roles, "--listen", addr}, Env: env})
	s.all = append(s.all, served{p, env})
	return p, addr, nil
}

// served is a process with what its environment adds to the configuration.
type served struct {
	*launch.Process
	env []string
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
	var errs []error
	for _, p := range s.all {
		errs = append(errs, p.Kill())
	}
	return errors.Join(errs...)
}

// parts are the running processes and the database.
func (s *system) parts(postgres int) map[string]part {
	parts := map[string]part{"postgres": {pid: postgres, tree: true}}
	for _, p := range s.all {
		if pid := p.PID(); pid != 0 {
			parts[p.Name()] = part{pid: pid}
		}
	}
	return parts
}

// commands are the command lines, pids the ids of all their lives. One that never
// ran is left out.
func (s *system) commands() (lines []string, pids []int) {
	for _, p := range s.all {
		if lives := p.PIDs(); len(lives) > 0 {
			lines = append(lines, strings.TrimSpace(strings.Join(p.env, " ")+" "+p.Command()))
			pids = append(pids, lives...)
		}
	}
	return lines, pids
}

// complaints is what the processes logged; at level warn a healthy run says
// nothing.
func (s *system) complaints() string {
	text := ""
	for _, p := range s.all {
		text += fmt.Sprintf("[%s]\n%s\n", p.Name(), p.Tail(3000))
	}
	return text
}
