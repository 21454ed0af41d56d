package simulator

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestPredictionLifecycle(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		r := b.call("POST", "/v1/predictions", predictionBody(`{}`))
		if r.status != http.StatusCreated {
			t.Fatalf("create: %d %s", r.status, r.body)
		}
		made := r.json(t)
		id := made["id"].(string)
		if made["status"] != "starting" || made["started_at"] != nil || made["output"] != nil || made["error"] != nil ||
			made["completed_at"] != nil || made["webhook"] != testHook || made["data_removed"] != false {
			t.Errorf("answer to create: %s", r.body)
		}
		if in := made["input"].(map[string]any); in["prompt"] != "a red kite" {
			t.Errorf("input is not echoed: %v", in)
		}
		if get := made["urls"].(map[string]any)["get"]; get != "http://example.com/v1/predictions/"+id {
			t.Errorf("urls.get is %v", get)
		}
		b.pass(2 * time.Second)
		if got := b.status(id); got != "processing" {
			t.Errorf("after 2 s: %s", got)
		}
		b.pass(4 * time.Second)
		end := b.call("GET", "/v1/predictions/"+id, "").json(t)
		if end["status"] != "succeeded" || end["output"] != "http://example.com/files/"+id+"/out.mp4" ||
			end["metrics"].(map[string]any)["predict_time"] != 4.0 {
			t.Errorf("in the end: %v", end)
		}
		if logs := end["logs"].(string); !strings.Contains(logs, "100%|██████████| 50/50 [00:04<00:00, 12.50it/s]\n") {
			t.Errorf("logs: %s", logs)
		}
		checkOrder(t, b)
	})
}

// checkOrder: start, then logs with growing bars, then one terminal, all signed.
func checkOrder(t *testing.T, b *box) {
	t.Helper()
	got := b.deliveries()
	ids := map[string]bool{}
	for i, d := range got {
		if !d.authentic() {
			t.Errorf("delivery %d does not verify", i)
		}
		if d.url != testHook {
			t.Errorf("delivery %d went to %s", i, d.url)
		}
		ids[d.id] = true
	}
	if len(ids) != len(got) {
		t.Errorf("%d messages share %d ids", len(got), len(ids))
	}
	want := []string{"processing"} // start
	for range 7 {
		want = append(want, "processing") // logs every 500 ms, 4 s excluded
	}
	want = append(want, "succeeded")
	if diff := cmp.Diff(want, b.words()); diff != "" {
		t.Errorf("webhooks (-want +got):\n%s", diff)
	}
}

func TestPredictionCreateForms(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		for _, tc := range []struct{ path, body, model string }{
			{"/v1/predictions", `{"version":"acme/vid:abc","input":{}}`, "acme/vid"},
			{"/v1/predictions", `{"version":"acme/vid","input":{}}`, "acme/vid"},
			{"/v1/predictions", `{"version":"abc123","input":{}}`, "sim/video"},
			{"/v1/predictions", `{"model":"acme/vid","input":{}}`, "acme/vid"},
			{"/v1/models/acme/vid/predictions", `{"input":{}}`, "acme/vid"},
		} {
			r := b.call("POST", tc.path, tc.body)
			if r.status != http.StatusCreated {
				t.Errorf("%s %s: %d %s", tc.path, tc.body, r.status, r.body)
				continue
			}
			if got := r.json(t); got["model"] != tc.model || got["version"] == "" {
				t.Errorf("%s %s: model %v, version %v", tc.path, tc.body, got["model"], got["version"])
			}
		}
	})
}

func TestPredictionRefusals(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		for _, tc := range []struct {
			body  string
			want  int
			field string
		}{
			{`{`, 400, ""},
			{`[]`, 400, ""},
			{`{"model":7,"input":{}}`, 400, ""},
			{`{"input":{}}`, 422, "version"},
			{`{"model":"noslash","input":{}}`, 422, "model"},
			{`{"model":"a/b"}`, 422, "input"},
			{`{"model":"a/b","input":"x"}`, 422, "input"},
			{`{"model":"a/b","input":{"seed":-1}}`, 422, "input.seed"},
			{`{"model":"a/b","input":{"seed":1.5}}`, 422, "input.seed"},
			{`{"model":"a/b","input":{"sim":{"no":1}}}`, 422, "input.sim"},
			{`{"model":"a/b","input":{},"webhook":"http://h.example/x"}`, 422, "webhook"},
			{`{"model":"a/b","input":{},"webhook":"/x"}`, 422, "webhook"},
			{`{"model":"a/b","input":{},"webhook_events_filter":["end"]}`, 422, "webhook_events_filter"},
			{`{"model":"a/b","input":{"prompt":"` + strings.Repeat("x", maxReplicateBody) + `"}}`, 413, ""},
		} {
			r := b.call("POST", "/v1/predictions", tc.body)
			got := r.json(t)
			if r.status != tc.want || r.header.Get("Content-Type") != "application/problem+json" || got["status"] != float64(tc.want) {
				t.Errorf("%.80s: %d %s", tc.body, r.status, r.body)
			}
			if tc.field != "" && got["invalid_fields"].([]any)[0].(map[string]any)["field"] != tc.field {
				t.Errorf("%.80s: %s", tc.body, r.body)
			}
		}
		if st := b.sim.Stats(); st.Creates != 0 || st.CreateInvalid != 14 {
			t.Errorf("stats: %+v", st)
		}
	})
}

func TestAuthorization(t *testing.T) {
	inBoxOf(t, Config{APIKey: "r8_key"}, func(t *testing.T, b *box) {
		for _, tc := range []struct {
			path, header string
			want         int
		}{
			{"/v1/webhooks/default/secret", "Bearer r8_key", 200},
			{"/v1/webhooks/default/secret", "bearer r8_key", 200},
			{"/v1/webhooks/default/secret", "Token r8_key", 200},
			{"/v1/webhooks/default/secret", "Bearer r8_other", 401},
			{"/v1/webhooks/default/secret", "Basic r8_key", 401},
			{"/v1/webhooks/default/secret", "", 401},
			{"/v1/videos/video_x", "Token r8_key", 401},
			{"/v1/videos/video_x", "Bearer r8_key", 404},
			{"/_sim/jobs", "", 401},
		} {
			req := httptest.NewRequestWithContext(t.Context(), "GET", tc.path, nil)
			req.Header.Set("Authorization", tc.header)
			if r := b.do(req); r.status != tc.want {
				t.Errorf("%s with %q: %d, want %d: %s", tc.path, tc.header, r.status, tc.want, r.body)
			}
		}
		if n := b.sim.Stats().Unauthorized; n != 5 {
			t.Errorf("%d unauthorized calls", n)
		}
	})
}

func TestWebhookSecretRoute(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		if got := b.call("GET", "/v1/webhooks/default/secret", "").json(t)["key"]; got != testSecret {
			t.Errorf("got %v", got)
		}
	})
}

func TestEventsFilter(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		create := func(filter string) {
			b.made(b.call("POST", "/v1/predictions", `{"model":"a/b","input":{"prompt":"x"},"webhook":"`+testHook+`"`+filter+`}`), 201)
			b.pass(6 * time.Second)
		}
		for _, tc := range []struct {
			filter string
			want   []string
		}{
			{``, []string{"processing", "succeeded"}}, // output, completed
			{`,"webhook_events_filter":["output"]`, []string{"processing"}},
			{`,"webhook_events_filter":["completed"]`, []string{"succeeded"}},
			{`,"webhook_events_filter":["start"]`, []string{"processing"}},
		} {
			before := len(b.words())
			create(tc.filter)
			if diff := cmp.Diff(tc.want, b.words()[before:]); diff != "" {
				t.Errorf("filter %q (-want +got):\n%s", tc.filter, diff)
			}
		}
		var output struct{ Output *string }
		if err := json.Unmarshal(b.deliveries()[0].body, &output); err != nil || output.Output == nil {
			t.Errorf("the output event carries no output: %s", b.deliveries()[0].body)
		}
	})
}

func TestCancelPrediction(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		id := b.predict(`{}`)
		b.pass(2 * time.Second)
		r := b.call("POST", "/v1/predictions/"+id+"/cancel", "")
		if r.status != http.StatusOK || r.json(t)["status"] != "canceled" {
			t.Errorf("cancel: %d %s", r.status, r.body)
		}
		b.pass(10 * time.Second)
		if got := b.status(id); got != "canceled" {
			t.Errorf("later: %s", got)
		}
		if words := b.words(); words[len(words)-1] != "canceled" {
			t.Errorf("webhooks: %v", words)
		}
		if r := b.call("POST", "/v1/predictions/"+id+"/cancel", ""); r.status != http.StatusOK {
			t.Errorf("second cancel: %d", r.status)
		}
		if r := b.call("POST", "/v1/predictions/unknown/cancel", ""); r.status != http.StatusNotFound {
			t.Errorf("cancel of nothing: %d", r.status)
		}
	})
}

func TestDataIsRemoved(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		id := b.predict(`{"ttl":"1m"}`)
		b.pass(6 * time.Second)
		if r := b.call("GET", "/files/"+id+"/out.mp4", ""); r.status != http.StatusOK {
			t.Fatalf("file: %d", r.status)
		}
		b.pass(time.Minute)
		got := b.call("GET", "/v1/predictions/"+id, "").json(t)
		if got["status"] != "succeeded" || got["data_removed"] != true || got["output"] != nil || got["logs"] != "" {
			t.Errorf("got %v", got)
		}
		if r := b.call("GET", "/files/"+id+"/out.mp4", ""); r.status != http.StatusNotFound {
			t.Errorf("file: %d", r.status)
		}
	})
}

func TestPreferWait(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		for _, tc := range []struct{ prefer, want string }{
			{"wait", "succeeded"}, {"wait=2", "processing"}, {"wait=30", "succeeded"}, {"respond-async", "starting"},
		} {
			req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/predictions", strings.NewReader(predictionBody(`{}`)))
			req.Header.Set("Prefer", tc.prefer)
			if got := b.do(req).json(t)["status"]; got != tc.want {
				t.Errorf("Prefer: %s: %v, want %s", tc.prefer, got, tc.want)
			}
		}
	})
}

func TestOutputShapes(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		for shape, want := range map[string]string{"string": `"URL"`, "array": `["URL"]`, "object": `{"video":"URL"}`} {
			id := b.predict(`{"output":"` + shape + `"}`)
			b.pass(6 * time.Second)
			var got struct{ Output json.RawMessage }
			if err := json.Unmarshal(b.call("GET", "/v1/predictions/"+id, "").body, &got); err != nil {
				t.Fatal(err)
			}
			if want := strings.Replace(want, "URL", "http://example.com/files/"+id+"/out.mp4", 1); string(got.Output) != want {
				t.Errorf("%s: got %s, want %s", shape, got.Output, want)
			}
		}
	})
}
