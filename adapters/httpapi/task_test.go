package httpapi

import (
	"encoding/hex"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSubmitAndGet(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	w := f.do(request{method: http.MethodPost, path: f.tasks(), key: f.key, body: goodSubmit})
	if w.Code != http.StatusCreated {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	made := decoded[taskAnswer](t, w)
	if got, want := w.Header().Get("Location"), f.tasks("/", made.Task.ID); got != want {
		t.Errorf("Location %q, want %q", got, want)
	}
	if made.Task.Status != "queued" || made.Task.TaskVersion != 1 || string(made.Task.Metadata) != `{"shot":7}` || !strings.HasPrefix(made.Cursor, "1.") {
		t.Errorf("answer %s", w.Body)
	}
	got := f.do(request{path: w.Header().Get("Location"), key: f.reader})
	if diff := cmp.Diff(made, decoded[taskAnswer](t, got)); diff != "" || got.Code != http.StatusOK {
		t.Errorf("get %d (-made +got):\n%s", got.Code, diff)
	}
	if trace := got.Header().Get("X-Trace-Id"); !strings.HasPrefix(trace, "trc_") {
		t.Errorf("X-Trace-Id %q", trace)
	}
}

func TestTraceparent(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	trace := func(parent string) string {
		return f.do(request{path: "/healthz", header: map[string]string{"Traceparent": parent}}).Header().Get("X-Trace-Id")
	}
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	id, err := wire.ParseID(wire.PrefixTrace, trace(parent))
	if err != nil || hex.EncodeToString(id[:]) != "0af7651916cd43dd8448eb211c80319c" {
		t.Errorf("trace id %s of the traceparent: %v", id, err)
	}
	for _, bad := range []string{"00-00000000000000000000000000000000-b7ad6b7169203331-01", "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "x", "00-zz-1-1"} {
		if a, b := trace(bad), trace(bad); a == b {
			t.Errorf("%q: the same id %q twice", bad, a)
		}
	}
}

func TestIdempotencyKey(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	send := func(body string) (int, string, string) {
		w := f.do(request{method: http.MethodPost, path: f.tasks(), key: f.key, body: body, header: map[string]string{"Idempotency-Key": "k1"}})
		if w.Code != http.StatusCreated {
			return w.Code, decoded[Problem](t, w).Code, ""
		}
		return w.Code, decoded[taskAnswer](t, w).Task.ID, w.Header().Get("Idempotent-Replayed")
	}
	_, first, replayed := send(goodSubmit)
	_, second, again := send(goodSubmit)
	if first != second || replayed != "" || again != "true" {
		t.Errorf("%q, then %q (replayed %q, %q)", first, second, replayed, again)
	}
	if status, code, _ := send(strings.Replace(goodSubmit, "red", "blue", 1)); status != http.StatusUnprocessableEntity || code != "idempotency_mismatch" {
		t.Errorf("another body: %d %q", status, code)
	}
	f.now = f.now.Add(25 * time.Hour)
	if _, later, _ := send(goodSubmit); later == first {
		t.Error("the key still counts after 24 hours")
	}
}

func TestList(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	var want []string
	for range 3 {
		f.now = f.now.Add(time.Second)
		want = append([]string{f.submitted()}, want...)
	}
	var got []string
	path := f.tasks("?limit=2")
	for path != "" {
		page := decoded[taskPage](t, f.do(request{path: path, key: f.reader}))
		for _, task := range page.Tasks {
			got = append(got, task.ID)
		}
		if !strings.HasPrefix(page.Cursor, "3.") {
			t.Errorf("cursor %q, want the head", page.Cursor)
		}
		path = ""
		if page.Next != nil {
			path = f.tasks("?limit=2&after=", *page.Next)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("tasks, newest first (-want +got):\n%s", diff)
	}
	for _, status := range domain.Statuses() {
		page := decoded[taskPage](t, f.do(request{path: f.tasks("?status=", string(status)), key: f.reader}))
		if n := len(page.Tasks); (status == "queued") != (n == 3) || page.Tasks == nil {
			t.Errorf("%d tasks in %s", n, status)
		}
	}
}

func TestCancelAndRetry(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.submitted()
	refused := f.do(request{method: http.MethodPost, path: f.tasks("/", id, "/retry"), key: f.key})
	wantProblem(t, refused, http.StatusConflict, "not_retryable")

	w := f.do(request{method: http.MethodPost, path: f.tasks("/", id, "/cancel"), key: f.key, body: `{"reason":"wrong prompt"}`})
	got := decoded[taskAnswer](t, w)
	if w.Code != http.StatusAccepted || got.Task.Status != "canceled" || !strings.HasPrefix(got.Cursor, "2.") {
		t.Fatalf("cancel: %d %s", w.Code, w.Body)
	}
	wantProblem(t, f.do(request{method: http.MethodPost, path: f.tasks("/", id, "/cancel"), key: f.key}), http.StatusConflict, "task_terminal")

	w = f.do(request{method: http.MethodPost, path: f.tasks("/", id, "/retry"), key: f.key, body: `{"accept_possible_duplicate":false}`})
	got = decoded[taskAnswer](t, w)
	if w.Code != http.StatusAccepted || got.Task.Status != "queued" || got.Task.Attempt.No != 2 {
		t.Errorf("retry: %d %s", w.Code, w.Body)
	}
}

func TestTimeline(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	id := f.submitted()
	w := f.do(request{path: f.tasks("/", id, "/timeline"), key: f.operator})
	line := decoded[timelineAnswer](t, w)
	if w.Code != http.StatusOK || len(line.Entries) == 0 || line.Counters == nil {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestCreditsRunOut(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	for range 100 {
		f.submitted()
	}
	w := f.do(request{method: http.MethodPost, path: f.tasks(), key: f.key, body: goodSubmit})
	wantProblem(t, w, http.StatusPaymentRequired, "insufficient_credits")
}
