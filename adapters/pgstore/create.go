package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Create implements ports.Transitions. When the answer of COMMIT is lost the task
// itself is the proof: the next try looks for it before it writes.
func (s *Store) Create(ctx context.Context, params ports.CreateParams) (ports.CreateResult, error) {
	var result ports.CreateResult
	for lost := false; ; lost = true {
		err := s.retry(ctx, func() (err error) {
			if lost {
				if result, err = s.created(ctx, params.Task.ID); !errors.Is(err, ports.ErrNotFound) {
					return err
				}
			}
			result, err = s.createOnce(ctx, params)
			return err
		})
		if faultOf(err) == faultUnknown && !lost && !ended(ctx) {
			continue
		}
		return result, outward("create", err)
	}
}

func (s *Store) createOnce(ctx context.Context, params ports.CreateParams) (result ports.CreateResult, err error) {
	var replay *domain.TaskID
	err = transact(ctx, s.pool, func(conn *pgx.Conn) error {
		u, q := s.newUnit(), dbgen.New(conn)
		known, err := u.admit(ctx, q, params)
		if err != nil || known != nil {
			replay = known
			return err
		}
		if err := s.hit(ctx, PointLocked); err != nil {
			return err
		}
		decision := domain.Create(withDefaults(params.Task), params.Attempt, u.now)
		if err := u.covers(decision.Ledger); err != nil {
			return err
		}
		r := ports.Result{Decision: decision}
		var p pipeline
		u.open(ctx, &p, params, decision)
		u.results = append(u.results, &r)
		u.queue(ctx, &p)
		if err := s.commit(ctx, conn, &p); err != nil {
			return err
		}
		u.complete()
		result = ports.CreateResult{Cursor: r.Event.Cursor(), View: ports.TaskView{
			Task: r.Decision.Task, Attempt: r.Decision.Attempt, Metadata: params.Input.Metadata,
		}}
		return nil
	})
	if err == nil && replay != nil {
		result, err = s.created(ctx, *replay)
		result.Replayed = true
	}
	return result, err
}

// admit checks that the task may be made, with the tenant's account locked: two
// requests with one key wait for each other here, and the second finds the key.
// It returns the task of a known key.
func (u *unit) admit(ctx context.Context, q *dbgen.Queries, params ports.CreateParams) (*domain.TaskID, error) {
	task := params.Task
	if _, err := q.ProjectGet(ctx, uid(task.ProjectID.ID), uid(task.TenantID.ID)); err != nil {
		return nil, missing("project", err)
	}
	accounts, err := q.AccountLock(ctx, []pgtype.UUID{uid(task.TenantID.ID)})
	if err != nil {
		return nil, err
	}
	for _, a := range accounts {
		u.balances[task.TenantID] = a.Available
	}
	id := params.Idempotency
	if id == nil {
		return nil, nil
	}
	if err := u.readRequests(ctx, q, []ports.Item{{Idempotency: id}}, u.now); err != nil {
		return nil, err
	}
	known, ok := u.requests[keyOf(id)]
	if !ok {
		return nil, nil
	}
	if r := u.replay(known, id); r.Err != nil {
		return nil, r.Err
	}
	return &known.task, nil
}

// open queues the rows of a new task and plans what follows from its decision.
// The task starts at version 0, and its first event brings it to 1 like every
// other event.
func (u *unit) open(ctx context.Context, p *pipeline, params ports.CreateParams, d domain.Decision) {
	q, t, in := dbgen.New(p), d.Task, params.Input
	queued(q.TaskInsert(ctx, &dbgen.TaskInsertParams{
		ID: uid(t.ID.ID), TenantID: uid(t.TenantID.ID), ProjectID: uid(t.ProjectID.ID), UserID: uid(t.UserID.ID),
		Stage: string(t.Stage), CurrentAttemptID: uid(t.CurrentAttemptID.ID), AttemptCount: int32(t.AttemptCount),
		OnLateSuccess: string(t.OnLateSuccess), TraceID: uid(t.TraceID.ID), CreatedAt: at(t.CreatedAt), UpdatedAt: at(t.UpdatedAt),
	}))
	queued(q.TaskInputInsert(ctx, &dbgen.TaskInputInsertParams{
		TaskID: uid(t.ID.ID), Prompt: in.Prompt, ImageUrl: in.ImageURL, DurationSeconds: int32(in.DurationSeconds),
		AspectRatio: in.AspectRatio, Resolution: in.Resolution, Seed: in.Seed, Extra: in.Extra, Metadata: in.Metadata,
	}))
	u.tasks[t.ID] = t
	u.opened = append(u.opened, opened{d.Attempt, params.TokenHash})
	u.book(d)
	u.follow(d)
	u.emit(domain.Task{}, d)
	if params.Idempotency != nil {
		u.remembered = append(u.remembered, remembered{*params.Idempotency, t.ID})
	}
}

// created reads a task that exists as the answer to its creation.
func (s *Store) created(ctx context.Context, id domain.TaskID) (ports.CreateResult, error) {
	row, err := s.queries().TaskView(ctx, uid(id.ID))
	if err != nil {
		return ports.CreateResult{}, missing("task", err)
	}
	view, err := viewOf(row.GenerationTask, row.TaskAttempt, row.Metadata)
	if err != nil {
		return ports.CreateResult{}, fmt.Errorf("task: %w", err)
	}
	return ports.CreateResult{View: view, Cursor: headOf(row.ProjectStream)}, nil
}

func withDefaults(t domain.Task) domain.Task {
	t.OnLateSuccess = cmp.Or(t.OnLateSuccess, domain.LateSuccessKeep)
	return t
}
