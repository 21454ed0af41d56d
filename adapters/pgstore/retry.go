package pgstore

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
)

// maxTries bounds how often a transaction is tried; maxConnTries how often after
// a broken connection, since a server that is away is the caller's to wait for.
const (
	maxTries     = 6
	maxConnTries = 2
)

// retry runs f until it passes, fails for good or has been tried often enough. f
// is a whole transaction: nothing of a failed one was committed.
func (s *Store) retry(ctx context.Context, f func() error) error {
	for try := 1; ; try++ {
		err := f()
		limit := 0
		switch faultOf(err) {
		case faultRetry:
			limit = maxTries
		case faultConn:
			limit = maxConnTries
		case faultPartition:
			if s.healPartitions(ctx) {
				limit = maxConnTries
			}
		}
		if err == nil || try >= limit || ended(ctx) {
			return err
		}
		pause(ctx, try)
	}
}

// pause waits a random part of a doubling interval, so that the parties of a
// deadlock do not meet again.
func pause(ctx context.Context, try int) {
	timer := time.NewTimer(time.Duration(rand.Int64N(int64(5 * time.Millisecond << try))))
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// healPartitions makes the missing partitions: the sweep that should have made
// them has not run for a week.
func (s *Store) healPartitions(ctx context.Context) bool {
	made, err := dbgen.New(s.pool).PartitionsMake(ctx, PartitionDays)
	if err != nil {
		s.log.ErrorContext(ctx, "make partitions", "error", err)
		return false
	}
	s.log.WarnContext(ctx, "a partition was missing", "made", made)
	return made > 0
}
