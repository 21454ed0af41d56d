package launch

import (
	"context"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// shell runs a script as a process.
func shell(t *testing.T, script string) *Process {
	t.Helper()
	path, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("there is no shell here")
	}
	p := New(Spec{Name: "script", Path: path, Args: []string{"-c", script}})
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	})
	return p
}

func TestProcessLives(t *testing.T) {
	t.Parallel()
	p := shell(t, "echo starting; echo ready http://127.0.0.1:1 roles=[a b]; exec sleep 60")
	for range 2 {
		if err := p.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.URL(); got != "http://127.0.0.1:1" {
			t.Errorf("URL %q", got)
		}
		if err := p.Start(t.Context()); err == nil {
			t.Error("a living process was started again")
		}
		if err := p.Kill(); err != nil {
			t.Fatal(err)
		}
		if p.Alive() || p.PID() != 0 {
			t.Error("alive after Kill")
		}
	}
	if pids := p.PIDs(); len(pids) != 2 || pids[0] == pids[1] {
		t.Errorf("pids %v, want two different ones", pids)
	}
	if log := p.Tail(1 << 20); strings.Count(log, "starting") != 2 {
		t.Errorf("the log lost a life:\n%s", log)
	}
}

func TestProcessThatEndsIsNotReady(t *testing.T) {
	t.Parallel()
	p := shell(t, "echo no database >&2; exit 3")
	err := p.Start(t.Context())
	if err == nil || !strings.Contains(err.Error(), "no database") || !strings.Contains(err.Error(), "exit status 3") {
		t.Errorf("error %v, want the output and the exit status", err)
	}
}

func TestProcessThatIsNeverReady(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := shell(t, "exec sleep 60")
	if err := p.Start(ctx); err == nil || p.Alive() {
		t.Errorf("error %v, alive %t; want an error and no process", err, p.Alive())
	}
}

func TestStop(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, script, want string
		grace              time.Duration
	}{
		{"in order", "trap 'exit 0' TERM; echo ready x; while :; do sleep 0.05; done", "", 10 * time.Second},
		{"with a code", "trap 'exit 4' TERM; echo ready x; while :; do sleep 0.05; done", "exit status 4", 10 * time.Second},
		{"deaf", "trap '' TERM; echo ready x; while :; do sleep 0.05; done", "was killed", 100 * time.Millisecond},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			p := shell(t, tt.script)
			if err := p.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			err := p.Stop(tt.grace)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			if p.Alive() {
				t.Error("alive after Stop")
			}
		})
	}
}

func TestParseReady(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		line string
		want Ready
		ok   bool
	}{
		{"ready http://127.0.0.1:80 project=prj_1 key=ak=2", Ready{"http://127.0.0.1:80", map[string]string{"project": "prj_1", "key": "ak=2"}}, true},
		{"ready http://127.0.0.1:80 roles=[api poll] x=1", Ready{"http://127.0.0.1:80", map[string]string{"roles": "[api poll]", "x": "1"}}, true},
		{"ready", Ready{}, false},
		{"already http://127.0.0.1:80", Ready{}, false},
		{"", Ready{}, false},
	} {
		got, ok := ParseReady(tt.line)
		if diff := cmp.Diff(tt.want, got); ok != tt.ok || diff != "" {
			t.Errorf("%q: %t, want %t; %s", tt.line, ok, tt.ok, diff)
		}
	}
}
