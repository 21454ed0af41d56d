package pgstore

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// Timeline implements ports.Reader.
func (s *Store) Timeline(ctx context.Context, project domain.ProjectID, task domain.TaskID) (ports.Timeline, error) {
	row, err := s.queries().TaskGet(ctx, uid(task.ID))
	if err == nil && taskOf(row).ProjectID != project {
		err = fmt.Errorf("task: %w", ports.ErrNotFound)
	}
	if err != nil {
		return ports.Timeline{}, outward("timeline", missing("task", err))
	}
	timeline, err := s.timeline(ctx, task)
	return timeline, outward("timeline", err)
}

// history collects the entries of a task.
type history struct {
	numbers map[domain.ID]int
	entries []ports.TimelineEntry
}

func (s *Store) timeline(ctx context.Context, task domain.TaskID) (ports.Timeline, error) {
	q := s.queries()
	attempts, err := q.AttemptNumbers(ctx, uid(task.ID))
	if err != nil {
		return ports.Timeline{}, err
	}
	h := history{numbers: make(map[domain.ID]int, len(attempts))}
	for _, a := range attempts {
		h.numbers[idOf(a.ID)] = int(a.AttemptNo)
	}
	for _, add := range []func(context.Context, *dbgen.Queries, domain.TaskID) error{
		h.addAudits, h.addObservations, h.addEvents, h.addConflicts, h.addOperations, h.addLedger,
	} {
		if err := add(ctx, q, task); err != nil {
			return ports.Timeline{}, err
		}
	}
	// Events count in milliseconds, so everything is sorted in them; within one an
	// observation stands before what followed from it.
	slices.SortStableFunc(h.entries, func(a, b ports.TimelineEntry) int { return a.At.Compare(b.At) })
	counters, err := q.ObservationCounters(ctx, uid(task.ID))
	if err != nil {
		return ports.Timeline{}, err
	}
	timeline := ports.Timeline{Entries: h.entries, Counters: make(map[string]int64, len(counters))}
	for _, c := range counters {
		timeline.Counters[counterName(c.Verdict, c.Reason)] = c.Count
	}
	return timeline, nil
}

// counterName is the verdict, with its reason behind a slash where it has one.
func counterName(verdict, reason string) string {
	if reason == "" {
		return verdict
	}
	return verdict + "/" + reason
}

func (h *history) add(at time.Time, e ports.TimelineEntry) {
	e.At = at.UTC().Truncate(time.Millisecond)
	h.entries = append(h.entries, e)
}

func (h *history) addObservations(ctx context.Context, q *dbgen.Queries, task domain.TaskID) error {
	rows, err := q.ObservationsOfTask(ctx, uid(task.ID))
	for _, r := range rows {
		h.add(timeOf(r.CreatedAt), ports.TimelineEntry{
			Kind: "observation", AttemptNo: h.numbers[idOf(r.AttemptID)], Source: domain.Source(r.Source), Status: text(r.Status),
			Stage: domain.Stage(text(r.Stage)), Verdict: domain.Verdict{Kind: domain.VerdictKind(r.Verdict), Reason: domain.Reason(text(r.Reason))},
			VersionBefore: r.VersionBefore, VersionAfter: r.VersionAfter, Progress: percentPtr(r.Progress),
			Detail: wire.Explanation{
				Kind: domain.Kind(r.Kind), Class: domain.ErrorClass(text(r.ErrorClass)), Code: text(r.ErrorCode),
				Message: text(r.ErrorMessage), Next: timePtr(r.NextAt),
			}.Text(),
		})
	}
	return err
}

func (h *history) addEvents(ctx context.Context, q *dbgen.Queries, task domain.TaskID) error {
	rows, err := q.EventsOfTask(ctx, uid(task.ID))
	if err != nil {
		return err
	}
	events, err := eventsOf(rows)
	for _, e := range events {
		h.add(e.CreatedAt, ports.TimelineEntry{
			Kind: "event", AttemptNo: h.numbers[e.AttemptID.ID], Source: e.Source, Status: string(e.Status), Stage: e.Stage,
			VersionBefore: e.Version - 1, VersionAfter: e.Version, EventID: e.EventID, Progress: e.Progress,
		})
	}
	return err
}

func (h *history) addOperations(ctx context.Context, q *dbgen.Queries, task domain.TaskID) error {
	rows, err := q.OperationsOfTask(ctx, uid(task.ID))
	for _, r := range rows {
		e := ports.TimelineEntry{Kind: "operation", AttemptNo: h.numbers[idOf(r.AttemptID)], Status: r.OperationType, Detail: "started"}
		h.add(timeOf(r.CreatedAt), e)
		switch {
		case r.FinishedAt != nil:
			e.Detail = cmp.Or(text(r.ErrorCode), r.Status)
			h.add(*r.FinishedAt, e)
		case r.FailedAt != nil: // the newest try that failed
			e.Detail = wire.OperationText(int(r.FailedTries), text(r.ErrorCode), timeOf(r.NextAt))
			h.add(*r.FailedAt, e)
		}
	}
	return err
}

func (h *history) addLedger(ctx context.Context, q *dbgen.Queries, task domain.TaskID) error {
	rows, err := q.LedgerOfTask(ctx, uid(task.ID))
	for _, r := range rows {
		h.add(timeOf(r.CreatedAt), ports.TimelineEntry{
			Kind: "ledger", AttemptNo: h.numbers[idOf(r.AttemptID)], Status: r.LedgerType, Detail: fmt.Sprintf("%d credits", r.Credits),
		})
	}
	return err
}

func (h *history) addConflicts(ctx context.Context, q *dbgen.Queries, task domain.TaskID) error {
	rows, err := q.ConflictsOfTask(ctx, uid(task.ID))
	for _, r := range rows {
		h.add(timeOf(r.OpenedAt), ports.TimelineEntry{
			Kind: "conflict", AttemptNo: h.numbers[idOf(r.AttemptID)], Status: r.Got, Detail: r.Kind,
		})
	}
	return err
}

func (h *history) addAudits(ctx context.Context, q *dbgen.Queries, task domain.TaskID) error {
	rows, err := q.AuditOfTask(ctx, uid(task.ID))
	for _, r := range rows {
		h.add(timeOf(r.CreatedAt), ports.TimelineEntry{
			Kind: "audit", AttemptNo: h.numbers[idOf(r.AttemptID)], Source: domain.SourceOperator, Status: r.Action, Detail: ports.AuditDetail(r.Actor, r.Reason),
		})
	}
	return err
}
