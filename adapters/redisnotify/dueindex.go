package redisnotify

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/aivedio/aivedio/ports"
)

// DueIndexConfig configures a [DueIndex]. The zero value works.
type DueIndexConfig struct {
	// Key is the sorted set. Default "aivedio:due".
	Key string
	// Timeout bounds one call. Default 250 ms.
	Timeout time.Duration
}

// DueIndex is ports.DueIndex as one sorted set in Redis. Its members are moments,
// not attempts: ten thousand attempts that are due within a minute are at most 1200
// members, and noting them again costs nothing. It may be flushed at any time.
type DueIndex struct {
	rdb redis.UniversalClient
	cfg DueIndexConfig
}

var _ ports.DueIndex = (*DueIndex)(nil)

// NewDueIndex returns an index on the client, which stays the caller's.
func NewDueIndex(rdb redis.UniversalClient, cfg DueIndexConfig) *DueIndex {
	cfg.Key = cmp.Or(cfg.Key, "aivedio:due")
	cfg.Timeout = cmp.Or(cfg.Timeout, 250*time.Millisecond)
	return &DueIndex{rdb: rdb, cfg: cfg}
}

// dueStep is the grain of the moments in milliseconds.
const dueStep = 50

// Note implements ports.DueIndex.
func (d *DueIndex) Note(ctx context.Context, moments []time.Time) error {
	if len(moments) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	members := make([]redis.Z, len(moments))
	for i, at := range moments {
		ms := (at.Add(time.Millisecond-1).UnixMilli() + dueStep - 1) / dueStep * dueStep
		members[i] = redis.Z{Score: float64(ms), Member: strconv.FormatInt(ms, 10)}
	}
	if err := d.rdb.ZAdd(ctx, d.cfg.Key, members...).Err(); err != nil {
		return fmt.Errorf("note due times: %w", err)
	}
	return nil
}

// Next implements ports.DueIndex, in one round trip.
func (d *DueIndex) Next(ctx context.Context, now time.Time) (ports.DueAnswer, error) {
	ctx, cancel := context.WithTimeout(ctx, d.cfg.Timeout)
	defer cancel()
	pipe := d.rdb.TxPipeline()
	taken := pipe.ZRemRangeByScore(ctx, d.cfg.Key, "-inf", strconv.FormatInt(now.UnixMilli(), 10))
	first := pipe.ZRangeWithScores(ctx, d.cfg.Key, 0, 0)
	if _, err := pipe.Exec(ctx); err != nil {
		return ports.DueAnswer{}, fmt.Errorf("look at due times: %w", err)
	}
	answer := ports.DueAnswer{Due: taken.Val() > 0}
	if z := first.Val(); len(z) > 0 {
		answer.Next = time.UnixMilli(int64(z[0].Score)).UTC()
	}
	return answer, nil
}
