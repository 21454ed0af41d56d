package simulator

import (
	"bytes"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

func TestVideoLifecycle(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		r := b.call("POST", "/v1/videos", `{"model":"sora-2","prompt":"a red kite","seconds":"8","size":"1280x720"}`)
		made := r.json(t)
		id, _ := made["id"].(string)
		if r.status != http.StatusOK || made["object"] != "video" || made["status"] != "queued" || made["progress"] != 0.0 ||
			made["seconds"] != "8" || made["size"] != "1280x720" || made["error"] != nil || made["completed_at"] != nil {
			t.Errorf("create: %d %s", r.status, r.body)
		}
		if got := r.header.Get("openai-poll-after-ms"); got != "1000" {
			t.Errorf("poll hint %q", got)
		}
		b.pass(3 * time.Second)
		if got := b.call("GET", "/v1/videos/"+id, "").json(t); got["status"] != "in_progress" || got["progress"] != 50.0 {
			t.Errorf("in the middle: %v", got)
		}
		if r := b.call("GET", "/v1/videos/"+id+"/content", ""); r.status != http.StatusBadRequest {
			t.Errorf("content of an unfinished video: %d", r.status)
		}
		if r := b.call("DELETE", "/v1/videos/"+id, ""); r.status != http.StatusBadRequest {
			t.Errorf("delete of an unfinished video: %d", r.status)
		}
		b.pass(3 * time.Second)
		end := b.call("GET", "/v1/videos/"+id, "")
		got := end.json(t)
		if got["status"] != "completed" || got["progress"] != 100.0 || got["expires_at"].(float64)-got["completed_at"].(float64) != 3600 {
			t.Errorf("in the end: %v", got)
		}
		if end.header.Get("openai-poll-after-ms") != "" {
			t.Error("a finished video hints at another poll")
		}
		checkThinEvent(t, b, id)
	})
}

func checkThinEvent(t *testing.T, b *box, id string) {
	t.Helper()
	got := b.deliveries()
	if len(got) != 1 {
		t.Fatalf("%d webhooks", len(got))
	}
	event := reply{body: got[0].body}.json(t)
	if !got[0].authentic() || got[0].url != "https://client.example/hook/a/main" ||
		event["type"] != "video.completed" || event["object"] != "event" ||
		event["data"].(map[string]any)["id"] != id || len(event["data"].(map[string]any)) != 1 {
		t.Errorf("webhook %s to %s", got[0].body, got[0].url)
	}
	if event["id"] == got[0].id || got[0].id[:3] != "wh_" || event["id"].(string)[:4] != "evt_" {
		t.Errorf("ids: message %s, event %v", got[0].id, event["id"])
	}
}

func TestVideoContent(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		id := b.made(b.call("POST", "/v1/videos", `{"prompt":"x","seed":42}`), 200)
		b.pass(6 * time.Second)
		r := b.call("GET", "/v1/videos/"+id+"/content", "")
		if r.status != http.StatusOK || r.header.Get("Content-Type") != "video/mp4" || !bytes.Equal(r.body, Video(42)) {
			t.Errorf("content: %d, %d bytes", r.status, len(r.body))
		}
		if r := b.call("GET", "/v1/videos/"+id+"/content?variant=thumbnail", ""); r.status != http.StatusBadRequest {
			t.Errorf("thumbnail: %d", r.status)
		}
		if r := b.call("GET", "/v1/predictions/"+id, ""); r.status != http.StatusNotFound {
			t.Errorf("a video asked for as a prediction: %d", r.status)
		}
		b.pass(time.Hour)
		if r := b.call("GET", "/v1/videos/"+id+"/content", ""); r.status != http.StatusNotFound {
			t.Errorf("expired content: %d", r.status)
		}
		deleted := b.call("DELETE", "/v1/videos/"+id, "").json(t)
		if deleted["id"] != id || deleted["deleted"] != true || deleted["object"] != "video.deleted" {
			t.Errorf("delete: %v", deleted)
		}
		for _, call := range [][2]string{{"GET", ""}, {"DELETE", ""}, {"GET", "/content"}} {
			if r := b.call(call[0], "/v1/videos/"+id+call[1], ""); r.status != http.StatusNotFound {
				t.Errorf("%s%s after delete: %d", call[0], call[1], r.status)
			}
		}
	})
}

func TestFailedVideo(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		id := b.film(`{"fail":"moderation"}`)
		b.pass(6 * time.Second)
		r := b.call("GET", "/v1/videos/"+id, "")
		failure, _ := r.json(t)["error"].(map[string]any)
		if r.status != http.StatusOK || failure["code"] != "moderation_blocked" || failure["message"] == "" {
			t.Errorf("query: %d %s", r.status, r.body)
		}
		if got := b.words(); len(got) != 1 || got[0] != "video.failed" {
			t.Errorf("webhooks: %v", got)
		}
		if r := b.call("GET", "/v1/videos/"+id+"/content", ""); r.status != http.StatusNotFound {
			t.Errorf("content: %d", r.status)
		}
	})
}

func TestVideoMultipart(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		for _, kv := range [][2]string{{"prompt", "a kite"}, {"model", "sora-2-pro"}, {"seconds", "12"}, {"sim", `{"key":"form"}`}} {
			if err := form.WriteField(kv[0], kv[1]); err != nil {
				t.Fatal(err)
			}
		}
		file, err := form.CreateFormFile("input_reference", "first.png")
		if err != nil {
			t.Fatal(err)
		}
		file.Write([]byte("\x89PNG")) //nolint:errcheck // into memory
		form.Close()                  //nolint:errcheck // into memory
		req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/videos", &body)
		req.Header.Set("Content-Type", form.FormDataContentType())
		r := b.do(req)
		if got := r.json(t); r.status != http.StatusOK || got["model"] != "sora-2-pro" || got["seconds"] != "12" || got["prompt"] != "a kite" {
			t.Errorf("create: %d %s", r.status, r.body)
		}
		if n := b.sim.Stats().CreatesByKey["form"]; n != 1 {
			t.Errorf("counted %d times", n)
		}
	})
}

func TestVideoRefusals(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		for _, tc := range []struct {
			kind, body string
			want       int
			param      any
		}{
			{"application/json", `{`, 400, nil},
			{"application/json", `null`, 400, nil},
			{"application/json", `{}`, 400, "prompt"},
			{"application/json", `{"prompt":{}}`, 400, "prompt"},
			{"application/json", `{"prompt":"x","seconds":"many"}`, 400, "seconds"},
			{"application/json", `{"prompt":"x","seconds":0}`, 400, "seconds"},
			{"application/json", `{"prompt":"x","size":"big"}`, 400, "size"},
			{"application/json", `{"prompt":"x","seed":-1}`, 400, "seed"},
			{"application/json", `{"prompt":"x [sim:nothing]"}`, 400, "sim"},
			{"text/plain", `{}`, 415, nil},
			{"", `{}`, 415, nil},
			{"multipart/form-data", `x`, 400, nil},
			{"multipart/form-data; boundary=b", "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nhal", 400, nil},
			{"multipart/form-data; boundary=b", "--b--", 400, "prompt"},
		} {
			req := httptest.NewRequestWithContext(t.Context(), "POST", "/v1/videos", bytes.NewBufferString(tc.body))
			req.Header.Set("Content-Type", tc.kind)
			r := b.do(req)
			got, _ := r.json(t)["error"].(map[string]any)
			if r.status != tc.want || got["param"] != tc.param || got["type"] != "invalid_request_error" || got["message"] == "" {
				t.Errorf("%s %s: %d %s", tc.kind, tc.body, r.status, r.body)
			}
		}
	})
}
