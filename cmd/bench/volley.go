package main

import (
	"bufio"
	"context"
	"encoding/gob"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"
)

// volley is signed deliveries in a process that waits for its order to send them.
type volley struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	kill context.CancelFunc
}

// loadCommand is the command line of every load process.
func loadCommand() (path string, line string, err error) {
	path, err = os.Executable()
	return path, path + " load < AMMUNITION", err
}

// newVolley starts a process and returns when it has signed everything.
func newVolley(ctx context.Context, a ammunition) (*volley, error) {
	path, _, err := loadCommand()
	if err != nil {
		return nil, err
	}
	ctx, kill := context.WithCancel(ctx)
	v := &volley{cmd: exec.CommandContext(ctx, path, "load"), kill: kill}
	v.cmd.Stderr = os.Stderr
	if err := v.start(a); err != nil {
		return nil, errors.Join(fmt.Errorf("load process: %w", err), v.drop())
	}
	return v, nil
}

func (v *volley) start(a ammunition) error {
	in, errIn := v.cmd.StdinPipe()
	out, errOut := v.cmd.StdoutPipe()
	if err := errors.Join(errIn, errOut); err != nil {
		return err
	}
	v.in, v.out = in, bufio.NewReaderSize(out, 1<<20)
	if err := v.cmd.Start(); err != nil {
		return err
	}
	if err := v.tell(a); err != nil {
		return err
	}
	line, err := v.out.ReadString('\n')
	if err != nil || line != "ready\n" {
		return fmt.Errorf("it said %q: %w", line, err)
	}
	return nil
}

func (v *volley) tell(what any) error {
	line, err := json.Marshal(what)
	if err != nil {
		return err
	}
	_, err = v.in.Write(append(line, '\n'))
	return err
}

// pid is that of the load process.
func (v *volley) pid() int { return v.cmd.Process.Pid }

// fire gives the order and returns what came back when the process has ended.
func (v *volley) fire(ctx context.Context, o order) (*fired, error) {
	defer v.kill()
	stop := context.AfterFunc(ctx, v.kill)
	defer stop()
	var f fired
	if err := v.tell(o); err != nil {
		return nil, errors.Join(fmt.Errorf("load process: %w", err), v.drop())
	}
	if err := gob.NewDecoder(v.out).Decode(&f.shots); err != nil {
		return nil, errors.Join(fmt.Errorf("load process: %w", err), ctx.Err(), v.drop())
	}
	if err := v.cmd.Wait(); err != nil {
		return nil, fmt.Errorf("load process: %w", err)
	}
	return &f, nil
}

// drop ends a process whose deliveries are not wanted any more.
func (v *volley) drop() error {
	v.kill()
	if v.cmd.Process == nil {
		return nil
	}
	var exit *exec.ExitError
	if err := v.cmd.Wait(); err != nil && !errors.As(err, &exit) && !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// fired is what came back.
type fired struct{ shots }

// acknowledged calls visit with every delivery that got a 2xx: its message id, the
// index of the delivery, when it was due and when its answer had come.
func (f *fired) acknowledged(visit func(id string, index int, due, answered time.Time)) {
	for i, status := range f.Status {
		if status/100 == 2 {
			visit(messageID(f.Number[i]), int(f.Index[i]), time.Unix(0, f.Due[i]), time.Unix(0, f.Due[i]+f.Waited[i]))
		}
	}
}

// count is how many answers have the status; 0 is no answer.
func (f *fired) count(of func(status int16) bool) int {
	n := 0
	for _, status := range f.Status {
		if of(status) {
			n++
		}
	}
	return n
}

func acknowledged(status int16) bool { return status/100 == 2 }

// times are those of the answers with such a status, in ms.
func (f *fired) times(of func(status int16) bool, values []int64) []figure {
	var all []figure
	for i, status := range f.Status {
		if of(status) {
			all = append(all, milliseconds(time.Duration(values[i])))
		}
	}
	return all
}

func milliseconds(d time.Duration) figure { return figure(d.Seconds() * 1000) }

// perSecond is a rate.
func perSecond(n int, d time.Duration) figure {
	if d <= 0 {
		return 0
	}
	return figure(float64(n) / d.Seconds())
}
