package stream

import (
	"net/http"
	"net/url"
	"testing"
	"time"
)

func TestWantsJSON(t *testing.T) {
	t.Parallel()
	for accept, want := range map[string]bool{
		"": false, "*/*": false, "text/event-stream": false, "application/json": true,
		"application/json, text/event-stream": false, "application/json, text/event-stream;q=0.5": true,
		"text/event-stream, application/json;q=0.9": false, "text/html, application/json;q=0.5": true, ";;;": false,
	} {
		if got := wantsJSON(http.Header{"Accept": {accept}}); got != want {
			t.Errorf("Accept %q: long-poll %v, want %v", accept, got, want)
		}
	}
}

// FuzzParseQuery feeds the header and the URL with anything: no panic, and what
// is accepted is within the bounds.
func FuzzParseQuery(f *testing.F) {
	f.Add("", "after=0&wait=25s&limit=10")
	f.Add("12.abc", "after=1")
	f.Add("-1", "cursor=%00")
	f.Add("\x00", "wait=1e9h&limit=99999999999999999999")
	f.Add("١٢", "wait=9223372036s")
	f.Fuzz(func(t *testing.T, header, raw string) {
		values, err := url.ParseQuery(raw)
		if err != nil {
			return
		}
		q, err := parseQuery(http.Header{"Last-Event-Id": {header}}, values, time.Minute)
		if err != nil {
			return
		}
		if q.wait < 0 || q.wait > time.Minute || q.limit < 1 || q.limit > maxLimit {
			t.Errorf("wait %s, limit %d out of bounds", q.wait, q.limit)
		}
		if q.kind == cursorGiven && (q.cursor.EventID < 0 || len(q.cursor.Tag) > 8) {
			t.Errorf("cursor %+v out of bounds", q.cursor)
		}
	})
}
