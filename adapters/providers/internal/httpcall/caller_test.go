package httpcall

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func create(url string) Request {
	return Request{Method: http.MethodPost, URL: url, Bearer: "key", Body: []byte(`{"a":1}`), Create: true}
}

func TestDo(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method != http.MethodPost || r.Header.Get("Authorization") != "Bearer key" || r.Header.Get("Content-Type") != "application/json" || string(body) != `{"a":1}` {
			t.Errorf("%s %v %q", r.Method, r.Header, body)
		}
		w.Header().Set("X", "y")
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, "{}")
	})
	now := time.Unix(1790000000, 0)
	answer, failure := New(nil, func() time.Time { return now }).Do(t.Context(), create(s.URL))
	if failure != nil || answer.Status != 201 || string(answer.Body) != "{}" || answer.Header.Get("X") != "y" || !answer.ReceivedAt.Equal(now) {
		t.Errorf("%+v, %v", answer, failure)
	}
}

func TestClassify(t *testing.T) {
	t.Parallel()
	type want struct {
		class   ports.ProviderClass
		notSent bool
	}
	cases := map[int][2]want{ // a query, a create
		200: {}, 201: {}, 202: {}, 204: {},
		301: {{ports.ClassTransport, false}, {ports.ClassTransport, false}}, 307: {{ports.ClassTransport, false}, {ports.ClassTransport, false}},
		400: {{ports.ClassRejected, false}, {ports.ClassRejected, false}}, 401: {{ports.ClassAuth, false}, {ports.ClassAuth, false}},
		402: {{ports.ClassRejected, false}, {ports.ClassRejected, false}}, 403: {{ports.ClassAuth, false}, {ports.ClassAuth, false}},
		404: {{ports.ClassNotFound, false}, {ports.ClassRejected, false}}, 408: {{ports.ClassTransport, false}, {ports.ClassTransport, false}},
		409: {{ports.ClassRejected, false}, {ports.ClassRejected, false}}, 410: {{ports.ClassNotFound, false}, {ports.ClassRejected, false}},
		422: {{ports.ClassRejected, false}, {ports.ClassRejected, false}}, 425: {{ports.ClassTransport, false}, {ports.ClassTransport, false}},
		429: {{ports.ClassThrottled, false}, {ports.ClassThrottled, true}}, 500: {{ports.ClassTransport, false}, {ports.ClassTransport, false}},
		502: {{ports.ClassTransport, false}, {ports.ClassTransport, false}}, 503: {{ports.ClassTransport, false}, {ports.ClassTransport, true}},
		504: {{ports.ClassTransport, false}, {ports.ClassTransport, false}}, 522: {{ports.ClassTransport, false}, {ports.ClassTransport, false}},
	}
	for status, wants := range cases {
		for i, w := range wants {
			e := Classify(status, http.Header{"Retry-After": {"9"}}, time.Unix(0, 0), i == 1)
			if e == nil {
				e = &ports.ProviderError{}
			} else if e.Code != "http_"+strconv.Itoa(status) || e.RetryAfter != 9*time.Second || (e.Class == ports.ClassRejected) != (e.ErrorClass != "") {
				t.Errorf("%d: %+v", status, e)
			}
			if e.Class != w.class || e.NotSent != w.notSent {
				t.Errorf("%d, create %v: %+v", status, i == 1, e)
			}
		}
	}
}

// Only a request that no vendor can have read counts as not sent.
func TestNotSent(t *testing.T) {
	t.Parallel()
	closed := httptest.NewServer(nil)
	closed.Close()
	plain := serve(t, func(http.ResponseWriter, *http.Request) {})
	secure := httptest.NewTLSServer(nil)
	t.Cleanup(secure.Close)
	cut := serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) })
	half := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "100")
		_, _ = io.WriteString(w, `{"id":`)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	})
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for name, c := range map[string]struct {
		ctx     context.Context
		url     string
		notSent bool
	}{
		"refused": {t.Context(), closed.URL, true}, "no such name": {t.Context(), "http://nowhere.invalid", true},
		"no TLS there": {t.Context(), strings.Replace(plain.URL, "http:", "https:", 1), true}, "unknown authority": {t.Context(), secure.URL, true},
		"bad URL": {t.Context(), "http://[", true}, "no host": {t.Context(), "/videos", true}, "ended before": {ended, plain.URL, true},
		"cut without an answer": {t.Context(), cut.URL, false}, "cut within the answer": {t.Context(), half.URL, false},
	} {
		_, failure := New(nil, nil).Do(c.ctx, create(c.url))
		if failure == nil || failure.Class != ports.ClassTransport || failure.NotSent != c.notSent {
			t.Errorf("%s: %+v", name, failure)
		} else if strings.Contains(failure.Error(), "://") {
			t.Errorf("%s: the error has a URL: %v", name, failure)
		}
	}
}

func TestTimeoutAfterSendingIsUnknown(t *testing.T) {
	t.Parallel()
	received, release := make(chan struct{}), make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { close(received); <-release })
	defer close(release)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-received; cancel() }()
	_, failure := New(nil, nil).Do(ctx, create(s.URL))
	if failure == nil || failure.NotSent || !errors.Is(failure, context.Canceled) {
		t.Errorf("%+v", failure)
	}
}

// deaf is a transport that tells the trace nothing.
type deaf struct{}

func (deaf) RoundTrip(*http.Request) (*http.Response, error) { return nil, io.ErrUnexpectedEOF }

func TestSilentTransportProvesNothing(t *testing.T) {
	t.Parallel()
	_, failure := New(&http.Client{Transport: deaf{}}, nil).Do(t.Context(), create("http://x.example"))
	if failure == nil || failure.NotSent {
		t.Errorf("%+v", failure)
	}
}

func TestCreateIsSentOnce(t *testing.T) {
	t.Parallel()
	calls := make(chan string, 10)
	var s *httptest.Server
	s = serve(t, func(w http.ResponseWriter, r *http.Request) {
		calls <- r.URL.Path
		if r.URL.Path == "/again" {
			http.Redirect(w, r, s.URL+"/other", http.StatusTemporaryRedirect)
			return
		}
		panic(http.ErrAbortHandler)
	})
	c := New(nil, nil)
	for range 2 { // the second time over a kept connection, if there is one
		if _, failure := c.Do(t.Context(), create(s.URL+"/again")); failure == nil || failure.Code != "http_307" || failure.NotSent {
			t.Errorf("redirect: %+v", failure)
		}
		if _, failure := c.Do(t.Context(), create(s.URL+"/cut")); failure == nil || failure.NotSent {
			t.Errorf("cut: %+v", failure)
		}
	}
	if len(calls) != 4 {
		t.Errorf("%d calls reached the vendor, want 4", len(calls))
	}
}

func TestLargeAnswer(t *testing.T) {
	t.Parallel()
	size := make(chan int, 1)
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, <-size)) })
	size <- MaxAnswer
	if _, failure := New(nil, nil).Do(t.Context(), create(s.URL)); failure != nil {
		t.Errorf("just fits: %v", failure)
	}
	size <- MaxAnswer + 1
	if _, failure := New(nil, nil).Do(t.Context(), create(s.URL)); failure == nil || failure.Class != ports.ClassMalformed || failure.NotSent {
		t.Errorf("too large: %+v", failure)
	}
}

func TestClientIsCopied(t *testing.T) {
	t.Parallel()
	given := &http.Client{Timeout: time.Minute}
	c := New(given, nil)
	if given.CheckRedirect != nil || c.client.Timeout != time.Minute || New(nil, nil).client.Timeout != DefaultTimeout {
		t.Error("the client was changed, or its time-out lost")
	}
	var dialError *net.OpError
	_, failure := New(nil, nil).Do(t.Context(), create("http://127.0.0.1:1"))
	if !errors.As(failure, &dialError) {
		t.Errorf("the cause is lost: %v", failure)
	}
}
