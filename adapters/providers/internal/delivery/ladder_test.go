package delivery

import (
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func TestIdentity(t *testing.T) {
	t.Parallel()
	at := time.Unix(1790000000, 5)
	const empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
	for want, l := range map[string]Ladder{
		"msg:m1":          {SignedID: "m1", EventID: "e1", TaskID: "t1"},
		"evt:e1":          {EventID: "e1", TaskID: "t1"},
		"sha256:" + empty: {Type: "done"},
		"job:t1|done|2026-09-21T14:13:20.000000005Z|" + empty: {TaskID: "t1", Type: "done", Time: &at},
		"job:t1|||" + empty: {TaskID: "t1"},
	} {
		if got := l.Identity(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
	seen := map[string]bool{}
	for _, l := range []Ladder{
		{Body: []byte("a")}, {Body: []byte("b")}, {TaskID: "t", Body: []byte("a")}, {TaskID: "t", Type: "x", Body: []byte("a")},
		{TaskID: "t", Type: "x", Time: &at, Body: []byte("a")}, {SignedID: "t"}, {EventID: "t"},
	} {
		if id := l.Identity(); seen[id] {
			t.Errorf("%q twice", id)
		} else {
			seen[id] = true
		}
	}
}

func TestObservation(t *testing.T) {
	t.Parallel()
	now := time.Unix(1790000000, 0)
	obs := Observation("v", ports.InboxRow{
		ProviderEventID: "e", ProviderTaskID: "t", ClientRequestID: "c", DedupKey: "d", Trust: domain.TrustAuthentic,
		ReceivedAt: now, ProviderOccurredAt: &now, PayloadHash: []byte{0xab}, TraceID: domain.TraceID{ID: domain.ID{1}},
	})
	if obs.Provider != "v" || obs.Source != domain.SourceWebhook || obs.Trust != domain.TrustAuthentic || obs.PayloadHash != "ab" ||
		obs.DedupKey != "d" || obs.ReceivedAt != now || obs.TraceID.IsZero() || obs.Status != domain.ObservedNone {
		t.Errorf("%+v", obs)
	}
}

func TestValidJobID(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]bool{
		"pf1": true, "1234567890123456789": true, "a/b": true, "video_1-x.y": true,
		"": false, ".": false, "..": false, "a b": false, "a\n": false, "ü": false, "\x7f": false, strings.Repeat("a", 257): false,
	} {
		if got := ValidJobID(id); got != want {
			t.Errorf("%.20q: %v", id, got)
		}
	}
}
