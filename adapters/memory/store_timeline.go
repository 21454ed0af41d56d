package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// counterKey counts what a task's timeline does not list.
type counterKey struct {
	task domain.TaskID
	name string
}

// remember adds an entry to a task's timeline.
func (x *tx) remember(task domain.TaskID, entry ports.TimelineEntry) {
	put(x, x.history, task, append(x.history[task], entry))
}

// record notes an input with its verdict, its event and who asked for it.
func (x *tx) record(item ports.Item, versionBefore int64, d domain.Decision, event *ports.StoredEvent) {
	if !d.Recorded() {
		key := counterKey{d.Task.ID, counterName(d.Verdict)}
		put(x, x.counters, key, x.counters[key]+1)
	} else {
		x.remember(d.Task.ID, ports.TimelineEntry{
			At: x.at, Kind: "observation", AttemptNo: d.Attempt.No, Source: sourceOf(item.Input, d),
			Status: claimOf(item.Input), Stage: d.Task.Stage, Verdict: d.Verdict,
			VersionBefore: versionBefore, VersionAfter: d.Task.Version, Progress: progressOf(item.Input),
			Detail: explain(item.Input, d.Attempt),
		})
	}
	if event != nil {
		x.rememberEvent(*event, versionBefore)
	}
	if item.Audit != nil {
		x.rememberAudit(d.Task.ID, *item.Audit)
	}
}

// explain says why an input is what it is.
func explain(in domain.Input, after domain.Attempt) string {
	e := wire.Explanation{Kind: in.Kind, Class: in.ErrorClass, Code: in.ErrorCode, Message: in.ErrorMessage, Next: wire.NextTry(in.Kind, after)}
	if obs := in.Observation; obs != nil {
		e.Class, e.Code, e.Message = obs.ErrorClass, obs.ErrorCode, obs.ErrorMessage
	}
	return e.Text()
}

func (x *tx) rememberEvent(e ports.StoredEvent, versionBefore int64) {
	x.remember(e.TaskID, ports.TimelineEntry{
		At: e.CreatedAt, Kind: "event", AttemptNo: x.attempts[e.AttemptID].No, Source: e.Source,
		Status: string(e.Status), Stage: e.Stage, VersionBefore: versionBefore, VersionAfter: e.Version,
		EventID: e.EventID, Progress: e.Progress,
	})
}

func (x *tx) rememberAudit(task domain.TaskID, a ports.Audit) {
	x.remember(task, ports.TimelineEntry{
		At: x.at, Kind: "audit", Source: domain.SourceOperator, Status: a.Action,
		Detail: ports.AuditDetail(a.Actor, a.Reason),
	})
}

// counterName is "unchanged", or the verdict and its reason with a slash.
func counterName(v domain.Verdict) string {
	if v.Reason == "" {
		return string(v.Kind)
	}
	return string(v.Kind) + "/" + string(v.Reason)
}

// sourceOf says where an input came from.
func sourceOf(in domain.Input, d domain.Decision) domain.Source {
	switch {
	case in.Observation != nil:
		return in.Observation.Source
	case d.Source != "":
		return d.Source
	default:
		return domain.SourceSystem
	}
}

// claimOf is the status that an input claims, empty when it claims none.
func claimOf(in domain.Input) string {
	if in.Observation == nil {
		return ""
	}
	return string(in.Observation.Status)
}

func progressOf(in domain.Input) *int {
	if in.Observation == nil {
		return in.Progress
	}
	return in.Observation.Progress
}

// Timeline implements ports.Reader.
func (s *Store) Timeline(ctx context.Context, project domain.ProjectID, task domain.TaskID) (ports.Timeline, error) {
	timeline := ports.Timeline{Counters: map[string]int64{}}
	err := s.read(ctx, func() error {
		if t, ok := s.tasks[task]; !ok || t.ProjectID != project {
			return fmt.Errorf("task: %w", ports.ErrNotFound)
		}
		timeline.Entries = slices.Clone(s.history[task])
		for key, n := range s.counters {
			if key.task == task {
				timeline.Counters[key.name] = n
			}
		}
		return nil
	})
	return timeline, err
}
