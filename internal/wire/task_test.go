package wire

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func sampleTask() ports.TaskView {
	at := time.Date(2026, 3, 1, 12, 30, 15, 250_999_999, time.FixedZone("", 3600))
	return ports.TaskView{
		Task: domain.Task{
			ID: domain.TaskID{ID: id(4)}, ProjectID: domain.ProjectID{ID: id(2)}, TenantID: domain.TenantID{ID: id(1)},
			UserID: domain.UserID{ID: id(3)}, Phase: domain.PhaseQueued, Cancel: domain.CancelNone,
			Stage: domain.StageSubmitting, Version: 1, LastEventID: 7, CurrentAttemptID: domain.AttemptID{ID: id(5)},
			AttemptCount: 1, CreatedAt: at, UpdatedAt: at,
		},
		Attempt: domain.Attempt{No: 1, Provider: "replicate", Model: "sim/video", Status: domain.AttemptCreated, ProviderTaskID: "secret", BaseURL: "https://internal"},
	}
}

// TestTaskGolden fixes the whole public task: keys, order and nulls.
func TestTaskGolden(t *testing.T) {
	t.Parallel()
	queued := sampleTask()
	failed := sampleTask()
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	failed.Task.Phase, failed.Task.Cancel, failed.Task.Stage = domain.PhaseFailed, domain.CancelRefused, domain.StageTranscoding
	failed.Task.Progress, failed.Task.TerminalAt, failed.Task.AssetID = ptr(100), &at, domain.AssetID{ID: id(6)}
	failed.Task.Error = &domain.PublicError{Code: domain.ClassMedia, Retryable: true, TraceID: domain.TraceID{ID: id(7)}}
	failed.Metadata = []byte(`{"shot":3}`)
	unknown := sampleTask()
	unknown.Task.Phase, unknown.Task.UnknownSince = domain.PhaseRunning, &at
	tests := []struct {
		name string
		view ports.TaskView
		want string
	}{
		{"queued", queued, `{"id":"tsk_01hwy5x2g0e008000000000004","project_id":"prj_01hwy5x2g0e008000000000002","status":"queued","phase":"queued","cancel":"none","unknown_since":null,"stage":"submitting","progress":null,"task_version":1,"last_event_id":7,"attempt":{"no":1,"provider":"replicate","model":"sim/video","status":"created"},"asset_id":null,"error":null,"metadata":null,"created_at":"2026-03-01T11:30:15.250Z","updated_at":"2026-03-01T11:30:15.250Z","terminal_at":null}`},
		{"failed", failed, `{"id":"tsk_01hwy5x2g0e008000000000004","project_id":"prj_01hwy5x2g0e008000000000002","status":"failed","phase":"failed","cancel":"refused","unknown_since":null,"stage":"transcoding","progress":100,"task_version":1,"last_event_id":7,"attempt":{"no":1,"provider":"replicate","model":"sim/video","status":"created"},"asset_id":"ast_01hwy5x2g0e008000000000006","error":{"code":"media_error","retryable":true,"trace_id":"trc_01hwy5x2g0e008000000000007"},"metadata":{"shot":3},"created_at":"2026-03-01T11:30:15.250Z","updated_at":"2026-03-01T11:30:15.250Z","terminal_at":"2026-03-01T12:00:00.000Z"}`},
		{"unknown", unknown, `{"id":"tsk_01hwy5x2g0e008000000000004","project_id":"prj_01hwy5x2g0e008000000000002","status":"provider_status_unknown","phase":"running","cancel":"none","unknown_since":"2026-03-01T12:00:00.000Z","stage":"submitting","progress":null,"task_version":1,"last_event_id":7,"attempt":{"no":1,"provider":"replicate","model":"sim/video","status":"created"},"asset_id":null,"error":null,"metadata":null,"created_at":"2026-03-01T11:30:15.250Z","updated_at":"2026-03-01T11:30:15.250Z","terminal_at":null}`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			data, err := json.Marshal(TaskOf(test.view))
			if err != nil {
				t.Fatal(err)
			}
			golden(t, string(data), test.want)
		})
	}
}

func TestFormatTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 31, 23, 59, 59, 999_999_999, time.FixedZone("", -7200))
	if got, want := FormatTime(at), "2027-01-01T01:59:59.999Z"; got != want {
		t.Errorf("got %s, want %s: milliseconds are cut, not rounded", got, want)
	}
	parsed, err := time.Parse(time.RFC3339, FormatTime(at))
	if err != nil || !parsed.Equal(at.Truncate(time.Millisecond)) {
		t.Errorf("read as %v, %v", parsed, err)
	}
	if formatTimePtr(nil) != nil {
		t.Error("no time has a text")
	}
}
