package replicate_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/adapters/providers/replicate"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// tripper answers every request the same and keeps the last one.
type tripper struct {
	status int
	answer string
	url    string
	body   string
}

func (t *tripper) RoundTrip(r *http.Request) (*http.Response, error) {
	t.url = r.Method + " " + r.URL.String()
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		t.body = string(b)
	}
	return &http.Response{StatusCode: t.status, Header: http.Header{}, Body: io.NopCloser(bytes.NewBufferString(t.answer)), Request: r}, nil
}

func submit(t *testing.T, trip *tripper, req ports.SubmitRequest, events []string) error {
	t.Helper()
	p := replicate.New(replicate.Config{Client: &http.Client{Transport: trip}, Events: events})
	_, err := p.Submit(context.Background(), req)
	return err
}

func TestSubmitBody(t *testing.T) {
	t.Parallel()
	seed := int64(1) << 52
	version := strings.Repeat("0a", 32)
	full := ports.TaskInput{
		Prompt: "a kite", ImageURL: "https://x.example/i.png", DurationSeconds: 5, AspectRatio: "16:9", Resolution: "1080p", Seed: &seed,
		Extra: []byte(`{"seed":1,"motion":{"pan":0.5},"image":"theirs"}`),
	}
	const hook = "https://aivedio.test/callbacks/replicate/tok"
	for name, c := range map[string]struct {
		model, url, hook, want string
		input                  ports.TaskInput
		events                 []string
	}{
		"official": {
			"acme/vid-2.1", "POST https://api.replicate.com/v1/models/acme/vid-2.1/predictions", hook,
			`{"input":{"prompt":"a kite","image":"https://x.example/i.png","duration":5,"aspect_ratio":"16:9","resolution":"1080p","seed":4503599627370496,"motion":{"pan":0.5}},
			"webhook":"` + hook + `","webhook_events_filter":["start","output","logs","completed"]}`, full, nil,
		},
		"version": {version, "POST https://api.replicate.com/v1/predictions", hook, `{"input":{"prompt":"p"},"version":"` + version + `","webhook":"` + hook + `","webhook_events_filter":["completed"]}`, ports.TaskInput{Prompt: "p"}, []string{"completed"}},
		"both":    {"acme/vid:" + version, "POST https://api.replicate.com/v1/predictions", "", `{"input":{},"version":"` + version + `"}`, ports.TaskInput{}, nil},
	} {
		trip := &tripper{status: 201, answer: string(prediction("pf1", "starting"))}
		err := submit(t, trip, ports.SubmitRequest{Account: ports.Account{APIKey: "k"}, Attempt: domain.Attempt{Model: c.model}, Input: c.input, CallbackURL: c.hook}, c.events)
		if err != nil || trip.url != c.url {
			t.Errorf("%s: %s, %v", name, trip.url, err)
		}
		var got, want any
		if err := errors.Join(json.Unmarshal([]byte(trip.body), &got), json.Unmarshal([]byte(c.want), &want)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestSubmitRefusesModels(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"", "acme", "acme/vid/x", "acme/", "/vid", "../predictions/x", "acme/../x", "acme/vid?x=1", "acme/vid:latest", strings.Repeat("0", 63), strings.Repeat("G", 64)} {
		trip := &tripper{status: 201}
		err := submit(t, trip, ports.SubmitRequest{Attempt: domain.Attempt{Model: model}}, nil)
		var e *ports.ProviderError
		if !errors.As(err, &e) || e.Class != ports.ClassRejected || e.ErrorClass != string(domain.ClassInvalidInput) || trip.url != "" {
			t.Errorf("%q: %v, %s", model, err, trip.url)
		}
	}
}

// The same update must carry the same order whichever way it came.
func TestSequence(t *testing.T) {
	t.Parallel()
	p := replicate.New(replicate.Config{})
	last := int64(0)
	for _, name := range []string{"starting", "processing", "succeeded"} {
		obs, _, err := p.Decode(ports.InboxRow{Payload: recorded(t, name)})
		if err != nil || obs.ProviderSequence == nil || obs.SequenceKind != domain.SequenceTimestamp || *obs.ProviderSequence <= last {
			t.Fatalf("%s: %+v, %v", name, obs.ProviderSequence, err)
		}
		last = *obs.ProviderSequence
		if obs.ProviderOccurredAt == nil || obs.ProviderOccurredAt.UnixMilli() != last {
			t.Errorf("%s: occurred at %v", name, obs.ProviderOccurredAt)
		}
	}
	obs, _, err := p.Decode(ports.InboxRow{Payload: []byte(`{"id":"pf1","status":"processing"}`)})
	if err != nil || obs.ProviderSequence != nil || obs.Status != domain.ObservedRunning {
		t.Errorf("a body without times: %+v, %v", obs, err)
	}
}

// TestSubmitFailures: what the vendor says is kept for operators, once and without
// what must not be.
func TestSubmitFailures(t *testing.T) {
	t.Parallel()
	for want, c := range map[ports.ProviderError]struct {
		status int
		body   string
	}{
		{Class: ports.ClassRejected, ErrorClass: "invalid_input", Code: "http_422", Message: "duration: must be 5 or 10"}: {
			422, `{"title":"Input validation failed","status":422,"detail":"duration: must be 5 or 10","invalid_fields":[{"field":"duration","type":"invalid","description":"duration: must be 5 or 10"}]}`},
		{Class: ports.ClassRejected, ErrorClass: "invalid_input", Code: "http_422", Message: "Input validation failed; input.image: could not fetch [url]"}: {
			422, `{"title":"Input validation failed","invalid_fields":[{"field":"input.image","description":"could not fetch https://x.example/a?sig=1"},7]}`},
		{Class: ports.ClassRejected, ErrorClass: "moderation_output", Code: "E005", Message: "flagged (E005)"}: {400, `{"detail":"flagged (E005)"}`},
		{Class: ports.ClassThrottled, NotSent: true, Code: "http_429", Message: "Request was throttled."}:      {429, `{"detail":"Request was throttled."}`},
		{Class: ports.ClassAuth, Code: "http_401", Message: "Bad [secret]"}:                                    {401, `{"detail":"Bad token r8_Abcdef123"}`},
		{Class: ports.ClassTransport, Code: "http_502"}:                                                        {502, `<html>`},
	} {
		p := replicate.New(replicate.Config{Client: &http.Client{Transport: &tripper{status: c.status, answer: c.body}}})
		_, err := p.Submit(t.Context(), ports.SubmitRequest{Attempt: domain.Attempt{Model: "acme/vid"}})
		var got *ports.ProviderError
		if !errors.As(err, &got) || *got != want {
			t.Errorf("%s:\n got %+v\nwant %+v", c.body, got, want)
		}
	}
}

// A bad request whose body is the end of the job is that; any other is nothing.
func TestQueryVerdictInABadRequest(t *testing.T) {
	t.Parallel()
	for status, want := range map[string]domain.Observed{"failed": domain.ObservedFailed, "processing": "", "mystery": ""} {
		for _, code := range []int{400, 422} {
			p := replicate.New(replicate.Config{Client: &http.Client{Transport: &tripper{status: code, answer: string(prediction("pf1", status))}}})
			res, err := p.Query(t.Context(), ports.QueryRequest{Attempt: domain.Attempt{ProviderTaskID: "pf1"}})
			if (err == nil) != (want != "") || res.Observation.Status != want {
				t.Errorf("%d %s: %q, %v", code, status, res.Observation.Status, err)
			}
		}
	}
	for _, code := range []int{401, 404, 429, 500} {
		p := replicate.New(replicate.Config{Client: &http.Client{Transport: &tripper{status: code, answer: string(prediction("pf1", "failed"))}}})
		if _, err := p.Query(t.Context(), ports.QueryRequest{Attempt: domain.Attempt{ProviderTaskID: "pf1"}}); err == nil {
			t.Errorf("%d was taken for a verdict", code)
		}
	}
}

func TestCheckAccount(t *testing.T) {
	t.Parallel()
	if err := replicate.CheckAccount(account); err != nil {
		t.Error(err)
	}
	if err := replicate.CheckAccount(ports.Account{ID: "x"}); err == nil {
		t.Error("an account without a key was taken")
	}
}

// The published test vector is signed, and no prediction: it is a delivery all
// the same, and what Decode says of it is an error.
func TestVerifyPublishedVector(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	h.Set("webhook-id", "msg_p5jXN8AQM9LWM0D4loKWxJek")
	h.Set("webhook-timestamp", "1614265330")
	h.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	p := replicate.New(replicate.Config{})
	req := ports.VerifyRequest{Header: h, Body: []byte(`{"test": 2432232314}`), Accounts: []ports.Account{account}, Now: time.Unix(1614265330, 0)}
	d, err := p.Verify(req)
	if err != nil || d.AccountID != "main" || d.KeyVersion != "2026-09" || d.Identity != "msg:msg_p5jXN8AQM9LWM0D4loKWxJek" || d.ProviderTaskID != "" {
		t.Errorf("%+v, %v", d, err)
	}
	if _, _, err := p.Decode(ports.InboxRow{Payload: req.Body}); err == nil {
		t.Error("a body without an id was decoded")
	}
	req.Body = []byte(`{"test": 2432232315}`)
	if _, err := p.Verify(req); err == nil {
		t.Error("one byte changed, and it verifies")
	}
}
