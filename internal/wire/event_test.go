package wire

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func id(b byte) domain.ID {
	return domain.ID{0x01, 0x8f, 0x3c, 0x5e, 0x8a, 0x00, 0x70, 0, 0x80, 0, 0, 0, 0, 0, 0, b}
}

func ptr[T any](v T) *T { return &v }

// sampleEvents are an event with every field and one with the fewest.
func sampleEvents() []ports.StoredEvent {
	at := time.Date(2026, 3, 1, 12, 30, 15, 250_000_000, time.UTC)
	full := domain.Event{
		TenantID: domain.TenantID{ID: id(1)}, ProjectID: domain.ProjectID{ID: id(2)}, UserID: domain.UserID{ID: id(3)},
		TaskID: domain.TaskID{ID: id(4)}, AttemptID: domain.AttemptID{ID: id(5)}, Version: 18,
		Type: domain.EventTaskStatusChanged, Status: domain.Status(domain.PhaseFailed), Phase: domain.PhaseFailed,
		Cancel: domain.CancelRefused, Stage: domain.StageTranscoding, Progress: ptr(82),
		AssetID: domain.AssetID{ID: id(6)},
		Error:   &domain.PublicError{Code: domain.ClassMedia, Retryable: true, TraceID: domain.TraceID{ID: id(7)}},
		Source:  domain.SourceMedia, TraceID: domain.TraceID{ID: id(7)},
	}
	least := domain.Event{
		TenantID: domain.TenantID{ID: id(1)}, ProjectID: domain.ProjectID{ID: id(2)}, TaskID: domain.TaskID{ID: id(4)},
		Version: 1, Type: domain.EventTaskStatusChanged, Status: domain.Status(domain.PhaseQueued),
		Phase: domain.PhaseQueued, Cancel: domain.CancelNone, Stage: domain.StageSubmitting, Source: domain.SourceUser,
	}
	return []ports.StoredEvent{
		{Event: full, EventID: 1234, CreatedAt: at},
		{Event: least, EventID: 1, CreatedAt: at.Add(time.Millisecond)},
	}
}

func TestMessageRoundTrip(t *testing.T) {
	t.Parallel()
	for _, want := range sampleEvents() {
		data, err := json.Marshal(MessageOf(want))
		if err != nil {
			t.Fatal(err)
		}
		got, err := ParseMessage(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("changed (-sent +read):\n%s", diff)
		}
		if want.Cursor() != got.Cursor() {
			t.Error("the cursor changed on the way")
		}
	}
}

func TestMessageGolden(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(MessageOf(sampleEvents()[0]))
	if err != nil {
		t.Fatal(err)
	}
	golden(t, string(data), `{"event_id":1234,"event_type":"task.status.changed","aggregate_id":"tsk_01hwy5x2g0e008000000000004","aggregate_version":18,"tenant_id":"ten_01hwy5x2g0e008000000000001","project_id":"prj_01hwy5x2g0e008000000000002","user_id":"usr_01hwy5x2g0e008000000000003","attempt_id":"att_01hwy5x2g0e008000000000005","status":"failed","phase":"failed","cancel":"refused","stage":"transcoding","progress":82,"asset_id":"ast_01hwy5x2g0e008000000000006","error":{"code":"media_error","retryable":true,"trace_id":"trc_01hwy5x2g0e008000000000007"},"source":"media","occurred_at":"2026-03-01T12:30:15.250Z","trace_id":"trc_01hwy5x2g0e008000000000007"}`)
}

func TestEventGolden(t *testing.T) {
	t.Parallel()
	wants := []string{
		`{"event_id":1234,"task_id":"tsk_01hwy5x2g0e008000000000004","task_version":18,"status":"failed","stage":"transcoding","progress":82,"asset_id":"ast_01hwy5x2g0e008000000000006","error":{"code":"media_error","retryable":true,"trace_id":"trc_01hwy5x2g0e008000000000007"},"occurred_at":"2026-03-01T12:30:15.250Z"}`,
		`{"event_id":1,"task_id":"tsk_01hwy5x2g0e008000000000004","task_version":1,"status":"queued","stage":"submitting","progress":null,"asset_id":null,"error":null,"occurred_at":"2026-03-01T12:30:15.251Z"}`,
	}
	for i, e := range sampleEvents() {
		data, err := json.Marshal(EventOf(e))
		if err != nil {
			t.Fatal(err)
		}
		golden(t, string(data), wants[i])
	}
}

func golden(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("the public shape changed:\n got %s\nwant %s", got, want)
	}
}

func TestParseMessageRefuses(t *testing.T) {
	t.Parallel()
	data, err := json.Marshal(MessageOf(sampleEvents()[0]))
	if err != nil {
		t.Fatal(err)
	}
	good := string(data)
	tests := []struct{ name, old, new, says string }{
		{"garbage", good, "\x00", "invalid character"},
		{"event number", `"event_id":1234`, `"event_id":0`, "count from 1"},
		{"version", `"aggregate_version":18`, `"aggregate_version":-1`, "count from 1"},
		{"time", "2026-03-01T12:30:15.250Z", "yesterday", "occurred_at"},
		{"far future", "2026-03-01T12:30:15.250Z", "9999-12-31T23:59:59-01:00", "year 10000"},
		{"project", `"project_id":"prj_`, `"project_id":"tsk_`, "form prj_"},
		{"no project", "prj_01hwy5x2g0e008000000000002", "", "form prj_"},
		{"zero task", "tsk_01hwy5x2g0e008000000000004", "tsk_00000000000000000000000000", "no one's"},
		{"asset", "ast_01hwy5x2g0e008000000000006", "ast_x", "form ast_"},
		{"wrong type", `"progress":82`, `"progress":"82"`, "progress"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			_, err := ParseMessage([]byte(strings.Replace(good, test.old, test.new, 1)))
			if err == nil || !strings.Contains(err.Error(), test.says) {
				t.Errorf("got %v, want %q in it", err, test.says)
			}
		})
	}
	// A newer process may send more, and finer times.
	more := strings.Replace(good, `{"event_id"`, `{"new_field":[1],"event_id"`, 1)
	more = strings.Replace(more, "15.250Z", "15.250999+00:00", 1)
	got, err := ParseMessage([]byte(more))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(sampleEvents()[0], got); diff != "" {
		t.Error(diff)
	}
}
