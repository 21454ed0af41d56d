package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// spec says how to run one service process.
type spec struct {
	name string   // for messages
	path string   // executable
	args []string // without the executable
	env  []string // whole environment
	log  string   // file that takes standard output and error

	account *account       // nil: the account of this process
	orphan  syscall.Signal // what the guard sends when this process dies
	scratch string         // folder that the guard then removes, "" for none
}

// process is a running child. Its methods may be called from any goroutine.
type process struct {
	spec  spec
	cmd   *exec.Cmd
	guard *guard
	done  chan struct{} // closed once the child has been waited for
}

// maxLog bounds the log of a service that keeps its folder between runs.
const maxLog = 16 << 20

// start runs s and its guard.
func start(s spec) (*process, error) {
	logFile, err := openLog(s.log)
	if err != nil {
		return nil, fmt.Errorf("open the log of %s: %w", s.name, err)
	}
	defer logFile.Close()
	cmd := exec.Command(s.path, s.args...)
	cmd.Env = s.env
	cmd.Dir = "/" // the current folder may be closed to the child's account
	cmd.Stdout, cmd.Stderr = logFile, logFile
	cmd.SysProcAttr = detached(s.account)
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", s.name, err)
	}
	g, err := startGuard(cmd.Process.Pid, s.orphan, s.scratch)
	if err != nil {
		killErr := cmd.Process.Kill()
		_ = cmd.Wait() // reports the kill
		return nil, errors.Join(fmt.Errorf("guard %s: %w", s.name, err), killErr)
	}
	p := &process{spec: s, cmd: cmd, guard: g, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		_ = cmd.Wait() // how it ended is in cmd.ProcessState
		g.release()    // before the pid can belong to someone else
	}()
	return p, nil
}

func openLog(path string) (*os.File, error) {
	flags := os.O_CREATE | os.O_WRONLY | os.O_APPEND
	if fi, err := os.Stat(path); err == nil && fi.Size() > maxLog {
		flags |= os.O_TRUNC
	}
	return os.OpenFile(path, flags, 0o600)
}

// awaitReady calls probe until it returns nil. It fails when ctx ends or the
// child dies, and quotes the end of the log then.
func (p *process) awaitReady(ctx context.Context, probe func(context.Context) error) error {
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := probe(ctx)
		if err == nil && p.alive() {
			return nil
		}
		select {
		case <-p.done:
			return fmt.Errorf("%s ended while starting (%s): %s", p.spec.name, p.cmd.ProcessState, p.logTail())
		case <-ctx.Done():
			return fmt.Errorf("%s is not ready (%w; last try: %w): %s", p.spec.name, ctx.Err(), err, p.logTail())
		case <-tick.C:
		}
	}
}

func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// signal sends s; a child that is gone already is no error.
func (p *process) signal(s syscall.Signal) error {
	if err := p.cmd.Process.Signal(s); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("signal %s: %w", p.spec.name, err)
	}
	return nil
}

// stop sends s, waits up to grace, then kills. It returns when the child is
// gone; an error says that force was needed or that even force failed.
func (p *process) stop(s syscall.Signal, grace time.Duration) error {
	if err := p.signal(s); err != nil {
		return err
	}
	if p.waitFor(grace) {
		return nil
	}
	if err := p.signal(syscall.SIGKILL); err != nil {
		return err
	}
	if !p.waitFor(10 * time.Second) {
		return fmt.Errorf("%s survives SIGKILL", p.spec.name)
	}
	return fmt.Errorf("%s did not stop within %s and was killed", p.spec.name, grace)
}

func (p *process) waitFor(d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-p.done:
		return true
	case <-timer.C:
		return false
	}
}

// logTail returns the last lines of the child's log for an error message.
func (p *process) logTail() string {
	f, err := os.Open(p.spec.log)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	defer f.Close()
	const keep = 2000
	if fi, err := f.Stat(); err == nil && fi.Size() > keep {
		if _, err := f.Seek(-keep, io.SeekEnd); err != nil {
			return "(no log: " + err.Error() + ")"
		}
	}
	tail, err := io.ReadAll(f)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	return string(tail)
}

// guard is the shell that outlives this process by the time it takes to stop
// the orphaned service.
type guard struct {
	cmd  *exec.Cmd
	pipe io.Closer
	once sync.Once
}

// guardScript waits for the end of its standard input, then stops process $2
// with signal $1, with KILL after 15 s, and removes folder $3. The traps keep
// a Ctrl-C that reaches the whole terminal from ending the guard first.
const guardScript = `trap '' INT TERM HUP
read -r _
kill -s "$1" "$2" 2>/dev/null
n=0
while kill -0 "$2" 2>/dev/null && [ $n -lt 150 ]; do sleep 0.1; n=$((n+1)); done
kill -s KILL "$2" 2>/dev/null
if [ -n "$3" ]; then rm -rf "$3"; fi
`

func startGuard(pid int, s syscall.Signal, scratch string) (*guard, error) {
	cmd := exec.Command("/bin/sh", "-c", guardScript, "guard",
		strconv.Itoa(int(s)), strconv.Itoa(pid), scratch)
	cmd.SysProcAttr = detached(nil)
	pipe, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	return &guard{cmd: cmd, pipe: pipe}, nil
}

// release ends the guard without its acting.
func (g *guard) release() {
	g.once.Do(func() {
		_ = g.cmd.Process.Kill() // gone already is as good
		_ = g.cmd.Wait()         // reports the kill, closes the pipe
	})
}
