package testenv

import (
	"context"
	"errors"
	"testing"

	"github.com/aivedio/aivedio/internal/testenv/services"
)

// PGOptions says what cluster PostgresServer runs.
type PGOptions struct {
	// Fsync turns fsync and full_page_writes on: for crash tests and every
	// benchmark.
	Fsync bool
	// Extra are server parameters, such as "shared_buffers": "1GB".
	Extra map[string]string
}

// PGServer is a PostgreSQL cluster of one test's own, always a local process,
// so that it can be crashed. Its methods fail the test on error.
type PGServer struct {
	// URL connects to the database "postgres" as a superuser. It stays the
	// same over Stop, Kill and Start.
	URL string

	t      testing.TB
	server *services.Postgres
}

// PostgresServer starts a cluster that ends with the test.
func PostgresServer(t testing.TB, opts PGOptions) *PGServer {
	t.Helper()
	Short(t)
	settings := testSettings()
	for k, v := range opts.Extra {
		settings[k] = v
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := services.StartPostgres(ctx, services.PostgresOptions{NoSync: !opts.Fsync, Settings: settings})
	if err != nil {
		unavailable(t, "PostgreSQL", err)
	}
	t.Cleanup(func() {
		if err := server.Stop(); err != nil {
			t.Errorf("stop PostgreSQL: %v", err)
		}
	})
	return &PGServer{URL: server.URL(""), t: t, server: server}
}

// Database makes a database and returns its URL.
func (s *PGServer) Database(name string) string {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := execAdmin(ctx, s.URL, "CREATE DATABASE "+name); err != nil {
		s.t.Fatalf("create database %s: %v", name, err)
	}
	return s.server.URL(name)
}

// Stop shuts the server down in order and keeps its data for Start.
func (s *PGServer) Stop() {
	s.t.Helper()
	must(s.t, "stop PostgreSQL", s.server.Halt())
}

// Kill ends the server with SIGKILL and keeps its data for Start.
func (s *PGServer) Kill() {
	s.t.Helper()
	must(s.t, "kill PostgreSQL", s.server.Kill())
}

// Pause freezes the server until Resume or the end of the test: connections stay
// open and nothing answers. Where that cannot be done the test is skipped.
func (s *PGServer) Pause() {
	s.t.Helper()
	err := s.server.Pause()
	if errors.Is(err, errors.ErrUnsupported) {
		s.t.Skipf("SKIPPED, NOT TESTED: PostgreSQL cannot be frozen here: %v", err)
	}
	must(s.t, "pause PostgreSQL", err)
	s.t.Cleanup(func() {
		if err := s.server.Resume(); err != nil && !errors.Is(err, services.ErrNotRunning) {
			s.t.Errorf("resume PostgreSQL: %v", err)
		}
	})
}

// Resume ends Pause.
func (s *PGServer) Resume() {
	s.t.Helper()
	must(s.t, "resume PostgreSQL", s.server.Resume())
}

// Start starts a stopped or killed server and waits until it answers.
func (s *PGServer) Start() {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	must(s.t, "start PostgreSQL", s.server.Start(ctx))
}

// PID returns the postmaster's process id, 0 when it is not running.
func (s *PGServer) PID() int { return s.server.PID() }

func must(t testing.TB, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}
