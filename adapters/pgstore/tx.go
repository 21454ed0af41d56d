package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
)

// rollbackTime bounds a rollback, which runs even when the caller has gone.
const rollbackTime = 3 * time.Second

// transact runs f between BEGIN and the COMMIT that f itself sends, with its last
// statements, through commit. Without it everything is rolled back.
func transact(ctx context.Context, pool *pgxpool.Pool, f func(conn *pgx.Conn) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return err
	}
	defer conn.Release()
	return transactOn(ctx, conn.Conn(), f)
}

func transactOn(ctx context.Context, conn *pgx.Conn, f func(conn *pgx.Conn) error) error {
	if _, err := conn.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	defer rollback(ctx, conn) // also when f panics
	return f(conn)
}

// rollback ends a transaction that is still open. A connection that cannot even
// roll back is closed, and the pool drops it.
func rollback(ctx context.Context, conn *pgx.Conn) {
	if conn.IsClosed() || conn.PgConn().TxStatus() == 'I' {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	if _, err := conn.Exec(ctx, "ROLLBACK"); err != nil {
		_ = conn.Close(ctx) // the error of the transaction matters more
	}
}

// pipeline collects statements that go to the server together. It stands in for
// a connection under the generated queries.
type pipeline struct {
	batch pgx.Batch
	last  *pgx.QueuedQuery
}

var _ dbgen.DBTX = (*pipeline)(nil)

// errQueued is what a query of the pipeline returns: its rows come later.
var errQueued = errors.New("queued")

// Exec queues a statement.
func (p *pipeline) Exec(_ context.Context, sql string, args ...any) (pgconn.CommandTag, error) {
	p.last = p.batch.Queue(sql, args...)
	return pgconn.CommandTag{}, nil
}

// Query queues a statement whose rows the caller reads through last.
func (p *pipeline) Query(_ context.Context, sql string, args ...any) (pgx.Rows, error) {
	p.last = p.batch.Queue(sql, args...)
	return nil, errQueued
}

// QueryRow is not used in pipelines.
func (p *pipeline) QueryRow(context.Context, string, ...any) pgx.Row { return queuedRow{} }

type queuedRow struct{}

func (queuedRow) Scan(...any) error { return errQueued }

// commit sends the pipeline with COMMIT behind it in one round trip: streams stay
// locked for as long as the server works, and no longer. With a failpoint the
// COMMIT goes alone, after it.
func (s *Store) commit(ctx context.Context, conn *pgx.Conn, p *pipeline) error {
	if s.cfg.Failpoint == nil {
		p.batch.Queue("COMMIT")
		if err := conn.SendBatch(ctx, &p.batch).Close(); err != nil {
			return lostCommit(err)
		}
		return nil
	}
	if err := conn.SendBatch(ctx, &p.batch).Close(); err != nil {
		return err
	}
	if err := s.hit(ctx, PointWritten); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
		return lostCommit(err)
	}
	return nil
}

// inTx runs f in an ordinary transaction, retried as a whole.
func (s *Store) inTx(ctx context.Context, f func(q *dbgen.Queries) error) error {
	return s.retry(ctx, func() error {
		return transact(ctx, s.pool, func(conn *pgx.Conn) error {
			if err := f(dbgen.New(conn)); err != nil {
				return err
			}
			if err := s.hit(ctx, PointWritten); err != nil {
				return err
			}
			if _, err := conn.Exec(ctx, "COMMIT"); err != nil {
				return lostCommit(err)
			}
			return nil
		})
	})
}
