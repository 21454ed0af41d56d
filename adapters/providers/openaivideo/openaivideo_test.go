package openaivideo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/adapters/providers/openaivideo"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// tripper answers every request the same and keeps the last one.
type tripper struct {
	status int
	header http.Header
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
	header := t.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{StatusCode: t.status, Header: header, Body: io.NopCloser(bytes.NewBufferString(t.answer)), Request: r}, nil
}

func (t *tripper) provider() *openaivideo.Provider {
	return openaivideo.New(openaivideo.Config{Client: &http.Client{Transport: t}})
}

func failure(t *testing.T, err error) ports.ProviderError {
	t.Helper()
	var e *ports.ProviderError
	if !errors.As(err, &e) {
		t.Fatalf("no *ports.ProviderError: %v", err)
	}
	return *e
}

func TestSubmitBody(t *testing.T) {
	t.Parallel()
	seed := int64(7)
	for want, in := range map[string]ports.TaskInput{
		`{"model":"sora-2","prompt":"p"}`: {Prompt: "p"},
		`{"model":"sora-2","prompt":"p","seconds":"8","size":"720x1280","seed":7,"input_reference":{"image_url":"https://x.example/i.png"},"style":"noir"}`: {
			Prompt: "p", DurationSeconds: 8, AspectRatio: "9:16", Seed: &seed, ImageURL: "https://x.example/i.png",
			Extra: []byte(`{"style":"noir","model":"other","seconds":4,"size":"1x1"}`),
		},
	} {
		trip := &tripper{status: 200, answer: string(videoObject("video_f1", "queued"))}
		_, err := trip.provider().Submit(context.Background(), ports.SubmitRequest{Account: ports.Account{APIKey: "k"}, Attempt: domain.Attempt{Model: "sora-2"}, Input: in, CallbackURL: "https://h.example"})
		if err != nil || trip.url != "POST https://api.openai.com/v1/videos" {
			t.Errorf("%s, %v", trip.url, err)
		}
		var g, w any
		if err := errors.Join(json.Unmarshal([]byte(trip.body), &g), json.Unmarshal([]byte(want), &w)); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(w, g); diff != "" {
			t.Error(diff)
		}
	}
}

func TestSubmitFailures(t *testing.T) {
	t.Parallel()
	body := func(code string) string { return `{"error":{"message":"text","type":"t","code":"` + code + `"}}` }
	for name, c := range map[string]struct {
		status int
		body   string
		want   ports.ProviderError
	}{
		"moderation":         {400, body("moderation_blocked"), ports.ProviderError{Class: ports.ClassRejected, ErrorClass: "moderation_input", Code: "moderation_blocked"}},
		"invalid":            {400, body("invalid_value"), ports.ProviderError{Class: ports.ClassRejected, ErrorClass: "invalid_input", Code: "invalid_value"}},
		"type alone":         {400, `{"error":{"type":"invalid_request_error","code":null}}`, ports.ProviderError{Class: ports.ClassRejected, ErrorClass: "invalid_input", Code: "invalid_request_error"}},
		"throttled":          {429, body("rate_limit_exceeded"), ports.ProviderError{Class: ports.ClassThrottled, NotSent: true, Code: "rate_limit_exceeded"}},
		"key":                {401, body("invalid_api_key"), ports.ProviderError{Class: ports.ClassAuth, Code: "invalid_api_key"}},
		"in band, throttled": {200, body("rate_limit_exceeded"), ports.ProviderError{Class: ports.ClassThrottled, NotSent: true, Code: "rate_limit_exceeded"}},
		"in band, invalid":   {200, body("invalid_size"), ports.ProviderError{Class: ports.ClassRejected, ErrorClass: "invalid_input", Code: "invalid_size"}},
		"in band, filter":    {200, body("content_policy_violation"), ports.ProviderError{Class: ports.ClassRejected, ErrorClass: "moderation_input", Code: "content_policy_violation"}},
		"in band, key":       {200, body("invalid_api_key"), ports.ProviderError{Class: ports.ClassAuth, Code: "invalid_api_key"}},
		"in band, anything":  {200, body("server_error"), ports.ProviderError{Class: ports.ClassTransport, Code: "server_error"}},
	} {
		trip := &tripper{status: c.status, answer: c.body}
		_, err := trip.provider().Submit(context.Background(), ports.SubmitRequest{Attempt: domain.Attempt{Model: "sora-2"}})
		got := failure(t, err)
		if name != "type alone" {
			c.want.Message = "text"
		}
		got.Err = nil
		if got != c.want {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
	}
	for name, req := range map[string]ports.SubmitRequest{
		"no model": {}, "resolution": {Attempt: domain.Attempt{Model: "m"}, Input: ports.TaskInput{Resolution: "huge"}},
		"ratio": {Attempt: domain.Attempt{Model: "m"}, Input: ports.TaskInput{AspectRatio: "wide"}},
	} {
		trip := &tripper{status: 200}
		_, err := trip.provider().Submit(context.Background(), req)
		if failure(t, err).Class != ports.ClassRejected || trip.url != "" {
			t.Errorf("%s: %v, %s", name, err, trip.url)
		}
	}
}

func TestQueryHintsAndInBandErrors(t *testing.T) {
	t.Parallel()
	req := ports.QueryRequest{Attempt: domain.Attempt{ProviderTaskID: "video_f1"}}
	for want, header := range map[time.Duration]http.Header{
		0: nil, 1500 * time.Millisecond: {"Openai-Poll-After-Ms": {"1500"}, "Retry-After": {"9"}}, 9 * time.Second: {"Retry-After": {"9"}},
	} {
		res, err := (&tripper{status: 200, header: header, answer: string(videoObject("video_f1", "in_progress"))}).provider().Query(t.Context(), req)
		if err != nil || res.NextAfter != want {
			t.Errorf("%v: %v, %v", header, res.NextAfter, err)
		}
	}
	for code, want := range map[string]ports.ProviderClass{
		"rate_limit_exceeded": ports.ClassThrottled, "insufficient_quota": ports.ClassThrottled, "invalid_api_key": ports.ClassAuth,
		"video_not_found": ports.ClassNotFound, "upstream_error": ports.ClassTransport,
	} {
		_, err := (&tripper{status: 200, answer: `{"error":{"code":"` + code + `"}}`}).provider().Query(t.Context(), req)
		if got := failure(t, err); got.Class != want || got.Code != code {
			t.Errorf("%s: %+v", code, got)
		}
	}
	res, err := (&tripper{status: 400, answer: string(videoObject("video_f1", "failed"))}).provider().Query(t.Context(), req)
	if err != nil || res.Observation.Status != domain.ObservedFailed {
		t.Errorf("the end of the job with a 400: %+v, %v", res, err)
	}
}

func TestDecodeEvents(t *testing.T) {
	t.Parallel()
	p := openaivideo.New(openaivideo.Config{})
	for kind, want := range map[string]domain.Observed{"video.completed": domain.ObservedSucceeded, "video.failed": domain.ObservedFailed, "video.paused": domain.ObservedNone} {
		obs, foreign, err := p.Decode(ports.InboxRow{Payload: event(kind, "video_f1")})
		if err != nil || foreign || obs.Status != want || !obs.Thin || obs.ProviderTaskID != "video_f1" || len(obs.Outputs) != 0 || obs.ProviderOccurredAt == nil {
			t.Errorf("%s: %+v, %v, %v", kind, obs, foreign, err)
		}
	}
	for _, body := range []string{`{"type":"response.completed","data":{"id":"resp_1"}}`, `{"type":"batch.failed"}`, `{"type":"videos"}`} {
		if _, foreign, err := p.Decode(ports.InboxRow{Payload: []byte(body)}); !foreign || err != nil {
			t.Errorf("%s: foreign %v, %v", body, foreign, err)
		}
	}
	for _, body := range []string{"", "{}", `{"type":7}`, `{"type":null}`, `{"type":"video.completed"}`, `{"type":"video.completed","data":null}`, `{"type":"video.completed","data":{"id":""}}`, `{"type":"video.completed","data":[{"id":"x"}]}`} {
		if obs, foreign, err := p.Decode(ports.InboxRow{Payload: []byte(body)}); body != `{"type":7}` && (err == nil || foreign) {
			t.Errorf("%s: %+v, %v", body, obs, foreign)
		}
	}
}

// The id of the header is the identity; that of the body names the event.
func TestVerifyIdentity(t *testing.T) {
	t.Parallel()
	p := openaivideo.New(openaivideo.Config{})
	now := time.Unix(1790000310, 0)
	for body, job := range map[string]string{string(event("video.completed", "video_f1")): "video_f1", string(event("response.completed", "resp_1")): ""} {
		d, err := p.Verify(ports.VerifyRequest{Header: sign(account.Secrets[0], []byte(body), now), Body: []byte(body), Accounts: []ports.Account{account}, Now: now})
		if err != nil || d.Identity != "msg:wh_1" || d.ProviderEventID != "evt_1" || d.ProviderTaskID != job || d.ProviderOccurredAt.Unix() != 1790000300 {
			t.Errorf("%+v, %v", d, err)
		}
	}
}

// The published fixture of a thin event.
func TestVerifyVector(t *testing.T) {
	t.Parallel()
	h := http.Header{}
	h.Set("webhook-id", "wh_f1")
	h.Set("webhook-timestamp", "1790000301")
	h.Set("webhook-signature", "v1,NGAJiVl856qMJ4EFwg9W8iADAeRU1AHSEDFXhh4kW3U=")
	body := []byte(`{"object":"event","id":"evt_f1","type":"video.completed","created_at":1790000300,"data":{"id":"video_f1"}}`)
	d, err := openaivideo.New(openaivideo.Config{}).Verify(ports.VerifyRequest{Header: h, Body: body, Accounts: []ports.Account{account}, Now: time.Unix(1790000601, 0)})
	if err != nil || d.KeyVersion != "2026-09" || d.ProviderTaskID != "video_f1" {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestOutputRequest(t *testing.T) {
	t.Parallel()
	p := openaivideo.New(openaivideo.Config{})
	req := ports.QueryRequest{Account: ports.Account{APIKey: "k", BaseURL: "https://gw.example/v1"}}
	for url, want := range map[string]string{
		"https://gw.example/v1/videos/a/content": "Bearer k", "http://gw.example/v1/videos/a/content": "", "https://gw.example:8443/x": "",
		"https://evil.example/v1/videos/a/content": "", "https://gw.example.evil.example/": "",
	} {
		r, err := p.OutputRequest(t.Context(), req, domain.OutputRef{URL: url})
		if err != nil || r.Method != http.MethodGet || r.Header.Get("Authorization") != want {
			t.Errorf("%s: %v, %v", url, r.Header, err)
		}
	}
	if _, err := p.OutputRequest(t.Context(), req, domain.OutputRef{URL: "://"}); failure(t, err).Class != ports.ClassRejected {
		t.Errorf("a broken URL: %v", err)
	}
}

func TestCheckAccount(t *testing.T) {
	t.Parallel()
	if err := errors.Join(openaivideo.CheckAccount(account), openaivideo.CheckAccount(ports.Account{ID: "gw", BaseURL: "http://gw"})); err != nil {
		t.Error(err)
	}
	if err := openaivideo.CheckAccount(ports.Account{ID: "x"}); err == nil {
		t.Error("an account without a key was taken")
	}
}

func FuzzBodies(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"type":"video.completed","data":{"id":"v"}}`, `{"id":"v","status":"completed","expires_at":1790003800}`, `{"id":7,"status":"IN PROGRESS","progress":"45%"}`,
		`{"error":{"code":1}}`, `{"id":"v","status":"failed","error":"x"}`, `<html>`, `{"type":"response.done"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		trip := &tripper{status: 200, answer: string(body)}
		p := trip.provider()
		if obs, foreign, err := p.Decode(ports.InboxRow{Payload: body}); err == nil && !foreign && (obs.ProviderTaskID == "" || !obs.Thin) {
			t.Fatalf("%q: %+v", body, obs)
		}
		res, err := p.Query(context.Background(), ports.QueryRequest{Attempt: domain.Attempt{ProviderTaskID: "v"}})
		if err == nil && res.Observation.ProviderTaskID != "v" {
			t.Fatalf("%q: %+v", body, res)
		}
	})
}
