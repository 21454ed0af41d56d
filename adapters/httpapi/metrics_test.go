package httpapi

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aivedio/aivedio/app"
)

// TestMetricKinds: a counter without labels shows its zero; a gauge shows nothing
// before somebody has measured, then its newest value.
func TestMetricKinds(t *testing.T) {
	t.Parallel()
	m := NewMetrics()
	counter := &app.Metric{Name: "aivedio_test_total", Help: "A counter."}
	gauge := &app.Metric{Name: "aivedio_test_level", Help: "A gauge.", Labels: []string{"part"}, Gauge: true}
	m.add(counter)
	m.add(gauge)
	page := func() string {
		w := httptest.NewRecorder()
		m.handler().ServeHTTP(w, httptest.NewRequest("GET", "/metrics", nil))
		return w.Body.String()
	}
	if got := page(); !strings.Contains(got, "\naivedio_test_total 0\n") || strings.Contains(got, "aivedio_test_level") {
		t.Errorf("before the first figure:\n%s", got)
	}
	m.Add(counter, 2)
	m.Set(gauge, 7, "inbox")
	m.Set(gauge, 3, "inbox")
	if got := page(); !strings.Contains(got, "\naivedio_test_total 2\n") || !strings.Contains(got, "\naivedio_test_level{part=\"inbox\"} 3\n") {
		t.Errorf("after it:\n%s", got)
	}
}
