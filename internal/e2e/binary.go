package e2e

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// startTimeout bounds the start of a process, buildTimeout the build.
const (
	startTimeout = 30 * time.Second
	buildTimeout = 10 * time.Minute
)

// built is the one build of a test process. The folder is left to Cleanup.
var built struct {
	once sync.Once
	dir  string
	path string
	err  error
}

// Binary returns the path of the aivedio binary, built once per test process.
// It skips the test under -short.
func Binary(t testing.TB) string {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the binary with real services, and -short asks for none")
	}
	built.once.Do(func() {
		if built.dir, built.err = os.MkdirTemp("", "aivedio-e2e-*"); built.err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), buildTimeout)
		defer cancel()
		built.path, built.err = launch.Build(ctx, "aivedio", built.dir)
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

// Cleanup removes what Binary built; TestMain calls it.
func Cleanup() error {
	if built.dir == "" {
		return nil
	}
	return os.RemoveAll(built.dir)
}

// Process is a running binary of a test. Its methods fail the test on error; the
// embedded process has those that return it.
type Process struct {
	*launch.Process
	t testing.TB
}

// Launch starts a process that ends with the test. The output of all its lives
// is logged when the test fails.
func Launch(t testing.TB, spec launch.Spec) *Process {
	t.Helper()
	p := &Process{Process: launch.New(spec), t: t}
	t.Cleanup(func() {
		if err := p.Process.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("output of %s (pids %v):\n%s", spec.Name, p.PIDs(), p.Tail(16<<10))
		}
	})
	p.Start()
	return p
}

// Serve launches `aivedio serve` in the roles. config is a file that
// launch.Deployment wrote, listen the address of API and callbacks; with port 0
// the process takes another port after each restart.
func Serve(t testing.TB, name, config, listen, roles string, env ...string) *Process {
	t.Helper()
	return Launch(t, launch.Spec{
		Name: name, Path: Binary(t), Env: env,
		Args: []string{"serve", "--config", config, "--listen", listen, "--roles", roles},
	})
}

// Deploy writes the configuration of a deployment into a folder of the test,
// which also gets its media folder, and returns the file.
func Deploy(t testing.TB, d launch.Deployment) string {
	t.Helper()
	dir := t.TempDir()
	if d.Media == "" {
		d.Media = filepath.Join(dir, "media")
		if err := os.Mkdir(d.Media, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "aivedio.yaml")
	if err := d.WriteConfig(file); err != nil {
		t.Fatal(err)
	}
	return file
}

// Start starts the process, for the first time or after Kill or Stop, and waits
// until it is ready.
func (p *Process) Start() {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := p.Process.Start(ctx); err != nil {
		p.t.Fatal(err)
	}
}

// Kill ends the process with SIGKILL; what it had in hand is lost.
func (p *Process) Kill() {
	p.t.Helper()
	if err := p.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
}

// Restart is Kill and Start; the pid changes.
func (p *Process) Restart() {
	p.t.Helper()
	p.Kill()
	p.Start()
}

// Stop ends the process in order and fails the test when it does not within ten
// seconds or with another exit code than 0.
func (p *Process) Stop() {
	p.t.Helper()
	if err := p.Process.Stop(10 * time.Second); err != nil {
		p.t.Error(err)
	}
}
