package porttest

import (
	"bytes"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// providerQueryWords: every word in every spelling, and words of nobody.
func providerQueryWords(t *testing.T, f ProviderFixture) {
	for word, want := range f.Words {
		for _, spelled := range []string{word, strings.ToUpper(word), strings.ToUpper(word[:1]) + word[1:], " " + word + " ", strings.ReplaceAll(word, "_", " ")} {
			res, err := f.vendor(200, f.Job(suiteJob, spelled)).Query(t.Context(), f.query(suiteJob))
			if err != nil || res.Observation.Status != want {
				t.Errorf("%q: %q, %v; want %q", spelled, res.Observation.Status, err, want)
			}
			if failed := want == domain.ObservedFailed; failed && res.Observation.ErrorClass == "" {
				t.Errorf("%q: a failure without a class", spelled)
			}
		}
	}
	for _, word := range []string{"", " ", "rendering_tiles", "success!", "not_failed", "0", "null", "ｓucceeded", strings.Repeat("x", 1<<16)} {
		res, err := f.vendor(200, f.Job(suiteJob, word)).Query(t.Context(), f.query(suiteJob))
		if e := fault(t, err); e == nil && res.Observation.Status != domain.ObservedNone {
			t.Errorf("%.20q means %q", word, res.Observation.Status)
		}
	}
}

// providerQueryRecorded: what vendors really sent.
func providerQueryRecorded(t *testing.T, f ProviderFixture) {
	for _, shape := range f.Recorded {
		v := f.vendor(200, shape.Body)
		res, err := v.Query(t.Context(), f.query(f.RecordedID))
		if err != nil {
			t.Errorf("%s: %v", shape.Name, err)
			continue
		}
		obs := res.Observation
		if obs.Status != shape.Status || obs.ErrorClass != shape.Class || obs.ErrorCode != shape.Code || obs.ErrorMessage != shape.Message || !sameProgress(obs.Progress, shape.Progress) {
			t.Errorf("%s: %+v, want %+v", shape.Name, obs, shape)
		}
		if !sameOutputs(obs.Outputs, shape.Outputs) {
			t.Errorf("%s: outputs %+v, want %+v", shape.Name, obs.Outputs, shape.Outputs)
		}
		if obs.Source != domain.SourcePoll || obs.ProviderTaskID != f.RecordedID || obs.Provider != v.Capabilities().Name || obs.PayloadHash == "" || obs.ReceivedAt.IsZero() || obs.Thin {
			t.Errorf("%s: %+v", shape.Name, obs)
		}
		if r := v.requests[0]; r.Method != http.MethodGet || !strings.Contains(r.URL.Path, f.RecordedID) || !strings.Contains(r.Header.Get("Authorization"), f.Account.APIKey) {
			t.Errorf("%s: request %s %s", shape.Name, r.Method, r.URL)
		}
	}
}

func sameProgress(a, b *int) bool {
	return a == b || a != nil && b != nil && *a == *b
}

func sameOutputs(a, b []domain.OutputRef) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Kind != b[i].Kind || a[i].Ref != b[i].Ref || a[i].URL != b[i].URL {
			return false
		}
		if (a[i].ExpiresAt == nil) != (b[i].ExpiresAt == nil) || a[i].ExpiresAt != nil && !a[i].ExpiresAt.Equal(*b[i].ExpiresAt) {
			return false
		}
	}
	return true
}

// providerQueryErrors: no status of a query is a verdict about the job.
func providerQueryErrors(t *testing.T, f ProviderFixture) {
	for status, want := range map[int]ports.ProviderClass{
		302: ports.ClassTransport, 400: ports.ClassRejected, 401: ports.ClassAuth, 403: ports.ClassAuth, 404: ports.ClassNotFound, 408: ports.ClassTransport,
		410: ports.ClassNotFound, 422: ports.ClassRejected, 425: ports.ClassTransport, 429: ports.ClassThrottled, 500: ports.ClassTransport,
		502: ports.ClassTransport, 503: ports.ClassTransport, 504: ports.ClassTransport, 522: ports.ClassTransport,
	} {
		for name, body := range errorBodies() {
			v := f.vendor(status, body)
			v.header = http.Header{"Retry-After": {providerNow.Add(time.Hour).Format(http.TimeFormat)}}
			_, err := v.Query(t.Context(), f.query(suiteJob))
			if e := fault(t, err); e == nil || e.Class != want || e.NotSent {
				t.Errorf("%d with %s: %+v", status, name, e)
			}
		}
	}
	v := f.vendor(429, nil)
	v.header = http.Header{"Retry-After": {"31"}}
	_, err := v.Query(t.Context(), f.query(suiteJob))
	if e := fault(t, err); e.RetryAfter != 31*time.Second {
		t.Errorf("wait %v", e.RetryAfter)
	}
	for _, id := range []string{"", ".", "..", "a b", "a\nb", strings.Repeat("x", 300)} {
		v := f.vendor(200, f.Job(suiteJob, f.word(t, domain.ObservedSucceeded)))
		_, err := v.Query(t.Context(), f.query(id))
		if fault(t, err) == nil || len(v.requests) != 0 {
			t.Errorf("id %.10q: %v after %d requests", id, err, len(v.requests))
		}
	}
}

// providerQueryBadAnswers: what cannot be read is a missed poll.
func providerQueryBadAnswers(t *testing.T, f ProviderFixture) {
	good := f.Job(suiteJob, f.word(t, domain.ObservedSucceeded))
	for name, body := range badBodies(good) {
		_, err := f.vendor(200, body).Query(t.Context(), f.query(suiteJob))
		if e := fault(t, err); e == nil || e.Class != ports.ClassMalformed {
			t.Errorf("%s: %+v", name, e)
		}
	}
	word := f.word(t, domain.ObservedFailed)
	status := fmt.Appendf(nil, "%q", word)
	twice := bytes.Replace(f.Job(suiteJob, word), status, fmt.Appendf(nil, `%q,"status":%q`, word, f.word(t, domain.ObservedSucceeded)), 1)
	if _, err := f.vendor(200, twice).Query(t.Context(), f.query(suiteJob)); fault(t, err) == nil {
		t.Errorf("two statuses in one body were read: %s", twice)
	}
	for _, odd := range []string{"null", "true", "[]", "{}", "7", `["` + word + `"]`, `{"value":"` + word + `"}`} {
		res, err := f.vendor(200, bytes.Replace(f.Job(suiteJob, word), status, []byte(odd), 1)).Query(t.Context(), f.query(suiteJob))
		if fault(t, err) == nil && res.Observation.Status.Terminal() {
			t.Errorf("a status of %s ended the job", odd)
		}
	}
}

// providerQueryIdentity: ids of nineteen digits keep them all, as text or as a
// number, and an answer about another job is none about this.
func providerQueryIdentity(t *testing.T, f ProviderFixture) {
	const long = "1234567890123456789"
	word := f.word(t, domain.ObservedSucceeded)
	quoted := f.Job(long, word)
	for _, body := range [][]byte{quoted, bytes.Replace(quoted, []byte(`"`+long+`"`), []byte(long), 1)} {
		res, err := f.vendor(200, body).Query(t.Context(), f.query(long))
		if err != nil || res.Observation.ProviderTaskID != long || res.Observation.Status != domain.ObservedSucceeded {
			t.Errorf("%s: %+v, %v", body, res.Observation, err)
		}
		if _, err := f.vendor(200, body).Query(t.Context(), f.query("1234567890123456788")); fault(t, err) == nil {
			t.Errorf("the answer about another job was taken: %s", body)
		}
	}
	v := f.vendor(200, f.Job("a/b?c", word))
	if _, err := v.Query(t.Context(), f.query("a/b?c")); err != nil || v.requests[0].URL.RawQuery != "" || !strings.Contains(v.requests[0].URL.EscapedPath(), "a%2Fb%3Fc") {
		t.Errorf("an id with a slash: %v, %v", v.requests[0].URL, err)
	}
}

// providerCancel: a refusal is an answer, everything unclear an error.
func providerCancel(t *testing.T, f ProviderFixture) {
	for status, want := range map[int]string{200: "accepted", 409: "refused", 422: "refused", 401: "error", 404: "error", 429: "error", 500: "error", 503: "error"} {
		v := f.vendor(status, f.Job(suiteJob, f.word(t, domain.ObservedRunning)))
		c, ok := v.Provider.(ports.Canceler)
		if !ok {
			t.Skip("the vendor cannot cancel")
		}
		refused, err := c.Cancel(t.Context(), f.query(suiteJob))
		got := "accepted"
		switch {
		case fault(t, err) != nil:
			got = "error"
		case refused:
			got = "refused"
		}
		if got != want || len(v.requests) != 1 {
			t.Errorf("%d: %s, want %s", status, got, want)
		}
	}
	c := f.vendor(200, f.Job(suiteJob, f.word(t, domain.ObservedSucceeded))).Provider.(ports.Canceler)
	if refused, err := c.Cancel(t.Context(), f.query(suiteJob)); err != nil || !refused {
		t.Errorf("too late: refused %v, %v", refused, err)
	}
}
