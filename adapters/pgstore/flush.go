package pgstore

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
)

// queue puts the whole plan into the pipeline, the streams last: accounts are
// locked before streams, and between the lock of the streams and COMMIT there is
// one statement.
func (u *unit) queue(ctx context.Context, p *pipeline) {
	q := dbgen.New(p)
	u.queueAttempts(ctx, q)
	u.queueOperations(ctx, q)
	u.queueDesk(ctx, q)
	u.queueObserved(ctx, q)
	u.queueLedger(ctx, q)
	u.queueRequests(ctx, q)
	u.queueEvents(ctx, p, q)
}

// queued ignores what a queued statement returns: its outcome comes with the
// pipeline.
func queued(error) {}

func (u *unit) queueAttempts(ctx context.Context, q *dbgen.Queries) {
	for _, o := range u.opened {
		queued(q.AttemptInsert(ctx, attemptInsert(o.Attempt, o.tokenHash)))
	}
	if len(u.dirty) == 0 {
		return
	}
	var p dbgen.AttemptUpdateManyParams
	reserve(&p, len(u.dirty))
	for _, id := range u.dirty {
		addAttempt(&p, u.attempts[id])
	}
	queued(q.AttemptUpdateMany(ctx, &p))
}

func (u *unit) queueOperations(ctx context.Context, q *dbgen.Queries) {
	now := at(u.now)
	if len(u.finished) > 0 {
		p := dbgen.OperationFinishManyParams{Now: now}
		for _, f := range u.finished {
			status := operationDone
			if f.Failed {
				status = operationFailed
			}
			p.Ids, p.Statuses, p.ErrorCodes = append(p.Ids, uid(f.ID.ID)), append(p.Statuses, status), append(p.ErrorCodes, f.ErrorCode)
		}
		queued(q.OperationFinishMany(ctx, &p))
	}
	start := dbgen.OperationInsertManyParams{Now: now}
	again := dbgen.OperationRestartManyParams{Now: now}
	for _, o := range u.started {
		task, attempt := uid(o.TaskID.ID), uid(o.AttemptID.ID)
		if o.Restart {
			again.TaskIds, again.AttemptIds, again.Types = append(again.TaskIds, task), append(again.AttemptIds, attempt), append(again.Types, string(o.Type))
		}
		start.Ids, start.Types = append(start.Ids, uid(u.newOperationID().ID)), append(start.Types, string(o.Type))
		start.TaskIds, start.AttemptIds = append(start.TaskIds, task), append(start.AttemptIds, attempt)
	}
	if len(again.Types) > 0 {
		queued(q.OperationRestartMany(ctx, &again))
	}
	if len(start.Types) > 0 {
		queued(q.OperationInsertMany(ctx, &start))
	}
}

func (u *unit) queueDesk(ctx context.Context, q *dbgen.Queries) {
	if len(u.conflicts) > 0 {
		queued(q.ConflictInsertMany(ctx, conflictRows(u.conflicts, u.now)))
	}
	for rest := u.cases; len(rest) > 0; {
		same := slices.IndexFunc(rest, func(m caseMove) bool { return m.open != rest[0].open })
		if same < 0 {
			same = len(rest)
		}
		u.queueCases(ctx, q, rest[:same])
		rest = rest[same:]
	}
	for _, a := range u.assets {
		queued(q.AssetInsert(ctx, assetInsert(a)))
	}
	if len(u.audits) > 0 {
		queued(q.AuditInsertMany(ctx, auditRows(u.audits, u.now)))
	}
}

// queueCases writes moves of one direction.
func (u *unit) queueCases(ctx context.Context, q *dbgen.Queries, moves []caseMove) {
	var kinds []string
	var tasks, attempts []pgtype.UUID
	for _, m := range moves {
		kinds, tasks, attempts = append(kinds, string(m.kind)), append(tasks, uid(m.task.ID)), append(attempts, uid(m.attempt.ID))
	}
	if moves[0].open {
		queued(q.CaseOpenMany(ctx, &dbgen.CaseOpenManyParams{Now: at(u.now), Kinds: kinds, TaskIds: tasks, AttemptIds: attempts, Owner: caseOwner}))
	} else {
		queued(q.CaseCloseMany(ctx, &dbgen.CaseCloseManyParams{Now: at(u.now), Kinds: kinds, AttemptIds: attempts}))
	}
}

func (u *unit) queueObserved(ctx context.Context, q *dbgen.Queries) {
	if len(u.observed) > 0 {
		p := dbgen.ObservationInsertManyParams{Now: at(u.now)}
		reserve(&p, len(u.observed))
		for i, o := range u.observed {
			addObserved(&p, int32(i), o, u.now)
		}
		queued(q.ObservationInsertMany(ctx, &p))
	}
	if len(u.counted) == 0 {
		return
	}
	p := dbgen.ObservationCountParams{Now: at(u.now)}
	for _, key := range u.counters() {
		p.TaskIds, p.Verdicts = append(p.TaskIds, uid(key.task.ID)), append(p.Verdicts, string(key.Kind))
		p.Reasons, p.Counts = append(p.Reasons, string(key.Reason)), append(p.Counts, u.counted[key])
	}
	queued(q.ObservationCount(ctx, &p))
}

func (u *unit) queueRequests(ctx context.Context, q *dbgen.Queries) {
	if len(u.remembered) == 0 {
		return
	}
	drop := dbgen.IdempotencyDropExpiredParams{Now: at(u.now)}
	keep := dbgen.IdempotencyInsertManyParams{Now: at(u.now)}
	for _, r := range u.remembered {
		drop.TenantIds, drop.Scopes, drop.Keys = append(drop.TenantIds, required(r.TenantID.ID)), append(drop.Scopes, r.Scope), append(drop.Keys, r.Key)
		keep.BodyHashes, keep.TaskIds = append(keep.BodyHashes, r.BodyHash), append(keep.TaskIds, uid(r.task.ID))
		keep.ExpiresAts = append(keep.ExpiresAts, at(r.ExpiresAt))
	}
	keep.TenantIds, keep.Scopes, keep.Keys = drop.TenantIds, drop.Scopes, drop.Keys
	queued(q.IdempotencyDropExpired(ctx, &drop))
	queued(q.IdempotencyInsertMany(ctx, &keep))
}

func (u *unit) queueLedger(ctx context.Context, q *dbgen.Queries) {
	if len(u.booked) == 0 {
		return
	}
	p := dbgen.LedgerAppendParams{Now: at(u.now)}
	for i, e := range u.booked {
		p.Ords, p.TenantIds, p.TaskIds = append(p.Ords, int32(i)), append(p.TenantIds, uid(e.TenantID.ID)), append(p.TaskIds, uid(e.TaskID.ID))
		p.AttemptIds, p.Types = append(p.AttemptIds, uid(e.AttemptID.ID)), append(p.Types, string(e.Type))
		p.ActionIds, p.Credits = append(p.ActionIds, uid(e.ActionID.ID)), append(p.Credits, e.Credits)
		direction := int64(1)
		if e.Back {
			direction = -1
		}
		p.Reserved, p.Directions = append(p.Reserved, e.reserved), append(p.Directions, direction)
	}
	queued(q.AccountLockQuiet(ctx, p.TenantIds))
	queued(q.LedgerAppend(ctx, &p))
}
