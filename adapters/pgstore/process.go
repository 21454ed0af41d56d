package pgstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

const (
	// maxDeaths is how many workers may die with a row in hand before it is a dead
	// letter.
	maxDeaths = 3
	// reapEvery and reapGrace: how often dead workers are looked for, and how long
	// after it took rows a worker without a connection counts as dead. A live one
	// clears its hand at once when its connection breaks.
	reapEvery = time.Second
	reapGrace = 2 * time.Second
	// lockClass keeps the advisory locks of inbox shards apart from others.
	lockClass = 0x61696e78
	// maxProcess bounds one round; the literal LIMIT of InboxPeek.
	maxProcess = 256
)

// hands names the workers of this process: each running Process has one to
// itself, and the name is used again afterwards.
type hands struct {
	mu    sync.Mutex
	free  []domain.ID
	newID func() domain.ID
	// reaped is when dead workers were last looked for, in Unix nanoseconds.
	reaped *atomic.Int64
}

func newHands(newID func() domain.ID) hands { return hands{newID: newID, reaped: &atomic.Int64{}} }

func (h *hands) take() domain.ID {
	h.mu.Lock()
	defer h.mu.Unlock()
	if n := len(h.free); n > 0 {
		id := h.free[n-1]
		h.free = h.free[:n-1]
		return id
	}
	return h.newID()
}

func (h *hands) give(id domain.ID) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.free = append(h.free, id)
}

// round is one call of Process.
type round struct {
	*Store
	conn   *pgx.Conn
	worker domain.ID
	params ports.ProcessParams
	decode func(ports.InboxRow) ports.Decoded
	shards []int16
	report ports.ProcessReport
}

// Process implements ports.Inbox.
func (s *Store) Process(ctx context.Context, params ports.ProcessParams, decode func(ports.InboxRow) ports.Decoded) (ports.ProcessReport, error) {
	s.reapSometimes(ctx)
	conn, err := s.pool.Acquire(ctx)
	if err != nil {
		return ports.ProcessReport{}, outward("process", err)
	}
	defer conn.Release()
	r := round{Store: s, conn: conn.Conn(), worker: s.hands.take(), params: params, decode: decode}
	defer s.hands.give(r.worker)
	ids, err := r.peek(ctx)
	if err == nil && len(ids) == 0 {
		return ports.ProcessReport{}, nil
	}
	if err == nil {
		err = r.take(ctx, ids, true)
	}
	if err != nil {
		r.floors.drop(params.Worker)
		conn.Release() // workers that each hold one and want another would wait for each other
		r.emptyHand(ctx)
		return ports.ProcessReport{}, outward("process", err)
	}
	conn.Release()
	s.vacuum(ctx, &s.inboxVacuum, r.report.Taken)
	return r.report, nil
}

// peek writes down which rows come next, before the transaction that takes them.
func (r *round) peek(ctx context.Context) ([]int64, error) {
	workers := max(r.params.Workers, 1)
	var mine []int16
	for shard := r.params.Worker % workers; shard < inboxShards; shard += workers {
		mine = append(mine, int16(shard))
	}
	limit := min(max(r.params.Limit, 0), maxProcess)
	row, err := dbgen.New(r.conn).InboxPeek(ctx, &dbgen.InboxPeekParams{
		WorkerID: uid(r.worker), Shards: mine, MaxRows: int32(limit), Above: r.floors.get(r.params.Worker, time.Now()),
	})
	if errors.Is(err, pgx.ErrNoRows) {
		r.floors.drop(r.params.Worker)
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.shards = row.Shards
	if row.PassedOver || len(row.InboxIds) < limit {
		r.floors.drop(r.params.Worker)
	} else {
		r.floors.raise(r.params.Worker, row.InboxIds[0])
	}
	return row.InboxIds, nil
}

// emptyHand says that this process lives and has nothing in hand; if even that
// fails, the rows are only taken one by one for a while.
func (r *round) emptyHand(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
	defer cancel()
	if err := r.queries().InboxWorkerClear(ctx, uid(r.worker)); err != nil {
		r.log.WarnContext(ctx, "empty the worker's hand", "error", err)
	}
}

// take applies the rows in one transaction; last says that no other follows. Rows
// that the database refuses are found by halving, and fail alone.
func (r *round) take(ctx context.Context, ids []int64, last bool) error {
	err := r.retryHere(ctx, func() error { return r.once(ctx, ids, last, nil) })
	if faultOf(err) != faultData {
		return err
	}
	if len(ids) == 1 {
		refused := outward("apply", err)
		return r.retryHere(ctx, func() error { return r.once(ctx, ids, last, refused) })
	}
	half := len(ids) / 2
	if err := r.take(ctx, ids[:half], false); err != nil {
		return err
	}
	return r.take(ctx, ids[half:], last)
}

// retryHere is retry on the round's connection: when that one is broken, the
// caller comes again.
func (r *round) retryHere(ctx context.Context, f func() error) error {
	return r.retry(ctx, func() error {
		if r.conn.IsClosed() {
			return fmt.Errorf("process: %w: connection lost", ports.ErrUnavailable)
		}
		return f()
	})
}

// once is the transaction. refused is what the database said about the only row
// when it was applied; then the row is only marked.
func (r *round) once(ctx context.Context, ids []int64, last bool, refused error) error {
	return transactOn(ctx, r.conn, func(conn *pgx.Conn) error {
		q := dbgen.New(conn)
		claimed, err := q.InboxClaim(ctx, &dbgen.InboxClaimParams{Shards: r.shards, LockClass: lockClass, InboxIds: ids})
		if err != nil {
			return err
		}
		if err := r.hit(ctx, PointClaimed); err != nil {
			return err
		}
		if len(claimed) < len(ids) {
			r.floors.drop(r.params.Worker) // what another worker has in hand may come back
		}
		b := r.newBatch(claimed, refused)
		if err := b.load(ctx, q, b.items(), b.now); err != nil {
			return err
		}
		if err := r.hit(ctx, PointLocked); err != nil {
			return err
		}
		b.digestAll()
		var p pipeline
		b.queueOutcomes(ctx, &p)
		if last {
			queued(dbgen.New(&p).InboxWorkerClear(ctx, uid(r.worker)))
		}
		b.queue(ctx, &p)
		if err := r.commit(ctx, conn, &p); err != nil {
			return err
		}
		b.complete()
		b.addTo(&r.report)
		return nil
	})
}

// reapSometimes looks for dead workers, at most once a second in this process.
func (s *Store) reapSometimes(ctx context.Context) {
	now, before := time.Now().UnixNano(), s.hands.reaped.Load()
	if now-before < int64(reapEvery) || !s.hands.reaped.CompareAndSwap(before, now) {
		return
	}
	if err := s.reap(ctx); err != nil && !ended(ctx) {
		s.log.WarnContext(ctx, "look for dead workers", "error", err)
	}
}

// reap gives back what dead workers had in hand; these rows come alone from now on.
func (s *Store) reap(ctx context.Context) error {
	rows, err := s.queries().InboxReap(ctx, reapGrace.Seconds())
	for _, r := range rows {
		s.log.WarnContext(ctx, "a worker died with a delivery in hand", "inbox_id", r.InboxID, "deaths", r.Deaths)
	}
	return err
}
