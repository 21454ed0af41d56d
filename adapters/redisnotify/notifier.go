package redisnotify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ErrClosed refuses calls of a notifier or listener that was closed.
var ErrClosed = errors.New("the notifier is closed")

// NotifierConfig configures a [Notifier]. The zero value works.
type NotifierConfig struct {
	// Prefix begins every channel name. Default "aivedio:".
	Prefix string
	// Shards is the number of channels over which projects are spread. All
	// processes must agree on it. Default 64.
	Shards int
	// NotifyTimeout bounds one Notify beside its context. Default 500 ms: an
	// outage of Redis must not become a backlog of the bus.
	NotifyTimeout time.Duration
	// PingEvery is how long a connection may be silent before it is asked
	// whether it lives; no answer within the same time ends it. Default 2 s.
	PingEvery time.Duration
	// ReconnectEvery spaces the tries to connect again. Default 250 ms.
	ReconnectEvery time.Duration
	// Logger gets lost and regained connections and unreadable hints; nil
	// discards them.
	Logger *slog.Logger
}

// WithDefaults returns a copy with every zero field filled.
func (c NotifierConfig) WithDefaults() NotifierConfig {
	c.Prefix = cmp.Or(c.Prefix, "aivedio:")
	c.Shards = cmp.Or(c.Shards, 64)
	c.NotifyTimeout = cmp.Or(c.NotifyTimeout, 500*time.Millisecond)
	c.PingEvery = cmp.Or(c.PingEvery, 2*time.Second)
	c.ReconnectEvery = cmp.Or(c.ReconnectEvery, 250*time.Millisecond)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Notifier publishes hints on Redis Pub/Sub in broadcast mode: one channel per
// shard of projects, heard by every gateway that watches one of them. It is
// safe for concurrent use.
type Notifier struct {
	rdb *redis.Client
	cfg NotifierConfig

	mu        sync.Mutex
	closed    bool
	listeners []*listener
}

var _ ports.Notifier = (*Notifier)(nil)

// NewNotifier returns a notifier on a client made by [Dial], which stays the
// caller's.
func NewNotifier(rdb *redis.Client, cfg NotifierConfig) *Notifier {
	return &Notifier{rdb: rdb, cfg: cfg.WithDefaults()}
}

// Notify implements [ports.Notifier]: one round trip for all shards, tried
// once. After an error any part may have been sent.
func (n *Notifier) Notify(ctx context.Context, events []ports.StoredEvent) error {
	n.mu.Lock()
	closed := n.closed
	n.mu.Unlock()
	if closed {
		return ErrClosed
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if len(events) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, n.cfg.NotifyTimeout)
	defer cancel()
	byShard := map[int][]ports.StoredEvent{}
	for _, e := range events {
		shard := n.shard(e.ProjectID)
		byShard[shard] = append(byShard[shard], e)
	}
	pipe := n.rdb.Pipeline()
	for shard, events := range byShard {
		payload, err := encode(events)
		if err != nil {
			return fmt.Errorf("encode %d hints: %w", len(events), err)
		}
		pipe.Publish(ctx, n.channel(shard), payload)
	}
	if _, err := pipe.Exec(ctx); err != nil {
		return fmt.Errorf("publish %d hints: %w", len(events), err)
	}
	return nil
}

// Listen implements [ports.Notifier]. It succeeds while Redis is away: the
// listener connects as soon as it can, and Watch waits for it. A handler must
// not close its listener.
func (n *Notifier) Listen(ctx context.Context, handler ports.NotifyHandler) (ports.Listener, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.closed {
		return nil, ErrClosed
	}
	l := newListener(n, handler)
	n.listeners = append(n.listeners, l)
	return l, nil
}

// Close implements [ports.Notifier]; it waits for running handlers. Closing
// twice is fine.
func (n *Notifier) Close() error {
	n.mu.Lock()
	n.closed = true
	listeners := slices.Clone(n.listeners)
	n.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close() // never fails
	}
	return nil
}

func (n *Notifier) remove(l *listener) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.listeners = slices.DeleteFunc(n.listeners, func(have *listener) bool { return have == l })
}

func (n *Notifier) shard(project domain.ProjectID) int {
	h := fnv.New32a()
	_, _ = h.Write(project.ID[:]) // never fails
	return int(h.Sum32() % uint32(n.cfg.Shards))
}

func (n *Notifier) channel(shard int) string {
	return n.cfg.Prefix + "events:" + strconv.Itoa(shard)
}
