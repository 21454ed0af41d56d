package simulator

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

const (
	testSecret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	testHook   = "https://client.example/hook/t1"
)

// box is a simulator in a bubble of fake time whose webhooks end in a slice.
type box struct {
	t   *testing.T
	sim *Simulator

	mu     sync.Mutex
	got    []delivery
	answer func(n int, d delivery) int // status for the n-th attempt; nil is 204
}

// delivery is one attempt as the client saw it.
type delivery struct {
	url, id, stamp, signature string
	body                      []byte
	at                        time.Time
}

func (d delivery) authentic() bool {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(testSecret, "whsec_"))
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(d.id + "." + d.stamp + "." + string(d.body)))
	return d.signature == "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// word is the status in the body, or "?" when it is no JSON.
func (d delivery) word() string {
	var in struct{ Status, Type string }
	if json.Unmarshal(d.body, &in) != nil {
		return "?"
	}
	return in.Status + in.Type
}

// inBox runs f in a bubble with a running simulator: 1 s queue, 4 s run, no
// jitter, webhooks answered with 204 unless the box says otherwise.
func inBox(t *testing.T, faults Faults, f func(t *testing.T, b *box)) {
	t.Helper()
	inBoxOf(t, Config{Faults: faults}, f)
}

func inBoxOf(t *testing.T, cfg Config, f func(t *testing.T, b *box)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &box{t: t}
		cfg.WebhookSecret, cfg.Client = testSecret, &http.Client{Transport: b}
		if cfg.Seed == 0 {
			cfg.Seed = 7
		}
		if cfg.Jitter == 0 {
			cfg.Jitter = -1
		}
		if cfg.OpenAIWebhookURL == "" {
			cfg.OpenAIWebhookURL = "https://client.example/hook/a/main"
		}
		b.sim = New(cfg)
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- b.sim.Run(ctx) }()
		synctest.Wait()
		f(t, b)
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// RoundTrip is the client's callback endpoint.
func (b *box) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	d := delivery{
		url: r.URL.String(), id: r.Header.Get("webhook-id"), stamp: r.Header.Get("webhook-timestamp"),
		signature: r.Header.Get("webhook-signature"), body: body, at: time.Now(),
	}
	b.mu.Lock()
	b.got = append(b.got, d)
	status := http.StatusNoContent
	if b.answer != nil {
		status = b.answer(len(b.got)-1, d)
	}
	b.mu.Unlock()
	if status == 0 {
		return nil, errors.New("connection refused")
	}
	return &http.Response{StatusCode: status, Body: http.NoBody, Header: http.Header{}, Request: r}, nil
}

func (b *box) deliveries() []delivery {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]delivery(nil), b.got...)
}

// words are the statuses in order of arrival.
func (b *box) words() []string {
	out := []string{}
	for _, d := range b.deliveries() {
		out = append(out, d.word())
	}
	return out
}

// pass lets fake time go by.
func (b *box) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// reply is an answer of the API. cut means that the connection was closed.
type reply struct {
	status int
	header http.Header
	body   []byte
	cut    bool
}

func (r reply) json(t *testing.T) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal(r.body, &out); err != nil {
		t.Fatalf("answer %d is no JSON: %v: %.200q", r.status, err, r.body)
	}
	return out
}

func (b *box) call(method, path, body string) reply {
	req := httptest.NewRequestWithContext(b.t.Context(), method, path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	return b.do(req)
}

func (b *box) do(req *http.Request) (out reply) {
	rec := httptest.NewRecorder()
	defer func() {
		if p := recover(); p != nil {
			if p != http.ErrAbortHandler {
				panic(p)
			}
			out.cut = true
		}
	}()
	b.sim.ServeHTTP(rec, req)
	return reply{status: rec.Code, header: rec.Result().Header, body: bytes.Clone(rec.Body.Bytes())}
}

// order makes a Replicate create with all events and the given sim object.
func predictionBody(sim string) string {
	return `{"model":"sim/video","input":{"prompt":"a red kite","sim":` + sim + `},` +
		`"webhook":"` + testHook + `","webhook_events_filter":["start","logs","completed"]}`
}

// predict creates a Replicate job and returns its id.
func (b *box) predict(sim string) string {
	b.t.Helper()
	return b.made(b.call("POST", "/v1/predictions", predictionBody(sim)), http.StatusCreated)
}

// film creates an OpenAI job and returns its id.
func (b *box) film(sim string) string {
	b.t.Helper()
	return b.made(b.call("POST", "/v1/videos", `{"prompt":"a red kite","sim":`+sim+`}`), http.StatusOK)
}

func (b *box) made(r reply, status int) string {
	b.t.Helper()
	if r.status != status {
		b.t.Fatalf("create: %d %s", r.status, r.body)
	}
	id, _ := r.json(b.t)["id"].(string)
	return id
}

// status is the word a query answers.
func (b *box) status(id string) string {
	b.t.Helper()
	path := "/v1/predictions/" + id
	if strings.HasPrefix(id, "video_") {
		path = "/v1/videos/" + id
	}
	r := b.call("GET", path, "")
	if r.status != http.StatusOK {
		b.t.Fatalf("query: %d %s", r.status, r.body)
	}
	word, _ := r.json(b.t)["status"].(string)
	return word
}

// mustTake accepts an order. Needs mu.
func (s *Simulator) mustTake(tb testing.TB, o *order, base string) *job {
	tb.Helper()
	j, err := s.take(o, base)
	if err != nil {
		tb.Fatal(err)
	}
	return j
}
