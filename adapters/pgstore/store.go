package pgstore

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

var _ ports.Store = (*Store)(nil)

// Store is ports.Store on PostgreSQL 15 or later. It outlives the server: calls
// fail with ports.ErrUnavailable while it is away and pass again when it is back.
type Store struct {
	pool      *pgxpool.Pool
	callbacks *pgxpool.Pool
	log       *slog.Logger
	cfg       Config
	hands     hands
	floors    floors
	// inboxVacuum and outboxVacuum keep the queues quick to look at.
	inboxVacuum, outboxVacuum queueVacuum
	// unstuck is up to when Revive has looked for stuck rows, in Unix nanoseconds.
	unstuck atomic.Int64
}

// Open connects, checks that the server keeps what it acknowledges, and returns
// the store; the caller closes it. The database must be migrated.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("store configuration: %w", err)
	}
	pool, err := newPool(ctx, cfg, cfg.Conns, "aivedio")
	if err != nil {
		return nil, err
	}
	if err := checkServer(ctx, pool); err != nil {
		pool.Close()
		return nil, err
	}
	callbacks, err := newPool(ctx, cfg, cfg.CallbackConns, "aivedio callbacks")
	if err != nil {
		pool.Close()
		return nil, err
	}
	return &Store{
		pool: pool, callbacks: callbacks, log: cfg.Logger, cfg: cfg, hands: newHands(cfg.NewID),
		inboxVacuum: newQueueVacuum("inbox_queue"), outboxVacuum: newQueueVacuum("outbox_queue"),
	}, nil
}

// Close ends both pools; running calls end first.
func (s *Store) Close() {
	s.callbacks.Close()
	s.pool.Close()
}

// Ping reports whether the store answers.
func (s *Store) Ping(ctx context.Context) error { return outward("ping", s.pool.Ping(ctx)) }

func newPool(ctx context.Context, cfg Config, conns int32, name string) (*pgxpool.Pool, error) {
	config, err := pgxpool.ParseConfig(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("database URL: %w", err)
	}
	config.MaxConns = conns
	config.MaxConnIdleTime = 5 * time.Minute
	if config.ConnConfig.ConnectTimeout == 0 { // the URL may say another
		config.ConnConfig.ConnectTimeout = connectTimeout
	}
	config.ConnConfig.DialFunc = newDialer().DialContext
	config.AfterConnect = func(_ context.Context, conn *pgx.Conn) error {
		registerArrays(conn.TypeMap())
		return nil
	}
	params := config.ConnConfig.RuntimeParams
	params["application_name"] = name
	params["lock_timeout"] = milliseconds(cfg.LockTimeout)
	params["statement_timeout"] = milliseconds(cfg.StatementTimeout)
	params["idle_in_transaction_session_timeout"] = milliseconds(cfg.IdleTimeout)
	params["timezone"] = "UTC"
	// Every statement has its index. Without this a plan that was made while a queue
	// was empty reads the whole table once it is long, or walks over its whole index to
	// merge it with a few rows; and compiling such plans costs more than running them.
	params["enable_seqscan"] = "off"
	params["enable_mergejoin"] = "off"
	params["jit"] = "off"
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("connection pool: %w", err)
	}
	return pool, nil
}

func milliseconds(d time.Duration) string { return strconv.FormatInt(d.Milliseconds(), 10) }

// checkServer refuses a server that acknowledges commits before they are safe: a
// 2xx to a vendor would then promise what a power cut takes back (I1).
func checkServer(ctx context.Context, pool *pgxpool.Pool) error {
	settings, err := dbgen.New(pool).ServerSettings(ctx)
	if err != nil {
		return outward("connect", err)
	}
	if settings.SynchronousCommit == "off" {
		return fmt.Errorf("server setting synchronous_commit is off: acknowledged deliveries could be lost; set it to on")
	}
	if settings.Version < 150000 {
		return fmt.Errorf("server version %d: PostgreSQL 15 or later is needed", settings.Version)
	}
	return nil
}

// now is the clock in the precision that the database holds.
func (s *Store) now() time.Time { return s.cfg.Now().UTC().Truncate(time.Microsecond) }

// queries runs single statements on the main pool.
func (s *Store) queries() *dbgen.Queries { return dbgen.New(s.pool) }

// hit calls the failpoint, if there is one.
func (s *Store) hit(ctx context.Context, point Point) error {
	if s.cfg.Failpoint == nil {
		return nil
	}
	if err := s.cfg.Failpoint(ctx, point); err != nil {
		return &failpointError{err}
	}
	return nil
}

// newOperationID names an operation.
func (s *Store) newOperationID() domain.OperationID { return domain.OperationID{ID: s.cfg.NewID()} }
