package services

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// openDir makes and locks the folder and finds out who serves it.
func (p *Postgres) openDir() (err error) {
	if p.opts.Dir == "" {
		if p.dir, err = os.MkdirTemp("", "aivedio-postgres-"); err != nil {
			return err
		}
		p.scratch = p.dir
		// MkdirTemp closes the folder to the account that has to enter it.
		err = os.Chmod(p.dir, 0o755)
	} else {
		if p.dir, err = filepath.Abs(p.opts.Dir); err != nil {
			return err
		}
		err = os.MkdirAll(p.dir, 0o755)
	}
	if err != nil {
		return fmt.Errorf("make the PostgreSQL folder: %w", err)
	}
	p.unlock, err = lockFile(filepath.Join(p.dir, "lock"), false)
	if errors.Is(err, errLocked) {
		return fmt.Errorf("%s is in use by another running process: stop it or choose another folder", p.dir)
	}
	if err != nil {
		return err
	}
	if err := p.chooseAccount(); err != nil {
		return errors.Join(err, p.closeDir())
	}
	return nil
}

func (p *Postgres) chooseAccount() error {
	a, err := accountFor(p.data())
	if err != nil || a == nil {
		return err
	}
	if !a.canReach(p.data()) {
		if !canEnterDirs {
			return fmt.Errorf("PostgreSQL must not run as root, and uid %d cannot enter every folder above %s: choose another folder", a.uid, p.dir)
		}
		a.passDirs = true
	}
	p.account = a
	return nil
}

// closeDir gives the lock up and removes a temporary folder.
func (p *Postgres) closeDir() error {
	if p.unlock == nil {
		return nil
	}
	var err error
	if p.scratch != "" {
		err = os.RemoveAll(p.scratch)
	}
	p.unlock()
	p.unlock = nil
	return err
}

// initialise runs initdb when there is no data yet. The data appears under
// its name only when it is complete.
func (p *Postgres) initialise(ctx context.Context) error {
	secret := filepath.Join(p.dir, "password")
	if _, err := os.Stat(filepath.Join(p.data(), "PG_VERSION")); err == nil {
		return p.reopen(ctx, secret)
	}
	p.password = rand.Text()
	if err := os.WriteFile(secret, []byte(p.password), 0o600); err != nil {
		return err
	}
	fresh := p.data() + ".new"
	if err := os.RemoveAll(fresh); err != nil {
		return err
	}
	if err := os.Mkdir(fresh, 0o700); err != nil {
		return err
	}
	handed := filepath.Join(p.dir, "password.initdb") // readable for the account that runs initdb
	if err := os.WriteFile(handed, []byte(p.password), 0o600); err != nil {
		return err
	}
	defer os.Remove(handed)
	if p.account != nil {
		if err := errors.Join(p.account.give(fresh), p.account.give(handed)); err != nil {
			return err
		}
	}
	if err := p.initdb(ctx, fresh, handed); err != nil {
		return err
	}
	return os.Rename(fresh, p.data())
}

func (p *Postgres) initdb(ctx context.Context, data, pwfile string) error {
	args := []string{"-D", data, "-U", postgresUser, "--pwfile=" + pwfile,
		"-A", "scram-sha-256", "-E", "UTF8", "--locale=C"}
	if p.opts.NoSync {
		args = append(args, "--no-sync")
	}
	cmd := exec.CommandContext(ctx, filepath.Join(p.bin, "initdb"), args...)
	cmd.Env = cleanEnv()
	cmd.Dir = "/"
	cmd.SysProcAttr = detached(p.account)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb in %s: %w: %s", data, err, bytes.TrimSpace(out))
	}
	return nil
}

// reopen checks that existing data can be served by the binaries at hand.
func (p *Postgres) reopen(ctx context.Context, secret string) error {
	password, err := os.ReadFile(secret)
	if err != nil {
		return fmt.Errorf("read the password of the cluster in %s: %w", p.dir, err)
	}
	p.password = string(password)
	have, err := os.ReadFile(filepath.Join(p.data(), "PG_VERSION"))
	if err != nil {
		return err
	}
	out, err := exec.CommandContext(ctx, filepath.Join(p.bin, "postgres"), "--version").Output()
	if err != nil {
		return fmt.Errorf("ask PostgreSQL for its version: %w", err)
	}
	major := strings.TrimSpace(string(have))
	if !strings.Contains(string(out), " "+major+".") {
		return fmt.Errorf("%s was made by PostgreSQL %s, but %s is %s: set AIVEDIO_POSTGRES_BIN to a PostgreSQL %s",
			p.dir, major, p.bin, bytes.TrimSpace(out), major)
	}
	return nil
}

// stopOrphan deals with the postmaster.pid that a killed parent left. The
// folder is locked, so its server has no living owner: wait for the guard to
// stop it, then stop it ourselves. A pid that has gone to another program
// would keep PostgreSQL from starting, so that file is removed.
func (p *Postgres) stopOrphan(ctx context.Context) error {
	path := filepath.Join(p.data(), "postmaster.pid")
	for started := time.Now(); ; {
		pid, err := readPID(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !pidAlive(pid) {
			return nil
		}
		if err != nil {
			return err
		}
		if !serves(ctx, pid, p.data()) {
			return os.Remove(path)
		}
		if waited := time.Since(started); waited > 3*time.Second {
			s := syscall.SIGINT
			if waited > 20*time.Second {
				s = syscall.SIGKILL
			}
			if err := syscall.Kill(pid, s); err != nil && !errors.Is(err, syscall.ESRCH) {
				return fmt.Errorf("stop the orphaned PostgreSQL %d of %s: %w", pid, p.dir, err)
			}
		}
		pause := time.NewTimer(100 * time.Millisecond)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("PostgreSQL %d still runs on %s: %w", pid, p.dir, ctx.Err())
		}
	}
}

func readPID(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(content), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(first))
	if err != nil || pid <= 0 {
		// Half written: the server that wrote it never ran.
		return 0, errors.Join(fs.ErrNotExist, os.Remove(path))
	}
	return pid, nil
}

// serves reports whether process pid is a PostgreSQL that was started on data.
func serves(ctx context.Context, pid int, data string) bool {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	if err != nil { // no /proc here, or not readable
		line, err = exec.CommandContext(ctx, "ps", "-p", strconv.Itoa(pid), "-o", "command=").Output()
	}
	return err == nil && bytes.Contains(line, []byte("postgres")) && bytes.Contains(line, []byte(data))
}

func (p *Postgres) createDatabase(ctx context.Context) error {
	name := p.database()
	conn, err := pgx.Connect(ctx, p.URL("postgres"))
	if err != nil {
		return fmt.Errorf("connect to the new cluster: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var exists bool
	if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_database WHERE datname = $1)", name).Scan(&exists); err != nil {
		return fmt.Errorf("look for database %s: %w", name, err)
	}
	if exists {
		return nil
	}
	if _, err := conn.Exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize()); err != nil {
		return fmt.Errorf("create database %s: %w", name, err)
	}
	return nil
}

func pingPostgres(ctx context.Context, port int, password string) error {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	u := fmt.Sprintf("postgres://%s:%s@%s/postgres?sslmode=disable", postgresUser, password, loopback(port))
	conn, err := pgx.Connect(ctx, u)
	if err != nil {
		return err
	}
	return conn.Close(ctx)
}

func hasAnyPrefix(s string, prefixes ...string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	return false
}
