package pgstore

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/ports"
)

// Apply implements ports.Transitions. The transaction locks in a fixed order,
// decides in memory, and sends all writes with COMMIT in one round trip. A batch
// that the database refuses for its data is cut in halves until the bad items
// stand alone, which keeps the order of the items of one task.
func (s *Store) Apply(ctx context.Context, items []ports.Item) ([]ports.Result, error) {
	if len(items) == 0 {
		return nil, nil
	}
	results, err := s.applyOnce(ctx, items)
	if faultOf(err) != faultData {
		return results, outward("apply", err)
	}
	if len(items) == 1 {
		return []ports.Result{{Err: outward("apply", err)}}, nil
	}
	half := len(items) / 2
	first, err := s.Apply(ctx, items[:half])
	if err != nil {
		return nil, err
	}
	second, err := s.Apply(ctx, items[half:])
	if err != nil {
		return nil, err
	}
	return append(first, second...), nil
}

// applyOnce is one transaction, tried again as a whole where that may help.
func (s *Store) applyOnce(ctx context.Context, items []ports.Item) (results []ports.Result, err error) {
	err = s.retry(ctx, func() error {
		return transact(ctx, s.pool, func(conn *pgx.Conn) error {
			u := s.newUnit()
			if err := u.load(ctx, dbgen.New(conn), items, u.now); err != nil {
				return err
			}
			if err := s.hit(ctx, PointLocked); err != nil {
				return err
			}
			results = u.applyAll(items)
			var p pipeline
			u.queue(ctx, &p)
			if err := s.commit(ctx, conn, &p); err != nil {
				return err
			}
			u.complete()
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}
