package wire

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
)

func TestExplanation(t *testing.T) {
	t.Parallel()
	next := time.Date(2026, 12, 1, 15, 40, 0, 0, time.UTC)
	for want, e := range map[string]Explanation{
		"observation": {Kind: domain.InputObservation},
		"observation: provider_error/E123, \"model \\\"x\\\" broke\"":                {Kind: domain.InputObservation, Class: domain.ClassProvider, Code: "E123", Message: `model "x" broke`},
		"media_failed: media_error":                                                  {Kind: domain.InputMediaFailed, Class: domain.ClassMedia},
		"poll_failed: transport/http_503, again at 2026-12-01T15:40:00.000Z":         {Kind: domain.InputPollFailed, Code: "transport/http_503", Next: &next},
		"submit_rejected: provider_error":                                            {Kind: domain.InputSubmitRejected, Class: domain.ClassProvider, Code: "provider_error"},
		"submit_not_sent: again at 2026-12-01T15:40:00.000Z, \"zu schnell, Müller\"": {Kind: domain.InputSubmitNotSent, Message: "zu schnell, Müller", Next: &next},
	} {
		if got := e.Text(); got != want {
			t.Errorf("%+v\n got %s\nwant %s", e, got, want)
		}
	}
}

func TestNextTry(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 12, 1, 15, 40, 0, 0, time.UTC)
	a := domain.Attempt{NextSubmitAt: &at}
	for _, kind := range domain.Kinds() {
		got := NextTry(kind, a)
		switch kind {
		case domain.InputSubmitNotSent, domain.InputSubmitUnknown, domain.InputPollFailed, domain.InputLookupFailed:
			if got == nil || !got.Equal(at) {
				t.Errorf("%s: %v, want the attempt's timer", kind, got)
			}
		default:
			if got != nil {
				t.Errorf("%s is tried again at %v", kind, got)
			}
		}
	}
}

func TestOperationText(t *testing.T) {
	t.Parallel()
	next := time.Date(2026, 12, 1, 15, 40, 0, 0, time.UTC)
	if got := OperationText(3, "download_transport/http_503", next); got != "try 3: download_transport/http_503, again at 2026-12-01T15:40:00.000Z" {
		t.Error(got)
	}
	if got := OperationText(1, "", next); got != "try 1: released, again at 2026-12-01T15:40:00.000Z" {
		t.Error(got)
	}
}
