package wire

import (
	"encoding/json"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Task is the public task of the contract. Absent values are null, never a
// missing key.
type Task struct {
	ID           string          `json:"id"`
	ProjectID    string          `json:"project_id"`
	Status       domain.Status   `json:"status"`
	Phase        domain.Phase    `json:"phase"`
	Cancel       domain.Cancel   `json:"cancel"`
	UnknownSince *string         `json:"unknown_since"`
	Stage        domain.Stage    `json:"stage"`
	Progress     *int            `json:"progress"`
	TaskVersion  int64           `json:"task_version"`
	LastEventID  int64           `json:"last_event_id"`
	Attempt      Attempt         `json:"attempt"`
	AssetID      *string         `json:"asset_id"`
	Error        *Error          `json:"error"`
	Metadata     json.RawMessage `json:"metadata"`
	CreatedAt    string          `json:"created_at"`
	UpdatedAt    string          `json:"updated_at"`
	TerminalAt   *string         `json:"terminal_at"`
}

// Attempt is the public part of the current attempt.
type Attempt struct {
	No       int                  `json:"no"`
	Provider string               `json:"provider"`
	Model    string               `json:"model"`
	Status   domain.AttemptStatus `json:"status"`
}

// Error is the public part of a failure.
type Error struct {
	Code      domain.ErrorClass `json:"code"`
	Retryable bool              `json:"retryable"`
	TraceID   string            `json:"trace_id"`
}

// TaskOf is the public form of a task.
func TaskOf(v ports.TaskView) Task {
	t := v.Task
	metadata := json.RawMessage(v.Metadata)
	if len(metadata) == 0 {
		metadata = json.RawMessage("null")
	}
	return Task{
		ID: TaskID(t.ID), ProjectID: ProjectID(t.ProjectID),
		Status: t.Status(), Phase: t.Phase, Cancel: t.Cancel, UnknownSince: formatTimePtr(t.UnknownSince),
		Stage: t.Stage, Progress: t.Progress, TaskVersion: t.Version, LastEventID: t.LastEventID,
		Attempt:  Attempt{No: v.Attempt.No, Provider: v.Attempt.Provider, Model: v.Attempt.Model, Status: v.Attempt.Status},
		AssetID:  stringPtr(AssetID(t.AssetID)),
		Error:    errorOf(t.Error),
		Metadata: metadata, CreatedAt: FormatTime(t.CreatedAt), UpdatedAt: FormatTime(t.UpdatedAt),
		TerminalAt: formatTimePtr(t.TerminalAt),
	}
}

func errorOf(e *domain.PublicError) *Error {
	if e == nil {
		return nil
	}
	return &Error{Code: e.Code, Retryable: e.Retryable, TraceID: TraceID(e.TraceID)}
}
