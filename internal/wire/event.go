package wire

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// StreamEvent is the SSE event name and the WebSocket type of a task event.
const StreamEvent = "task.status"

// Event is the data of a task event on every stream.
type Event struct {
	EventID     int64         `json:"event_id"`
	TaskID      string        `json:"task_id"`
	TaskVersion int64         `json:"task_version"`
	Status      domain.Status `json:"status"`
	Stage       domain.Stage  `json:"stage"`
	Progress    *int          `json:"progress"`
	AssetID     *string       `json:"asset_id"`
	Error       *Error        `json:"error"`
	OccurredAt  string        `json:"occurred_at"`
}

// EventOf is the public form of a stored event.
func EventOf(e ports.StoredEvent) Event {
	return Event{
		EventID: e.EventID, TaskID: TaskID(e.TaskID), TaskVersion: e.Version,
		Status: e.Status, Stage: e.Stage, Progress: e.Progress,
		AssetID: stringPtr(AssetID(e.AssetID)), Error: errorOf(e.Error), OccurredAt: FormatTime(e.CreatedAt),
	}
}

// Message is an event on the bus and on the notifier (specification 12.5.5). It
// carries everything that a stored event holds, so that a gateway needs no read
// to show it.
type Message struct {
	EventID          int64         `json:"event_id"`
	EventType        string        `json:"event_type"`
	AggregateID      string        `json:"aggregate_id"`
	AggregateVersion int64         `json:"aggregate_version"`
	TenantID         string        `json:"tenant_id"`
	ProjectID        string        `json:"project_id"`
	UserID           string        `json:"user_id"`
	AttemptID        string        `json:"attempt_id"`
	Status           domain.Status `json:"status"`
	Phase            domain.Phase  `json:"phase"`
	Cancel           domain.Cancel `json:"cancel"`
	Stage            domain.Stage  `json:"stage"`
	Progress         *int          `json:"progress"`
	AssetID          *string       `json:"asset_id"`
	Error            *Error        `json:"error"`
	Source           domain.Source `json:"source"`
	OccurredAt       string        `json:"occurred_at"`
	TraceID          string        `json:"trace_id"`
}

// MessageOf is the bus form of a stored event.
func MessageOf(e ports.StoredEvent) Message {
	return Message{
		EventID: e.EventID, EventType: e.Type, AggregateID: TaskID(e.TaskID), AggregateVersion: e.Version,
		TenantID: TenantID(e.TenantID), ProjectID: ProjectID(e.ProjectID), UserID: UserID(e.UserID), AttemptID: AttemptID(e.AttemptID),
		Status: e.Status, Phase: e.Phase, Cancel: e.Cancel, Stage: e.Stage, Progress: e.Progress,
		AssetID: stringPtr(AssetID(e.AssetID)), Error: errorOf(e.Error), Source: e.Source,
		OccurredAt: FormatTime(e.CreatedAt), TraceID: TraceID(e.TraceID),
	}
}

// ParseMessage reads what MessageOf wrote. Unknown fields are accepted: a newer
// process may send them.
func ParseMessage(data []byte) (ports.StoredEvent, error) {
	var m Message
	if err := json.Unmarshal(data, &m); err != nil {
		return ports.StoredEvent{}, fmt.Errorf("bus message: %w", err)
	}
	if m.EventID <= 0 || m.AggregateVersion <= 0 {
		return ports.StoredEvent{}, fmt.Errorf("bus message: event_id %d, aggregate_version %d: both count from 1", m.EventID, m.AggregateVersion)
	}
	at, err := time.Parse(time.RFC3339, m.OccurredAt)
	if err != nil {
		return ports.StoredEvent{}, fmt.Errorf("bus message: occurred_at: %w", err)
	}
	at = at.UTC().Truncate(time.Millisecond)
	if y := at.Year(); y < 1 || y > 9999 {
		return ports.StoredEvent{}, fmt.Errorf("bus message: occurred_at: year %d", y)
	}
	p := idParser{}
	e := ports.StoredEvent{
		EventID: m.EventID, CreatedAt: at,
		Event: domain.Event{
			TenantID: domain.TenantID{ID: p.must(PrefixTenant, m.TenantID)}, ProjectID: domain.ProjectID{ID: p.must(PrefixProject, m.ProjectID)},
			UserID: domain.UserID{ID: p.may(PrefixUser, m.UserID)}, TaskID: domain.TaskID{ID: p.must(PrefixTask, m.AggregateID)},
			AttemptID: domain.AttemptID{ID: p.may(PrefixAttempt, m.AttemptID)}, Version: m.AggregateVersion, Type: m.EventType,
			Status: m.Status, Phase: m.Phase, Cancel: m.Cancel, Stage: m.Stage, Progress: m.Progress,
			Source: m.Source, TraceID: domain.TraceID{ID: p.may(PrefixTrace, m.TraceID)},
		},
	}
	if m.AssetID != nil {
		e.AssetID = domain.AssetID{ID: p.may(PrefixAsset, *m.AssetID)}
	}
	if m.Error != nil {
		e.Error = &domain.PublicError{Code: m.Error.Code, Retryable: m.Error.Retryable, TraceID: domain.TraceID{ID: p.may(PrefixTrace, m.Error.TraceID)}}
	}
	if p.err != nil {
		return ports.StoredEvent{}, fmt.Errorf("bus message: %w", p.err)
	}
	return e, nil
}

// idParser keeps the first error, so that a struct of ids reads as one.
type idParser struct{ err error }

func (p *idParser) must(prefix, s string) domain.ID {
	id, err := ParseID(prefix, s)
	if err == nil && id.IsZero() {
		err = fmt.Errorf("%q is no one's id", s)
	}
	if err != nil && p.err == nil {
		p.err = err
	}
	return id
}

func (p *idParser) may(prefix, s string) domain.ID {
	if s == "" {
		return domain.ID{}
	}
	return p.must(prefix, s)
}
