package services

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// PostgresOptions says what cluster StartPostgres runs.
type PostgresOptions struct {
	// Dir keeps the data between runs. Empty means a temporary folder that
	// goes away with the server.
	Dir string
	// Port on 127.0.0.1; 0 takes a free one and keeps it until Stop.
	Port int
	// Database is created when it does not exist; empty means "postgres".
	Database string
	// NoSync turns fsync and full_page_writes off: fast, and broken after a
	// crash of the machine. For tests only.
	NoSync bool
	// Settings are server parameters, such as "shared_buffers": "1GB".
	Settings map[string]string
}

// Postgres is a cluster with one superuser, "aivedio", and a random password.
// Methods may be called from any goroutine; they are serialised.
type Postgres struct {
	opts     PostgresOptions
	bin      string
	dir      string // absolute; data, password, log and lock live here
	scratch  string // dir if it is temporary, else ""
	password string
	account  *account
	unlock   func()

	mu   sync.Mutex
	port int
	proc *process
}

// postgresUser is the superuser of every cluster started here.
const postgresUser = "aivedio"

// StartPostgres starts a cluster, initialising Dir first when it is empty,
// and returns when it accepts connections. ctx bounds the start only. A
// server that a killed process left on the same Dir is stopped first; a Dir
// in use by a living process is an error.
func StartPostgres(ctx context.Context, opts PostgresOptions) (*Postgres, error) {
	bin, err := postgresBinaries(ctx)
	if err != nil {
		return nil, err
	}
	p := &Postgres{opts: opts, bin: bin, port: opts.Port}
	if err := p.openDir(); err != nil {
		return nil, err
	}
	if err := p.prepare(ctx); err != nil {
		return nil, errors.Join(err, p.closeDir())
	}
	if err := p.Start(ctx); err != nil {
		return nil, errors.Join(err, p.closeDir())
	}
	if err := p.createDatabase(ctx); err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

func (p *Postgres) prepare(ctx context.Context) error {
	if err := p.stopOrphan(ctx); err != nil {
		return err
	}
	return p.initialise(ctx)
}

// URL returns the connection string of a database of this cluster; an empty
// name means the one of PostgresOptions.
func (p *Postgres) URL(database string) string {
	if database == "" {
		database = p.database()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	u := url.URL{
		Scheme: "postgres", User: url.UserPassword(postgresUser, p.password),
		Host: loopback(p.port), Path: "/" + database, RawQuery: "sslmode=disable",
	}
	return u.String()
}

func (p *Postgres) database() string {
	if p.opts.Database == "" {
		return "postgres"
	}
	return p.opts.Database
}

// Start starts a stopped or killed server again, on the same port and data,
// and returns when it accepts connections. On a running one it does nothing.
func (p *Postgres) Start(ctx context.Context) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc != nil && p.proc.alive() {
		return nil
	}
	// A port can be taken between its choice and its use; a server whose
	// postmaster was killed leaves children that hold the shared memory for
	// a moment. Both pass, so a short-lived failure is tried again.
	const tries = 8
	var err error
	for i := range tries {
		if err = p.run(ctx); err == nil || ctx.Err() != nil {
			return err
		}
		pause := time.NewTimer(time.Duration(i+1) * 100 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return err
		}
	}
	return err
}

// run makes one attempt to start. The caller holds mu.
func (p *Postgres) run(ctx context.Context) error {
	port := p.port
	if port == 0 {
		var err error
		if port, err = FreePort(); err != nil {
			return err
		}
	}
	proc, err := start(spec{
		name: "PostgreSQL", path: filepath.Join(p.bin, "postgres"), args: p.arguments(port),
		env: cleanEnv(), log: filepath.Join(p.dir, "postgres.log"),
		account: p.account, orphan: syscall.SIGINT, scratch: p.scratch,
	})
	if err != nil {
		return err
	}
	probe := func(ctx context.Context) error { return pingPostgres(ctx, port, p.password) }
	if err := proc.awaitReady(ctx, probe); err != nil {
		if proc.alive() {
			err = errors.Join(err, proc.stop(syscall.SIGQUIT, 10*time.Second))
		}
		return err
	}
	p.proc, p.port = proc, port
	return nil
}

func (p *Postgres) arguments(port int) []string {
	args := []string{"-D", p.data(), "-p", fmt.Sprint(port), "-h", "127.0.0.1", "-c", "unix_socket_directories="}
	if p.opts.NoSync {
		args = append(args, "-c", "fsync=off", "-c", "full_page_writes=off")
	}
	for name, value := range p.opts.Settings {
		args = append(args, "-c", name+"="+value)
	}
	return args
}

// Stop shuts the server down cleanly (clients are disconnected, data is
// flushed), by force after 30 s, and gives the folder up; a temporary one is
// removed. Start is not possible afterwards. Stopping twice is no error.
func (p *Postgres) Stop() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return errors.Join(p.shut(syscall.SIGINT, 30*time.Second), p.closeDir())
}

// Halt shuts the server down cleanly and keeps folder and port for Start.
func (p *Postgres) Halt() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shut(syscall.SIGINT, 30*time.Second)
}

// Kill crashes the server: SIGKILL to the postmaster, whose children then end
// by themselves. Start recovers from the write-ahead log.
func (p *Postgres) Kill() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shut(syscall.SIGKILL, 10*time.Second)
}

// Pause freezes the server and all its children: connections stay open, new ones
// are taken by the kernel, and nothing answers. Linux only.
func (p *Postgres) Pause() error { return p.signalFamily(syscall.SIGSTOP) }

// Resume ends Pause.
func (p *Postgres) Resume() error { return p.signalFamily(syscall.SIGCONT) }

// signalFamily signals the postmaster first, so that it makes no further children
// while they are listed.
func (p *Postgres) signalFamily(s syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return fmt.Errorf("postgres: %w", ErrNotRunning)
	}
	if err := p.proc.signal(s); err != nil {
		return err
	}
	pids, err := childrenOf(p.proc.cmd.Process.Pid)
	if err != nil {
		return fmt.Errorf("children of PostgreSQL: %w", err)
	}
	for _, pid := range pids {
		if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("signal process %d of PostgreSQL: %w", pid, err)
		}
	}
	return nil
}

func (p *Postgres) shut(s syscall.Signal, grace time.Duration) error {
	if p.proc == nil {
		return nil
	}
	err := p.proc.stop(s, grace)
	p.proc = nil
	return err
}

// Done is closed when the running server process ends, for whatever reason;
// nil when it is not running.
func (p *Postgres) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return nil
	}
	return p.proc.done
}

// PID returns the process id of the postmaster, 0 when it is not running.
func (p *Postgres) PID() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proc == nil {
		return 0
	}
	return p.proc.cmd.Process.Pid
}

func (p *Postgres) data() string { return filepath.Join(p.dir, "data") }

// cleanEnv returns the environment without variables that steer PostgreSQL's
// programs towards another cluster or language.
func cleanEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		if !hasAnyPrefix(kv, "PG", "LC_", "LANG=", "LANGUAGE=") {
			env = append(env, kv)
		}
	}
	return append(env, "LC_ALL=C")
}
