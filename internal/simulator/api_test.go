package simulator

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestRefusedCreates(t *testing.T) {
	for fault, check := range map[string]func(reply) bool{
		"create_429": func(r reply) bool { return r.status == 429 && r.header.Get("Retry-After") == "7" },
		"create_5xx": func(r reply) bool { return slices.Contains(serverErrors, r.status) },
		"create_hang": func(r reply) bool {
			return r.cut
		},
	} {
		t.Run(fault, func(t *testing.T) {
			inBox(t, Faults{RetryAfter: 7 * time.Second, HangFor: 20 * time.Second}, func(t *testing.T, b *box) {
				sim := `{"` + fault + `":true}`
				before := time.Now()
				for _, r := range []reply{
					b.call("POST", "/v1/predictions", predictionBody(sim)),
					b.call("POST", "/v1/videos", `{"prompt":"x","sim":`+sim+`}`),
				} {
					if !check(r) {
						t.Errorf("got %+v", r)
					}
				}
				if took := time.Since(before); fault == "create_hang" && took != 40*time.Second {
					t.Errorf("two calls hung for %v", took)
				}
				if st := b.sim.Stats(); st.Creates != 0 || st.CreateCalls != 2 || st.Injected[fault] != 2 {
					t.Errorf("stats: %+v", st)
				}
			})
		})
	}
}

// The job exists and goes on, whatever the caller was told.
func TestAcceptedButNotTold(t *testing.T) {
	for fault, check := range map[string]func(reply) bool{
		"lost":             func(r reply) bool { return r.cut },
		"create_malformed": func(r reply) bool { return r.status/100 == 2 && !json.Valid(r.body) && len(r.body) > 0 },
	} {
		t.Run(fault, func(t *testing.T) {
			inBox(t, Faults{}, func(t *testing.T, b *box) {
				sim := `{"` + fault + `":true,"key":"k"}`
				for _, r := range []reply{
					b.call("POST", "/v1/predictions", predictionBody(sim)),
					b.call("POST", "/v1/videos", `{"prompt":"x","sim":`+sim+`}`),
				} {
					if !check(r) {
						t.Errorf("got %+v", r)
					}
				}
				b.pass(10 * time.Second)
				st := b.sim.Stats()
				if st.Creates != 2 || st.CreatesByKey["k"] != 2 || st.Jobs["succeeded"] != 2 {
					t.Errorf("stats: %+v", st)
				}
				if words := b.words(); !slices.Contains(words, "succeeded") || !slices.Contains(words, "video.completed") {
					t.Errorf("webhooks: %v", words)
				}
			})
		})
	}
}

func TestQueryFaults(t *testing.T) {
	for fault, check := range map[string]func(reply) bool{
		"query_401":       func(r reply) bool { return r.status == 401 },
		"query_429":       func(r reply) bool { return r.status == 429 && r.header.Get("Retry-After") == "1" },
		"query_5xx":       func(r reply) bool { return slices.Contains(serverErrors, r.status) },
		"query_hang":      func(r reply) bool { return r.cut },
		"query_malformed": func(r reply) bool { return r.status == 200 && !json.Valid(r.body) },
		"fail_query":      func(r reply) bool { return r.cut || r.status == 429 || slices.Contains(serverErrors, r.status) },
		"not_found":       func(r reply) bool { return r.status == 404 },
	} {
		t.Run(fault, func(t *testing.T) {
			inBox(t, Faults{}, func(t *testing.T, b *box) {
				sim := `{"` + fault + `":true}`
				for _, path := range []string{"/v1/predictions/" + b.predict(sim), "/v1/videos/" + b.film(sim)} {
					if r := b.call("GET", path, ""); !check(r) {
						t.Errorf("%s: %+v", path, r)
					}
				}
				if st := b.sim.Stats(); st.Queries != 2 || st.Injected[fault] != 2 {
					t.Errorf("stats: %+v", st)
				}
			})
		})
	}
}

func TestQueryFaultRate(t *testing.T) {
	inBox(t, Faults{FailQuery: 0.1}, func(t *testing.T, b *box) {
		id := b.predict(`{}`)
		forms := map[int]int{}
		for range 1000 {
			forms[b.call("GET", "/v1/predictions/"+id, "").status]++
		}
		if ok := forms[200]; ok < 860 || ok > 940 {
			t.Errorf("answers: %v", forms)
		}
		for _, status := range append(serverErrors, 429, 0) {
			if forms[status] == 0 {
				t.Errorf("never answered %d: %v", status, forms)
			}
		}
	})
}

func TestNotFoundEnds(t *testing.T) {
	inBox(t, Faults{NotFound: 1, NotFoundFor: 3 * time.Second}, func(t *testing.T, b *box) {
		id := b.predict(`{}`)
		b.pass(3*time.Second - 1)
		if r := b.call("GET", "/v1/predictions/"+id, ""); r.status != 404 {
			t.Errorf("just before: %d", r.status)
		}
		b.pass(1)
		if got := b.status(id); got != "processing" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

// A hanging call ends with its caller.
func TestHangEndsWithCaller(t *testing.T) {
	inBox(t, Faults{QueryHang: 1}, func(t *testing.T, b *box) {
		id := b.predict(`{}`)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		before := time.Now()
		r := b.do(httptest.NewRequestWithContext(ctx, "GET", "/v1/predictions/"+id, nil))
		if took := time.Since(before); !r.cut || took != 3*time.Second {
			t.Errorf("%+v after %v", r, took)
		}
	})
}

func TestSynonymStatus(t *testing.T) {
	inBox(t, Faults{SynonymStatus: 1}, func(t *testing.T, b *box) {
		seen := map[string]bool{}
		for range 30 {
			id := b.film(`{}`)
			first := b.status(id)
			b.pass(6 * time.Second)
			seen[first+" "+b.status(id)] = true
		}
		for _, words := range gatewayWords {
			if !seen[words[0]+" "+words[2]] {
				t.Errorf("never saw %v: %v", words, seen)
			}
		}
		if len(seen) != len(gatewayWords) {
			t.Errorf("saw %v", seen)
		}
	})
}

func TestFailKinds(t *testing.T) {
	inBox(t, Faults{Fail: 1}, func(t *testing.T, b *box) {
		seen := map[string]bool{}
		for range 30 {
			id := b.predict(`{}`)
			b.pass(6 * time.Second)
			got := b.call("GET", "/v1/predictions/"+id, "").json(t)
			if got["status"] != "failed" || got["output"] != nil {
				t.Fatalf("got %v", got)
			}
			seen[got["error"].(string)] = true
		}
		if len(seen) != len(failKinds) {
			t.Errorf("errors: %v", seen)
		}
		id := b.predict(`{"fail":"moderation"}`)
		b.pass(6 * time.Second)
		if text := b.call("GET", "/v1/predictions/"+id, "").json(t)["error"].(string); !strings.Contains(text, "E005") {
			t.Errorf("moderation says %q", text)
		}
	})
}

func TestEmptyOutput(t *testing.T) {
	inBox(t, Faults{EmptyOutput: 1}, func(t *testing.T, b *box) {
		id, video := b.predict(`{}`), b.film(`{}`)
		b.pass(6 * time.Second)
		if got := b.call("GET", "/v1/predictions/"+id, "").json(t); got["status"] != "succeeded" || got["output"] != nil {
			t.Errorf("got %v", got)
		}
		if got := b.status(video); got != "completed" {
			t.Errorf("got %s", got)
		}
		for _, path := range []string{"/files/" + id + "/out.mp4", "/v1/videos/" + video + "/content"} {
			if r := b.call("GET", path, ""); r.status != 404 {
				t.Errorf("%s: %d", path, r.status)
			}
		}
	})
}

func TestInstantResult(t *testing.T) {
	inBox(t, Faults{InstantResult: 1}, func(t *testing.T, b *box) {
		got := b.call("POST", "/v1/predictions", predictionBody(`{}`)).json(t)
		if got["status"] != "succeeded" || got["output"] == nil {
			t.Errorf("got %v", got)
		}
		if got := b.call("POST", "/v1/videos", `{"prompt":"x"}`).json(t); got["status"] != "completed" {
			t.Errorf("got %v", got)
		}
	})
}

func TestCancelFaults(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		deaf, broken := b.predict(`{"ignore_cancel":true}`), b.predict(`{"fail_cancel":true}`)
		if r := b.call("POST", "/v1/predictions/"+deaf+"/cancel", ""); r.status != 200 || r.json(t)["status"] != "starting" {
			t.Errorf("ignored cancel: %d %s", r.status, r.body)
		}
		if r := b.call("POST", "/v1/predictions/"+broken+"/cancel", ""); r.status < 500 {
			t.Errorf("failing cancel: %d", r.status)
		}
		b.pass(6 * time.Second)
		if got := b.status(deaf) + " " + b.status(broken); got != "succeeded succeeded" {
			t.Errorf("got %s", got)
		}
	})
}

func TestFailDownload(t *testing.T) {
	inBox(t, Faults{FailDownload: 1, InstantResult: 1}, func(t *testing.T, b *box) {
		for _, path := range []string{"/files/" + b.predict(`{}`) + "/out.mp4", "/v1/videos/" + b.film(`{}`) + "/content"} {
			if r := b.call("GET", path, ""); r.status < 500 {
				t.Errorf("%s: %d", path, r.status)
			}
		}
	})
}

func TestCreateKeys(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		b.predict(`{"key":"mine"}`)
		b.predict(`{}`)
		b.predict(`{}`)
		b.film(`{}`)
		req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/videos", strings.NewReader(`{"prompt":"x"}`))
		req.Header.Set("Content-Type", "application/json; charset=utf-8")
		req.Header.Set("Idempotency-Key", "idem-1")
		b.made(b.do(req), 200)
		for key, want := range map[string]int{"mine": 1, testHook: 2, "prompt:a red kite": 1, "idem-1": 1} {
			if got := b.sim.Stats().CreatesByKey[key]; got != want {
				t.Errorf("%s: %d, want %d", key, got, want)
			}
		}
	})
}

// Over a real connection: a signed webhook arrives, the output is downloaded,
// a lost answer is a cut connection.
func TestOverHTTP(t *testing.T) {
	t.Parallel()
	hooks := make(chan delivery, 16)
	client := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		hooks <- delivery{id: r.Header.Get("Webhook-Id"), stamp: r.Header.Get("Webhook-Timestamp"), signature: r.Header.Get("Webhook-Signature"), body: body}
		w.WriteHeader(http.StatusNoContent)
	}))
	defer client.Close()
	sim := New(Config{WebhookSecret: testSecret, Queue: -1, Run: -1, AllowPrivateWebhook: true})
	vendor := httptest.NewServer(sim)
	defer vendor.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sim.Run(ctx) }()
	post := func(sim string) (*http.Response, error) {
		return vendor.Client().Post(vendor.URL+"/v1/predictions", "application/json", strings.NewReader(
			`{"model":"a/b","input":{"seed":9,"sim":`+sim+`},"webhook":"`+client.URL+`/h","webhook_events_filter":["completed"]}`))
	}
	resp, err := post(`{}`)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close() //nolint:errcheck // read nothing
	hook := <-hooks
	var end struct{ Status, Output string }
	if err := json.Unmarshal(hook.body, &end); err != nil || end.Status != "succeeded" || !hook.authentic() {
		t.Fatalf("webhook: %v %s", err, hook.body)
	}
	checkDownload(t, vendor.Client(), end.Output, Video(9))
	if _, err := post(`{"lost":true}`); err == nil {
		t.Error("the answer was not lost")
	}
	if hook := <-hooks; hook.word() != "succeeded" {
		t.Errorf("the lost job ends as %s", hook.word())
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if err := sim.Run(t.Context()); err == nil {
		t.Error("a second Run was accepted")
	}
}

func checkDownload(t *testing.T, client *http.Client, url string, want []byte) {
	t.Helper()
	get := func(header, value string) (*http.Response, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), "GET", url, nil)
		if err != nil {
			t.Fatal(err)
		}
		if header != "" {
			req.Header.Set(header, value)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // read to the end
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp, body
	}
	whole, body := get("", "")
	if whole.StatusCode != 200 || whole.ContentLength != int64(len(want)) || !bytes.Equal(body, want) ||
		whole.Header.Get("Content-Type") != "video/mp4" || whole.Header.Get("Accept-Ranges") != "bytes" {
		t.Errorf("whole: %d, %d bytes, %v", whole.StatusCode, len(body), whole.Header)
	}
	part, body := get("Range", "bytes=1000-1999")
	if part.StatusCode != http.StatusPartialContent || !bytes.Equal(body, want[1000:2000]) {
		t.Errorf("part: %d, %d bytes", part.StatusCode, len(body))
	}
	if same, _ := get("If-None-Match", whole.Header.Get("ETag")); same.StatusCode != http.StatusNotModified {
		t.Errorf("same: %d with %s", same.StatusCode, whole.Header.Get("ETag"))
	}
	if out, _ := get("Range", "bytes=99999999-"); out.StatusCode != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("beyond the end: %d", out.StatusCode)
	}
}
