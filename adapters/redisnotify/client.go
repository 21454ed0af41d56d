package redisnotify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// ClientOptions says how to reach Redis.
type ClientOptions struct {
	// URL is redis://user:password@host:port/db, or rediss:// for TLS.
	URL string
	// Timeout bounds each dial, read and write. Default 1 s: what Redis carries
	// is not worth a longer wait.
	Timeout time.Duration
	// Logger gets what the client library has to say, for all clients of the
	// process; nil discards it.
	Logger *slog.Logger
}

// Dial returns a client for [NewNotifier] and [NewQuota]. It makes no
// connection yet: Redis may be away. The caller closes it after both.
//
// Commands are tried once: a repeated PUBLISH would be a repeated hint, and a
// repeated Take a lost permit. Contexts bound every read and write.
func Dial(o ClientOptions) (*redis.Client, error) {
	opts, err := redis.ParseURL(o.URL)
	if err != nil {
		return nil, errors.New("redis URL: want redis://user:password@host:port/db") // the cause may quote the password
	}
	timeout := cmp.Or(o.Timeout, time.Second)
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout, opts.PoolTimeout = timeout, timeout, timeout, timeout
	opts.MaxRetries = -1
	opts.DialerRetries = 1
	opts.ContextTimeoutEnabled = true
	opts.DisableIdentity = true
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	logger := o.Logger
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	redis.SetLogger(redisLog{logger})
	return redis.NewClient(opts), nil
}

// redisLog passes the library's lines on; they are all about connections.
type redisLog struct{ logger *slog.Logger }

// Printf implements the library's logger.
func (l redisLog) Printf(ctx context.Context, format string, v ...any) {
	l.logger.DebugContext(ctx, fmt.Sprintf(format, v...), "library", "go-redis")
}
