package wire

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// FuzzParseMessage checks that whatever is accepted survives being written and
// read again.
func FuzzParseMessage(f *testing.F) {
	for _, e := range sampleEvents() {
		data, err := json.Marshal(MessageOf(e))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte(`{}`))
	f.Add([]byte(`{"event_id":1,"aggregate_version":1,"occurred_at":"9999-12-31T23:59:59-23:00"}`))
	f.Add([]byte(`{"event_id":-1}`))
	f.Add([]byte(`[`))
	f.Fuzz(func(t *testing.T, data []byte) {
		first, err := ParseMessage(data)
		if err != nil {
			return
		}
		again, err := json.Marshal(MessageOf(first))
		if err != nil {
			t.Fatalf("cannot be written: %v", err)
		}
		second, err := ParseMessage(again)
		if err != nil {
			t.Fatalf("cannot be read again: %v\n%s", err, again)
		}
		if diff := cmp.Diff(first, second); diff != "" {
			t.Fatalf("changed (-first +second):\n%s", diff)
		}
	})
}
