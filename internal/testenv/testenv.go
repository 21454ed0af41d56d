package testenv

import (
	"context"
	"errors"
	"os"
	"sync"
	"testing"
	"time"
)

// startTimeout bounds a start, the download on first use included.
const startTimeout = 5 * time.Minute

// Short skips the test under -short.
func Short(t testing.TB) {
	t.Helper()
	if testing.Short() {
		t.Skip("needs real services, and -short asks for none")
	}
}

// unavailable ends a test whose service cannot be had.
func unavailable(t testing.TB, service string, err error) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is needed under CI=true: %v", service, err)
	}
	t.Skipf("SKIPPED, NOT TESTED: %s cannot be started here: %v", service, err)
}

// shared is a service that all tests of a process use: started on first use,
// stopped by Stop, at the latest when the process ends.
type shared[T any] struct {
	mu    sync.Mutex
	begun bool
	value T
	err   error
	stop  func() error
}

// get returns the running service, or the error of the only try to start it.
func (s *shared[T]) get(start func(context.Context) (T, func() error, error)) (T, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.begun {
		s.begun = true
		ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
		defer cancel()
		s.value, s.stop, s.err = start(ctx)
	}
	return s.value, s.err
}

func (s *shared[T]) end() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	stop := s.stop
	var none T
	s.begun, s.value, s.err, s.stop = false, none, nil, nil
	if stop == nil {
		return nil
	}
	return stop()
}

// Stop ends the services that the tests of this process share. A process that
// forgets it leaves nothing behind either: its death stops them.
func Stop() error {
	return errors.Join(postgresCluster.end(), rocketBroker.end())
}

// Main runs the tests, stops the shared services and exits; for TestMain.
func Main(m *testing.M) { os.Exit(Wrap(m).Run()) }

// Tests is a testing.M that stops the shared services after its run, so that
// a leak detector such as goleak.VerifyTestMain(testenv.Wrap(m)) sees none of
// their goroutines.
type Tests struct{ m *testing.M }

// Wrap returns m with Stop after its run.
func Wrap(m *testing.M) Tests { return Tests{m} }

// Run runs the tests and returns their exit code, 1 when a shared service did
// not stop properly.
func (w Tests) Run() int {
	code := w.m.Run()
	if err := Stop(); err != nil {
		println("testenv: stop the shared services:", err.Error())
		code = max(code, 1)
	}
	return code
}
