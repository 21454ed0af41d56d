package testenv_test

import (
	"context"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/redis/go-redis/v9"
)

// silent keeps the pool's own log out of the test output.
type silent struct{}

func (silent) Printf(context.Context, string, ...any) {}

func TestRedisPauseStopStart(t *testing.T) {
	t.Parallel()
	redis.SetLogger(silent{})
	server := testenv.RedisWith(t, map[string]string{"client-output-buffer-limit": "pubsub 1mb 512kb 10"})
	client := redis.NewClient(&redis.Options{Addr: server.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	t.Cleanup(func() { client.Close() })
	ping := func(limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		return client.Ping(ctx).Err()
	}
	if err := client.Set(t.Context(), "k", "v", 0).Err(); err != nil {
		t.Fatal(err)
	}
	server.Pause()
	if ping(200*time.Millisecond) == nil {
		t.Error("a paused server answers")
	}
	server.Resume()
	if err := ping(10 * time.Second); err != nil {
		t.Errorf("a resumed server does not answer: %v", err)
	}
	server.Stop()
	if ping(time.Second) == nil {
		t.Error("a stopped server answers")
	}
	server.Start()
	if err := client.Get(t.Context(), "k").Err(); err != redis.Nil {
		t.Errorf("a started server is empty: got %v, want redis.Nil", err)
	}
}
