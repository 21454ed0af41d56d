package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spec says what to run.
type Spec struct {
	// Name is for messages.
	Name string
	// Path is the executable.
	Path string
	Args []string
	// Env is added to the environment of this process, of which variables that
	// begin with AIVEDIO_ are left out.
	Env []string
}

// Process is a child that may be killed and started again. It dies with this
// process where the system can arrange that (Linux). Methods are safe for
// concurrent use; those that start or end the child wait for one another.
type Process struct {
	spec Spec
	log  log

	mu    sync.Mutex // held while starting or ending
	state sync.Mutex // guards what follows
	run   *run
	pids  []int
	ready Ready
}

// run is one life of a process.
type run struct {
	cmd   *exec.Cmd
	ready chan Ready
	done  chan struct{} // closed after Wait
	err   error         // of Wait; read after done
}

// New returns a process that is not running yet.
func New(spec Spec) *Process { return &Process{spec: spec} }

// ErrRunning is returned by Start when the child lives.
var ErrRunning = errors.New("is running already")

// Start runs the child and returns when it has printed its ready line. When ctx
// ends first, or the child does, the child is gone and the error quotes its
// output.
func (p *Process) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Alive() {
		return fmt.Errorf("%s %w", p.spec.Name, ErrRunning)
	}
	r, err := p.spawn()
	if err != nil {
		return err
	}
	select {
	case ready := <-r.ready:
		p.state.Lock()
		p.ready = ready
		p.state.Unlock()
		return nil
	case <-r.done:
		return fmt.Errorf("%s ended before it was ready (%w)\n%s", p.spec.Name, r.err, p.Tail(4000))
	case <-ctx.Done():
		_ = r.cmd.Process.Kill() // gone already is as good
		<-r.done
		return fmt.Errorf("%s is not ready: %w\n%s", p.spec.Name, ctx.Err(), p.Tail(4000))
	}
}

func (p *Process) spawn() (*run, error) {
	r := &run{ready: make(chan Ready, 1), done: make(chan struct{})}
	r.cmd = exec.Command(p.spec.Path, p.spec.Args...)
	r.cmd.Env = append(cleanEnv(), p.spec.Env...)
	r.cmd.Stdout = &readyWatch{log: &p.log, found: r.ready}
	r.cmd.Stderr = &p.log
	r.cmd.SysProcAttr = childAttr()
	if err := r.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.spec.Name, err)
	}
	p.state.Lock()
	p.run, p.pids = r, append(p.pids, r.cmd.Process.Pid)
	p.state.Unlock()
	fmt.Fprintf(&p.log, "--- %s runs as pid %d\n", p.spec.Name, r.cmd.Process.Pid)
	go func() {
		r.err = r.cmd.Wait()
		fmt.Fprintf(&p.log, "--- pid %d: %v\n", r.cmd.Process.Pid, r.cmd.ProcessState)
		close(r.done)
	}()
	return r, nil
}

// Kill ends the child with SIGKILL and returns when it is gone. A child that is
// not running is no error.
func (p *Process) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.current()
	if r == nil {
		return nil
	}
	if err := r.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill %s: %w", p.spec.Name, err)
	}
	<-r.done
	return nil
}

// Stop sends SIGTERM and returns when the child is gone. An exit code other than
// 0 is an error, and so is a child that outlives the grace; it is killed.
func (p *Process) Stop(grace time.Duration) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.current()
	if r == nil {
		return nil
	}
	if err := r.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("stop %s: %w", p.spec.Name, err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-r.done:
	case <-timer.C:
		_ = r.cmd.Process.Kill() // gone already is as good
		<-r.done
		return fmt.Errorf("%s did not stop within %s and was killed\n%s", p.spec.Name, grace, p.Tail(4000))
	}
	if r.err != nil {
		return fmt.Errorf("%s stopped badly (%w)\n%s", p.spec.Name, r.err, p.Tail(4000))
	}
	return nil
}

// current is the life that has not ended, or nil.
func (p *Process) current() *run {
	p.state.Lock()
	defer p.state.Unlock()
	if p.run == nil {
		return nil
	}
	select {
	case <-p.run.done:
		return nil
	default:
		return p.run
	}
}

// Alive reports whether the child runs.
func (p *Process) Alive() bool { return p.current() != nil }

// Done is closed when the present life of the child ends, by whatever cause; it
// is closed already when there is none.
func (p *Process) Done() <-chan struct{} {
	if r := p.current(); r != nil {
		return r.done
	}
	gone := make(chan struct{})
	close(gone)
	return gone
}

// PID is the id of the present life, 0 when there is none.
func (p *Process) PID() int {
	if r := p.current(); r != nil {
		return r.cmd.Process.Pid
	}
	return 0
}

// PIDs are the ids of all lives, in their order.
func (p *Process) PIDs() []int {
	p.state.Lock()
	defer p.state.Unlock()
	return append([]int(nil), p.pids...)
}

// Ready is the line of the newest start.
func (p *Process) Ready() Ready {
	p.state.Lock()
	defer p.state.Unlock()
	return p.ready
}

// URL is the base address that the newest start printed.
func (p *Process) URL() string { return p.Ready().URL }

// Name is that of the Spec.
func (p *Process) Name() string { return p.spec.Name }

// Command is the command line.
func (p *Process) Command() string {
	return strings.Join(append([]string{p.spec.Path}, p.spec.Args...), " ")
}

// Tail returns the last n bytes of the output of all lives, both streams.
func (p *Process) Tail(n int) string {
	text := p.log.String()
	return text[max(0, len(text)-n):]
}

// cleanEnv is this process's environment without what would configure the child
// behind the back of its Spec.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !strings.HasPrefix(kv, "AIVEDIO_") {
			env = append(env, kv)
		}
	}
	return env
}
