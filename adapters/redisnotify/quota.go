package redisnotify

import (
	"cmp"
	"context"
	_ "embed" // the script
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/aivedio/aivedio/ports"
)

// QuotaConfig configures a [Quota]. The zero value works.
type QuotaConfig struct {
	// Prefix begins every key. It is put in braces, so that all buckets of a
	// Redis Cluster are in one slot, as one script needs. Default
	// "aivedio:quota".
	Prefix string
	// Timeout bounds one question to Redis. Default 250 ms.
	Timeout time.Duration
	// Cooldown is how long Redis is not asked after it did not answer. Default
	// 1 s.
	Cooldown time.Duration
	// LocalFraction is the part of every rate and burst that one process may
	// use while Redis is away: with n processes, 1/n uses the whole rate.
	// Default 0.1.
	LocalFraction float64
	// Now is the clock; nil is the clock of Redis, and the wall clock while it
	// is away.
	Now func() time.Time
	// Logger gets the loss and the return of Redis; nil discards them.
	Logger *slog.Logger
}

// WithDefaults returns a copy with every zero field filled, but the clock.
func (c QuotaConfig) WithDefaults() QuotaConfig {
	c.Prefix = cmp.Or(c.Prefix, "aivedio:quota")
	c.Timeout = cmp.Or(c.Timeout, 250*time.Millisecond)
	c.Cooldown = cmp.Or(c.Cooldown, time.Second)
	c.LocalFraction = cmp.Or(c.LocalFraction, 0.1)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// maxWait is the longest wait that is answered, and the answer for a bucket that
// is shut: limits change while one waits.
const maxWait = time.Minute

//go:embed take.lua
var takeScript string

// Quota is token buckets in Redis, shared by all processes: one script and one
// round trip per Take. It is safe for concurrent use.
type Quota struct {
	rdb    *redis.Client
	cfg    QuotaConfig
	script *redis.Script
	local  *localBuckets

	mu        sync.Mutex
	askAgain  time.Time // zero while Redis answers
	failSince time.Time
}

var _ ports.Quota = (*Quota)(nil)

// NewQuota returns a quota on a client made by [Dial], which stays the
// caller's.
func NewQuota(rdb *redis.Client, cfg QuotaConfig) *Quota {
	cfg = cfg.WithDefaults()
	return &Quota{rdb: rdb, cfg: cfg, script: redis.NewScript(takeScript), local: newLocalBuckets(cfg.LocalFraction)}
}

// Take implements [ports.Quota]. A bucket that is named twice gives two
// permits.
func (q *Quota) Take(ctx context.Context, buckets []ports.Bucket) (time.Duration, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	merged, shut := merge(buckets)
	if shut {
		return maxWait, nil
	}
	if len(merged) == 0 {
		return 0, nil
	}
	if q.asking() {
		wait, err := q.shared(ctx, merged)
		if err == nil {
			q.answered()
			return wait, nil
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		q.failed(err)
	}
	return q.local.take(q.now(), merged), nil
}

// share is a bucket with the number of permits wanted.
type share struct {
	ports.Bucket
	want int
}

// merge counts how often each bucket is named. shut reports one that gives
// nothing.
func merge(buckets []ports.Bucket) (merged []share, shut bool) {
	index := make(map[string]int, len(buckets))
	for _, b := range buckets {
		if b.Rate <= 0 || b.Burst <= 0 {
			return nil, true
		}
		if i, ok := index[b.Key]; ok {
			merged[i].want++
			continue
		}
		index[b.Key] = len(merged)
		merged = append(merged, share{b, 1})
	}
	return merged, false
}

// shared asks Redis.
func (q *Quota) shared(ctx context.Context, merged []share) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, q.cfg.Timeout)
	defer cancel()
	now := ""
	if q.cfg.Now != nil {
		now = strconv.FormatInt(q.cfg.Now().UnixMicro(), 10)
	}
	keys, args := make([]string, len(merged)), make([]any, 0, 1+3*len(merged))
	args = append(args, now)
	for i, s := range merged {
		keys[i] = "{" + q.cfg.Prefix + "}:" + s.Key
		args = append(args, s.want, s.Rate, s.Burst)
	}
	micros, err := q.script.Run(ctx, q.rdb, keys, args...).Int64()
	if err != nil {
		return 0, fmt.Errorf("take from %d buckets: %w", len(merged), err)
	}
	if micros < 0 {
		return 0, errors.New("the script answered a negative wait")
	}
	if micros > maxWait.Microseconds() {
		return maxWait, nil
	}
	return time.Duration(micros) * time.Microsecond, nil
}

func (q *Quota) now() time.Time {
	if q.cfg.Now != nil {
		return q.cfg.Now()
	}
	return time.Now()
}

// asking reports whether Redis is to be asked. During an outage one caller per
// cooldown tries.
func (q *Quota) asking() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.askAgain.IsZero() {
		return true
	}
	now := time.Now() // an injected clock may stand still
	if now.Before(q.askAgain) {
		return false
	}
	q.askAgain = now.Add(q.cfg.Cooldown)
	return true
}

func (q *Quota) answered() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.askAgain.IsZero() {
		q.askAgain = time.Time{}
		q.cfg.Logger.Info("the shared quota is back", "away", time.Since(q.failSince))
	}
}

func (q *Quota) failed(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := time.Now()
	if q.askAgain.IsZero() {
		q.failSince = now
		q.cfg.Logger.Warn("the shared quota does not answer, a fraction is used", "fraction", q.cfg.LocalFraction, "error", err)
	}
	q.askAgain = now.Add(q.cfg.Cooldown)
}
