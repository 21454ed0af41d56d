package services

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// RedisOptions says what server StartRedis runs.
type RedisOptions struct {
	// Port on 127.0.0.1; 0 takes a free one and keeps it until Stop.
	Port int
	// Settings are configuration directives, such as
	// "client-output-buffer-limit": "pubsub 1mb 512kb 10".
	Settings map[string]string
}

// Redis is a server without persistence. Methods may be called from any
// goroutine; they are serialised.
type Redis struct {
	opts RedisOptions
	path string
	dir  string

	mu   sync.Mutex
	port int
	proc *process
}

// ErrNotInstalled means that a program this service needs is not on the
// machine; the message says which one and how to get it.
var ErrNotInstalled = errors.New("not installed")

// ErrNotRunning means that a stopped service was to be paused or resumed.
var ErrNotRunning = errors.New("not running")

// StartRedis starts redis-server, found through PATH or AIVEDIO_REDIS_SERVER,
// and returns when it answers. ctx bounds the start only.
func StartRedis(ctx context.Context, opts RedisOptions) (*Redis, error) {
	path := os.Getenv("AIVEDIO_REDIS_SERVER")
	if path == "" {
		var err error
		if path, err = exec.LookPath("redis-server"); err != nil {
			return nil, fmt.Errorf("redis-server is %w (apt-get install redis-server, or brew install redis): %w", ErrNotInstalled, err)
		}
	}
	dir, err := os.MkdirTemp("", "aivedio-redis-")
	if err != nil {
		return nil, err
	}
	r := &Redis{opts: opts, path: path, dir: dir, port: opts.Port}
	if err := r.Start(ctx); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return r, nil
}

// Addr returns host:port.
func (r *Redis) Addr() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return loopback(r.port)
}

// Start starts a halted server again, empty and on the same port. On a
// running one it does nothing.
func (r *Redis) Start(ctx context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc != nil && r.proc.alive() {
		return nil
	}
	var err error
	for range 5 { // a port can be taken between its choice and its use
		if err = r.run(ctx); err == nil || ctx.Err() != nil {
			return err
		}
	}
	return err
}

func (r *Redis) run(ctx context.Context) error {
	port := r.port
	if port == 0 {
		var err error
		if port, err = FreePort(); err != nil {
			return err
		}
	}
	args := []string{"--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--dir", r.dir,
		"--save", "", "--appendonly", "no", "--daemonize", "no"}
	for name, value := range r.opts.Settings {
		args = append(args, "--"+name)
		args = append(args, strings.Fields(value)...)
	}
	proc, err := start(spec{name: "Redis", path: r.path, args: args, env: os.Environ(),
		log: filepath.Join(r.dir, "redis.log"), orphan: syscall.SIGKILL, scratch: r.dir})
	if err != nil {
		return err
	}
	pid := proc.cmd.Process.Pid
	if err := proc.awaitReady(ctx, func(ctx context.Context) error { return pingRedis(ctx, port, pid) }); err != nil {
		if proc.alive() {
			err = errors.Join(err, proc.stop(syscall.SIGKILL, 10*time.Second))
		}
		return err
	}
	r.proc, r.port = proc, port
	return nil
}

// pingRedis succeeds when the server at port is the process pid: a stranger
// that took the port first would answer too.
func pingRedis(ctx context.Context, port, pid int) error {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", loopback(port))
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(2 * time.Second)); err != nil {
		return err
	}
	if _, err := conn.Write([]byte("INFO server\r\nQUIT\r\n")); err != nil {
		return err
	}
	want := fmt.Sprintf("process_id:%d", pid)
	for lines := bufio.NewScanner(conn); lines.Scan(); {
		if strings.TrimSpace(lines.Text()) == want {
			return nil
		}
	}
	return fmt.Errorf("another Redis answers on port %d", port)
}

// Halt ends the server at once, connections and data included, and keeps the
// port for Start.
func (r *Redis) Halt() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc == nil {
		return nil
	}
	err := r.proc.stop(syscall.SIGKILL, 10*time.Second)
	r.proc = nil
	return err
}

// Pause freezes the server: connections stay open and nothing answers.
func (r *Redis) Pause() error { return r.signal(syscall.SIGSTOP) }

// Resume ends Pause.
func (r *Redis) Resume() error { return r.signal(syscall.SIGCONT) }

func (r *Redis) signal(s syscall.Signal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.proc == nil {
		return fmt.Errorf("redis: %w", ErrNotRunning)
	}
	return r.proc.signal(s)
}

// Stop ends the server for good and removes its folder. Stopping twice is no
// error.
func (r *Redis) Stop() error { return errors.Join(r.Halt(), os.RemoveAll(r.dir)) }
