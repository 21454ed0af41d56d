package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// queueEvents locks the streams and queues the one statement that writes events,
// outbox rows and tasks. What it returns completes the results.
func (u *unit) queueEvents(ctx context.Context, p *pipeline, q *dbgen.Queries) {
	if len(u.events) == 0 {
		return
	}
	params := dbgen.EventAppendParams{Now: at(u.now)}
	reserve(&params, len(u.events))
	for i, e := range u.events {
		addEvent(&params, int32(i), e.Event)
		c := u.changed[e.TaskID]
		addTask(&params, e.task, c.event == i, c.before)
	}
	queued(q.StreamLock(ctx, params.ProjectIds))
	if _, err := q.EventAppend(ctx, &params); !errors.Is(err, errQueued) {
		panic(err) // the pipeline always answers so
	}
	p.last.Query(u.readNumbers)
}

// readNumbers takes the numbers of the events.
func (u *unit) readNumbers(rows pgx.Rows) error {
	var ord int32
	var id int64
	var created pgtype.Timestamptz
	seen := 0
	_, err := pgx.ForEachRow(rows, []any{&ord, &id, &created}, func() error {
		seen++
		e := u.events[ord]
		if e.result < len(u.results) {
			u.results[e.result].Event = &ports.StoredEvent{Event: e.Event, EventID: id, CreatedAt: timeOf(created)}
		}
		return nil
	})
	if err == nil && seen != len(u.events) {
		return fmt.Errorf("%d of %d events were numbered", seen, len(u.events))
	}
	return err
}

// complete puts the numbers of the events into the decisions: each task carries
// the number of its newest event at that point of the batch.
func (u *unit) complete() {
	newest := map[domain.TaskID]int64{}
	for _, r := range u.results {
		id := r.Decision.Task.ID
		if r.Event != nil {
			newest[id] = r.Event.EventID
		}
		if n, ok := newest[id]; ok {
			r.Decision.Task.LastEventID = n
		}
	}
}

func addEvent(p *dbgen.EventAppendParams, ord int32, e domain.Event) {
	p.Ords = append(p.Ords, ord)
	p.TenantIds, p.ProjectIds = append(p.TenantIds, uid(e.TenantID.ID)), append(p.ProjectIds, uid(e.ProjectID.ID))
	p.UserIds, p.TaskIds = append(p.UserIds, uid(e.UserID.ID)), append(p.TaskIds, uid(e.TaskID.ID))
	p.AttemptIds, p.Versions = append(p.AttemptIds, uid(e.AttemptID.ID)), append(p.Versions, e.Version)
	p.EventTypes, p.Sources = append(p.EventTypes, e.Type), append(p.Sources, string(e.Source))
	p.Payloads, p.Messages = append(p.Payloads, payloadText(e)), append(p.Messages, messageText(e))
	p.TraceIds, p.Shards = append(p.TraceIds, uid(e.TraceID.ID)), append(p.Shards, outboxShard(e.ProjectID))
}

// addTask adds the task behind the event. final marks its newest event of the
// batch, whose values are written; before is the version that it was locked with.
func addTask(p *dbgen.EventAppendParams, t domain.Task, final bool, before int64) {
	p.Finals, p.VersionsBefore = append(p.Finals, final), append(p.VersionsBefore, before)
	p.Statuses, p.Phases = append(p.Statuses, string(t.Status())), append(p.Phases, string(t.Phase))
	p.Cancels, p.UnknownSinces = append(p.Cancels, string(t.Cancel)), append(p.UnknownSinces, atPtr(t.UnknownSince))
	p.Stages, p.Progresses = append(p.Stages, string(t.Stage)), append(p.Progresses, percent(t.Progress))
	p.CurrentAttemptIds = append(p.CurrentAttemptIds, uid(t.CurrentAttemptID.ID))
	p.AttemptCounts, p.AssetIds = append(p.AttemptCounts, int32(t.AttemptCount)), append(p.AssetIds, uid(t.AssetID.ID))
	var fault domain.PublicError
	if t.Error != nil {
		fault = *t.Error
	}
	p.ErrorCodes, p.ErrorRetryables = append(p.ErrorCodes, string(fault.Code)), append(p.ErrorRetryables, fault.Retryable)
	p.ErrorTraceIds = append(p.ErrorTraceIds, uid(fault.TraceID.ID))
	p.UpdatedAts, p.TerminalAts = append(p.UpdatedAts, at(t.UpdatedAt)), append(p.TerminalAts, atPtr(t.TerminalAt))
}
