package porttest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// providerSubmitRequest: one request, with the credential, with the callback where
// the vendor takes one, and nothing of the user's in a place of ours.
func providerSubmitRequest(t *testing.T, f ProviderFixture) {
	v := f.vendor(200, f.Job(suiteJob, f.word(t, domain.ObservedQueued)))
	req := f.submit()
	hook := "https://" + foreignHost + "/steal"
	req.Input.Extra = []byte(`{"prompt":"another prompt","webhook":"` + hook + `","webhook_url":"` + hook + `","callback_url":"` + hook +
		`","webhook_events_filter":["` + hook + `"],"big":1234567890123456789,"style":"noir"}`)
	if _, err := v.Submit(t.Context(), req); err != nil {
		t.Fatal(err)
	}
	if len(v.requests) != 1 {
		t.Fatalf("%d requests", len(v.requests))
	}
	sent, r := v.bodies[0], v.requests[0]
	if r.Method != http.MethodPost || !strings.HasPrefix(r.URL.String(), suiteHost+f.BasePath+"/") || strings.Contains(r.URL.String(), f.Account.APIKey) {
		t.Errorf("request: %s %s", r.Method, r.URL)
	}
	if !strings.Contains(r.Header.Get("Authorization"), f.Account.APIKey) || strings.Contains(sent, f.Account.APIKey) {
		t.Errorf("the credential belongs into the head: %v", r.Header)
	}
	if perTask := v.Capabilities().Webhook == ports.WebhookPerTask; strings.Contains(sent+r.URL.String(), suiteCallback) != perTask {
		t.Errorf("callback in the request: %v; the vendor takes one per task: %v", !perTask, perTask)
	}
	for _, want := range []string{"a red kite over the sea", "noir", "1234567890123456789"} {
		if !strings.Contains(sent, want) {
			t.Errorf("%q is missing in %s", want, sent)
		}
	}
	if strings.Contains(sent, "another prompt") || strings.Contains(sent, foreignHost) {
		t.Errorf("an extra field took the adapter's place: %s", sent)
	}
	for _, bad := range []string{"[]", "x", `{"a":`} {
		v := f.vendor(200, f.Job(suiteJob, f.word(t, domain.ObservedQueued)))
		req := f.submit()
		req.Input.Extra = []byte(bad)
		_, err := v.Submit(t.Context(), req)
		if e := fault(t, err); e == nil || e.Class != ports.ClassRejected || len(v.requests) != 0 {
			t.Errorf("extra %s: %v after %d requests", bad, err, len(v.requests))
		}
	}
}

// providerSubmitAccepted: the id, and the state that came along, the end included.
func providerSubmitAccepted(t *testing.T, f ProviderFixture) {
	for word, want := range f.Words {
		for _, status := range []int{200, 201, 202} {
			res, err := f.vendor(status, f.Job(suiteJob, word)).Submit(t.Context(), f.submit())
			if err != nil {
				t.Fatalf("%d %q: %v", status, word, err)
			}
			if res.ProviderTaskID != suiteJob {
				t.Errorf("%d %q: id %q", status, word, res.ProviderTaskID)
			}
			if obs := res.Observation; obs != nil && (obs.Status != want || obs.Source != domain.SourceSubmit) {
				t.Errorf("%d %q: %+v", status, word, obs)
			} else if obs == nil && want.Terminal() {
				t.Errorf("%d %q: the end that came with the answer is lost", status, word)
			}
		}
	}
}

// providerSubmitIDAlone: an id is all that an accepted create has to say.
func providerSubmitIDAlone(t *testing.T, f ProviderFixture) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(f.Job(suiteJob, f.word(t, domain.ObservedQueued)), &members); err != nil {
		t.Fatal(err)
	}
	for name, value := range members {
		if string(value) != `"`+suiteJob+`"` {
			continue
		}
		res, err := f.vendor(200, fmt.Appendf(nil, `{%q:%s}`, name, value)).Submit(t.Context(), f.submit())
		if err != nil || res.ProviderTaskID != suiteJob || res.Observation != nil && res.Observation.Status != domain.ObservedNone {
			t.Errorf("%+v, %v", res, err)
		}
	}
}

// providerSubmitErrors: what each status says about a create.
func providerSubmitErrors(t *testing.T, f ProviderFixture) {
	for status, want := range map[int]ports.ProviderClass{
		301: ports.ClassTransport, 307: ports.ClassTransport, 400: ports.ClassRejected, 401: ports.ClassAuth, 402: ports.ClassRejected, 403: ports.ClassAuth,
		404: ports.ClassRejected, 408: ports.ClassTransport, 413: ports.ClassRejected, 422: ports.ClassRejected, 425: ports.ClassTransport,
		429: ports.ClassThrottled, 500: ports.ClassTransport, 502: ports.ClassTransport, 503: ports.ClassTransport, 504: ports.ClassTransport, 522: ports.ClassTransport,
	} {
		for name, body := range errorBodies() {
			v := f.vendor(status, body)
			v.header = http.Header{"Retry-After": {"7"}, "Location": {"https://" + foreignHost + "/"}}
			_, err := v.Submit(t.Context(), f.submit())
			e := fault(t, err)
			if e == nil {
				t.Fatalf("%d with %s: accepted", status, name)
			}
			if e.Class != want || e.NotSent != (status == 429 || status == 503) || (e.Class == ports.ClassRejected) != (e.ErrorClass != "") {
				t.Errorf("%d with %s: %+v", status, name, e)
			}
			if e.RetryAfter != 7*time.Second {
				t.Errorf("%d: wait %v", status, e.RetryAfter)
			}
			if len(v.requests) != 1 {
				t.Errorf("%d: %d requests", status, len(v.requests))
			}
		}
	}
}

// providerSubmitBadAnswers: an answer of success that cannot be read proves
// nothing, least of all that the vendor has no job.
func providerSubmitBadAnswers(t *testing.T, f ProviderFixture) {
	for name, body := range badBodies(f.Job(suiteJob, f.word(t, domain.ObservedQueued))) {
		_, err := f.vendor(200, body).Submit(t.Context(), f.submit())
		if e := fault(t, err); e == nil || e.NotSent || e.Class != ports.ClassMalformed {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

// providerSubmitConnection: not sent only before there was a connection.
func providerSubmitConnection(t *testing.T, f ProviderFixture) {
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer cut.Close()
	gone := httptest.NewServer(nil)
	gone.Close()
	for url, notSent := range map[string]bool{cut.URL: false, gone.URL: true} {
		req := f.submit()
		req.Account.BaseURL, req.Attempt.BaseURL = url+f.BasePath, url+f.BasePath
		_, err := f.New(&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Submit(t.Context(), req)
		if e := fault(t, err); e == nil || e.Class != ports.ClassTransport || e.NotSent != notSent {
			t.Errorf("not sent should be %v: %+v", notSent, e)
		}
	}
}

// errorBodies are bodies that come with an error status; read-only.
var errorBodies = sync.OnceValue(func() map[string][]byte {
	return map[string][]byte{
		"nothing": nil, "HTML": []byte("<html><h1>502 Bad Gateway</h1></html>"), "an empty object": []byte("{}"), "null": []byte("null"),
		"a problem": []byte(`{"type":"about:blank","title":"No","status":400,"detail":"no"}`), "an error object": []byte(`{"error":{"message":"no","type":"x_error","code":null}}`),
		"an error text": []byte(`{"error":"no"}`), "an odd error": []byte(`{"error":[1],"detail":{"a":2},"status":null}`), "10 MB": make([]byte, 10<<20),
		"deep nesting": []byte(strings.Repeat(`{"error":`, 100_000)),
	}
})

// badBodies are bodies that no job can be read from.
func badBodies(good []byte) map[string][]byte {
	half := good[:len(good)/2]
	return map[string][]byte{
		"nothing": nil, "blanks": []byte("  \n"), "half": half, "HTML": []byte("<!doctype html><title>Sign in</title>"), "null": []byte("null"), "a list": []byte("[]"),
		"a word": []byte(`"ok"`), "an empty object": []byte("{}"), "no id": []byte(`{"status":"x"}`), "an id of null": []byte(`{"id":null,"status":"x"}`),
		"an odd id": []byte(`{"id":{"a":1},"status":"x"}`), "an id with a newline": []byte(`{"id":"a\nb","status":"x"}`), "a dotted id": []byte(`{"id":"..","status":"x"}`),
		"10 MB":        []byte(`{"id":"job-1","status":"x","pad":"` + strings.Repeat("x", 10<<20) + `"}`),
		"deep nesting": []byte(`{"id":"job-1","status":"x","pad":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}"),
		"open nesting": []byte(strings.Repeat(`{"id":`, 100_000)), "binary": {0xff, 0xfe, 0, 1, 2}, "two objects": append(append([]byte{}, good...), good...),
	}
}
