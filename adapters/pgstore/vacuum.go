package pgstore

import (
	"context"
	"sync/atomic"
)

// vacuumAfter is how many rows are taken out of a queue before its table is
// vacuumed. Vacuuming them costs some milliseconds, and as much as twenty looks at
// the queue that walk over them.
const vacuumAfter = 10_000

// queueVacuum vacuums the table of a queue. What was taken stays in its index until
// a vacuum, and every look from the oldest end walks over it. The server's own vacuum
// comes once a minute at best: at 5,000 rows per second the looks of a relay then cost
// a fifth of a core. It is safe for concurrent use and by several processes: one that
// finds the table in another's hands leaves it alone.
type queueVacuum struct {
	statement string
	taken     atomic.Int64
}

func newQueueVacuum(table string) queueVacuum {
	// Without TRUNCATE it takes no lock that a reader or writer waits for.
	return queueVacuum{statement: "VACUUM (SKIP_LOCKED, TRUNCATE FALSE) " + table}
}

// vacuum counts rows that were taken and vacuums when there are enough. A failure
// costs speed only, and the server's vacuum makes up for it.
func (s *Store) vacuum(ctx context.Context, v *queueVacuum, taken int) {
	if n := v.taken.Add(int64(taken)); n < vacuumAfter || !v.taken.CompareAndSwap(n, 0) {
		return
	}
	if _, err := s.pool.Exec(ctx, v.statement); err != nil {
		s.log.Debug("a queue was not vacuumed", "statement", v.statement, "error", err)
	}
}
