package testenv

import (
	"context"
	"os"
	"testing"

	"github.com/aivedio/aivedio/internal/testenv/services"
)

// RedisServer is a Redis without persistence. One that was started here
// belongs to the test alone; one from the environment is shared, so keys and
// channels need a random prefix, and Stop, Pause and their opposites skip the
// test. The methods fail the test on error.
type RedisServer struct {
	// Addr is host:port and stays the same over Stop and Start.
	Addr string

	t   testing.TB
	ctl control
}

// control is what can be done to a running service of a test's own.
type control interface {
	Start(context.Context) error
	Halt() error
	Pause() error
	Resume() error
	Stop() error
}

// Redis returns a server that ends with the test.
func Redis(t testing.TB) *RedisServer { return RedisWith(t, nil) }

// RedisWith is Redis with configuration directives, such as
// "client-output-buffer-limit": "pubsub 1mb 512kb 10".
func RedisWith(t testing.TB, settings map[string]string) *RedisServer {
	t.Helper()
	Short(t)
	if given := os.Getenv("AIVEDIO_TEST_REDIS_ADDR"); given != "" {
		if len(settings) > 0 {
			t.Skip("SKIPPED, NOT TESTED: the Redis of AIVEDIO_TEST_REDIS_ADDR cannot be configured")
		}
		return &RedisServer{Addr: given, t: t}
	}
	addr, ctl, err := startRedis(settings)
	if err != nil {
		unavailable(t, "Redis", err)
	}
	t.Cleanup(func() {
		if err := ctl.Stop(); err != nil {
			t.Errorf("stop Redis: %v", err)
		}
	})
	return &RedisServer{Addr: addr, t: t, ctl: ctl}
}

func startRedis(settings map[string]string) (string, control, error) {
	if pool := docker(); pool != nil {
		return dockerRedis(pool, settings)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	server, err := services.StartRedis(ctx, services.RedisOptions{Settings: settings})
	if err != nil {
		return "", nil, err
	}
	return server.Addr(), server, nil
}

// Stop ends the server at once; its content is lost.
func (r *RedisServer) Stop() {
	r.t.Helper()
	must(r.t, "stop Redis", r.own().Halt())
}

// Start starts a stopped server again, empty.
func (r *RedisServer) Start() {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	must(r.t, "start Redis", r.own().Start(ctx))
}

// Pause freezes the server: connections stay open and nothing answers.
func (r *RedisServer) Pause() {
	r.t.Helper()
	must(r.t, "pause Redis", r.own().Pause())
}

// Resume ends Pause.
func (r *RedisServer) Resume() {
	r.t.Helper()
	must(r.t, "resume Redis", r.own().Resume())
}

func (r *RedisServer) own() control {
	r.t.Helper()
	if r.ctl == nil {
		r.t.Skip("SKIPPED, NOT TESTED: the Redis of AIVEDIO_TEST_REDIS_ADDR cannot be stopped")
	}
	return r.ctl
}
