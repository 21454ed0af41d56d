package pgstore

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// payload is the public part of an event as task_events keeps it (specification
// 12.5.4): nothing that the public may not see.
type payload struct {
	Status   domain.Status `json:"status"`
	Phase    domain.Phase  `json:"phase"`
	Cancel   domain.Cancel `json:"cancel"`
	Stage    domain.Stage  `json:"stage"`
	Progress *int          `json:"progress"`
	AssetID  string        `json:"asset_id,omitempty"`
	Error    *wire.Error   `json:"error,omitempty"`
}

func payloadText(e domain.Event) string {
	p := payload{Status: e.Status, Phase: e.Phase, Cancel: e.Cancel, Stage: e.Stage, Progress: e.Progress, AssetID: wire.AssetID(e.AssetID)}
	if e.Error != nil {
		p.Error = &wire.Error{Code: e.Error.Code, Retryable: e.Error.Retryable, TraceID: wire.TraceID(e.Error.TraceID)}
	}
	return mustJSON(p)
}

// openMessage is a bus message without event_id and occurred_at: the outer fields
// hide those of the message and are never set.
type openMessage struct {
	wire.Message
	EventID    *int64  `json:"event_id,omitempty"`
	OccurredAt *string `json:"occurred_at,omitempty"`
}

// messageText is the bus message without its event_id, its occurred_at, which
// only the locked stream can give, and its closing brace: the statement adds them.
func messageText(e domain.Event) string {
	return strings.TrimSuffix(mustJSON(openMessage{Message: wire.MessageOf(ports.StoredEvent{Event: e})}), "}")
}

func mustJSON(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings, numbers and booleans always encode
	}
	return string(data)
}

func eventOf(r dbgen.TaskEvent) (ports.StoredEvent, error) {
	var p payload
	if err := json.Unmarshal(r.PublicPayload, &p); err != nil {
		return ports.StoredEvent{}, fmt.Errorf("stored event: %w", err)
	}
	e := ports.StoredEvent{EventID: r.EventID, CreatedAt: timeOf(r.CreatedAt), Event: domain.Event{
		TenantID: domain.TenantID{ID: idOf(r.TenantID)}, ProjectID: domain.ProjectID{ID: idOf(r.ProjectID)},
		UserID: domain.UserID{ID: idOf(r.UserID)}, TaskID: domain.TaskID{ID: idOf(r.TaskID)},
		AttemptID: domain.AttemptID{ID: idOf(r.AttemptID)}, Version: r.TaskVersion, Type: r.EventType,
		Status: p.Status, Phase: p.Phase, Cancel: p.Cancel, Stage: p.Stage, Progress: p.Progress,
		Source: domain.Source(r.Source), TraceID: domain.TraceID{ID: idOf(r.TraceID)},
	}}
	if p.AssetID != "" {
		id, err := wire.ParseID(wire.PrefixAsset, p.AssetID)
		if err != nil {
			return ports.StoredEvent{}, fmt.Errorf("stored event: %w", err)
		}
		e.AssetID = domain.AssetID{ID: id}
	}
	if p.Error != nil {
		e.Error = &domain.PublicError{Code: p.Error.Code, Retryable: p.Error.Retryable}
		if p.Error.TraceID != "" {
			id, err := wire.ParseID(wire.PrefixTrace, p.Error.TraceID)
			if err != nil {
				return ports.StoredEvent{}, fmt.Errorf("stored event: %w", err)
			}
			e.Error.TraceID = domain.TraceID{ID: id}
		}
	}
	return e, nil
}

func eventsOf(rows []dbgen.TaskEvent) ([]ports.StoredEvent, error) {
	events := make([]ports.StoredEvent, len(rows))
	for i, r := range rows {
		e, err := eventOf(r)
		if err != nil {
			return nil, err
		}
		events[i] = e
	}
	return events, nil
}

func outboxRowOf(id int64, shard int16, message []byte, tries int32) (ports.OutboxRow, error) {
	event, err := wire.ParseMessage(message)
	if err != nil {
		return ports.OutboxRow{}, fmt.Errorf("outbox row %d: %w", id, err)
	}
	return ports.OutboxRow{ID: id, Shard: int(shard), Event: event, Tries: int(tries)}, nil
}
