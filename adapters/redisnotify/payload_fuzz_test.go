package redisnotify

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/ports"
)

func FuzzDecode(f *testing.F) {
	good, err := encode([]ports.StoredEvent{event(project(1), 1), event(project(2), 7)})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`[]`))
	f.Add([]byte(`[null,{},{"event_id":1}]`))
	f.Add([]byte(`{"event_id":1}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		events, _ := decode(payload)
		again, err := encode(events)
		if err != nil {
			t.Fatalf("what was read cannot be written: %v", err)
		}
		second, err := decode(again)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v", err)
		}
		if len(events) != len(second) {
			t.Fatalf("%d events became %d", len(events), len(second))
		}
	})
}

func TestDecodeKeepsTheGood(t *testing.T) {
	t.Parallel()
	want := []ports.StoredEvent{event(project(1), 1), event(project(2), 7)}
	payload, err := encode(want)
	if err != nil {
		t.Fatal(err)
	}
	mixed := append([]byte(`[{"event_id":0},`), payload[1:]...)
	got, err := decode(mixed)
	if err == nil {
		t.Error("the unreadable event was not reported")
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
