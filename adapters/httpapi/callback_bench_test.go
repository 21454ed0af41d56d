package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// BenchmarkCallback measures what the HTTP surface adds to a delivery: the
// delivery is a repetition, so the store has next to nothing to do.
func BenchmarkCallback(b *testing.B) {
	f := newFixture(&testing.T{})
	q := f.delivery("evt", `{"status":"succeeded","padding":"`+strings.Repeat("x", 500)+`"}`)
	b.ReportAllocs()
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, q.path, strings.NewReader(q.body))
		r.Header.Set("Content-Type", "application/json")
		for name, value := range q.header {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		f.handler.ServeHTTP(w, r)
		if w.Code != http.StatusNoContent {
			b.Fatal(w.Code, w.Body)
		}
	}
}
