package simulator

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// short asks for a job with one logs event, so that lists stay readable:
// start, logs, completed.
const short = `"queue":"1s","run":"1s"`

func TestTerminalWebhookIsRetried(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		b.answer = func(int, delivery) int { return http.StatusServiceUnavailable }
		b.predict(`{` + short + `}`)
		b.pass(3 * time.Minute)
		got := b.deliveries()
		if n := len(got); n != 2+1+6 {
			t.Fatalf("%d attempts, want start, logs and 1+6 for the end: %v", n, b.words())
		}
		end := got[2:]
		for i, d := range end {
			if want := time.Duration(1<<i-1) * time.Second; d.at.Sub(end[0].at) != want {
				t.Errorf("attempt %d came after %v, want %v", i, d.at.Sub(end[0].at), want)
			}
			if d.id != end[0].id || !d.authentic() || d.stamp != strconv.FormatInt(d.at.Unix(), 10) {
				t.Errorf("attempt %d: id %s, stamp %s at %d", i, d.id, d.stamp, d.at.Unix())
			}
		}
		st := b.sim.Stats().Webhooks
		if diff := cmp.Diff(WebhookStats{Emitted: 3, Attempts: 9, Failed: 9, GivenUp: 3}, st); diff != "" {
			t.Errorf("stats (-want +got):\n%s", diff)
		}
	})
}

func TestRetryStopsAtSuccess(t *testing.T) {
	for name, bad := range map[string]int{"refused": 0, "redirect": 301, "client error": 404, "server error": 500} {
		t.Run(name, func(t *testing.T) {
			inBox(t, Faults{}, func(t *testing.T, b *box) {
				b.answer = func(n int, _ delivery) int {
					if n < 2 {
						return bad
					}
					return http.StatusOK
				}
				b.film(`{}`)
				b.pass(time.Hour)
				if got := len(b.deliveries()); got != 3 {
					t.Errorf("%d attempts", got)
				}
			})
		})
	}
}

func TestOpenAIRetriesForDays(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		b.answer = func(int, delivery) int { return http.StatusInternalServerError }
		b.film(`{}`)
		b.pass(100 * time.Hour)
		got := b.deliveries()
		lasted := got[len(got)-1].at.Sub(got[0].at)
		if lasted < 71*time.Hour || lasted > 73*time.Hour {
			t.Errorf("%d attempts over %v", len(got), lasted)
		}
	})
}

// webhookFaults tells, for a job with start, logs and completed, which statuses
// the client receives and how many distinct ids they have.
var webhookFaults = []struct {
	sim   string
	words []string
	ids   int
}{
	{`{"drop":false}`, []string{"processing", "processing", "succeeded"}, 3},
	{`{"drop":true}`, []string{}, 0},
	{`{"webhooks_off":true}`, []string{}, 0},
	{`{"duplicate":true}`, []string{"processing", "processing", "processing", "processing", "succeeded", "succeeded"}, 3},
	{`{"duplicate_new_id":true}`, []string{"processing", "processing", "processing", "processing", "succeeded", "succeeded"}, 6},
	{`{"reorder":true}`, []string{"succeeded", "processing", "processing", "processing"}, 4},
	{`{"malformed_webhook":true}`, []string{"?", "?", "?"}, 3},
	{`{"contradict":true}`, []string{"processing", "processing", "failed", "succeeded"}, 4},
	{`{"contradict":true,"fail":true}`, []string{"processing", "processing", "succeeded", "failed"}, 4},
	{`{"fail":true}`, []string{"processing", "processing", "failed"}, 3},
	{`{"abort":true}`, []string{"processing", "processing", "aborted"}, 3},
	{`{"unknown_status":true}`, []string{"rendering_tiles", "rendering_tiles", "succeeded"}, 3},
	{`{"empty_output":true}`, []string{"processing", "processing", "succeeded"}, 3},
	{`{"instant":true}`, []string{"processing", "succeeded"}, 2},
}

func TestWebhookFaults(t *testing.T) {
	for _, tc := range webhookFaults {
		t.Run(tc.sim, func(t *testing.T) {
			inBox(t, Faults{}, func(t *testing.T, b *box) {
				b.predict("{" + short + "," + tc.sim[1:])
				b.pass(time.Minute)
				if diff := cmp.Diff(tc.words, b.words()); diff != "" {
					t.Errorf("webhooks (-want +got):\n%s", diff)
				}
				ids := map[string]bool{}
				for _, d := range b.deliveries() {
					ids[d.id] = true
					if !d.authentic() {
						t.Errorf("message %s does not verify", d.id)
					}
				}
				if len(ids) != tc.ids {
					t.Errorf("%d ids, want %d", len(ids), tc.ids)
				}
			})
		})
	}
}

func TestBadSignature(t *testing.T) {
	inBox(t, Faults{BadSignature: 1}, func(t *testing.T, b *box) {
		b.predict(`{` + short + `}`)
		b.pass(time.Minute)
		for _, d := range b.deliveries() {
			if d.authentic() || !strings.HasPrefix(d.signature, "v1,") {
				t.Errorf("signature %s", d.signature)
			}
		}
	})
}

func TestStaleWebhook(t *testing.T) {
	inBox(t, Faults{StaleWebhook: 1}, func(t *testing.T, b *box) {
		b.predict(`{` + short + `}`)
		b.pass(time.Minute)
		for _, d := range b.deliveries() {
			if want := d.at.Add(-10 * time.Minute).Unix(); d.stamp != strconv.FormatInt(want, 10) || !d.authentic() {
				t.Errorf("stamp %s, want %d", d.stamp, want)
			}
		}
	})
}

func TestDelayedWebhook(t *testing.T) {
	inBox(t, Faults{DelayWebhook: 1, DelayFor: 10 * time.Second}, func(t *testing.T, b *box) {
		b.film(`{` + short + `}`)
		due := time.Now().Add(2 * time.Second)
		b.pass(time.Minute)
		got := b.deliveries()
		if len(got) != 1 {
			t.Fatalf("%d webhooks", len(got))
		}
		if late := got[0].at.Sub(due); late < 5*time.Second || late > 15*time.Second {
			t.Errorf("came %v late", late)
		}
	})
}

// In OpenAI's shape a message is overtaken by other videos' messages.
func TestReorderVideos(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		first := b.film(`{` + short + `,"reorder":true}`)
		second := b.film(`{` + short + `}`)
		b.pass(time.Minute)
		got := b.deliveries()
		if len(got) != 2 || !strings.Contains(string(got[0].body), second) || !strings.Contains(string(got[1].body), first) {
			t.Errorf("%d webhooks, the first is %s", len(got), got[0].body)
		}
	})
}

func TestForeignEvent(t *testing.T) {
	inBox(t, Faults{ForeignEvent: 1}, func(t *testing.T, b *box) {
		b.film(`{}`)
		b.pass(time.Minute)
		if diff := cmp.Diff([]string{"response.completed", "video.completed"}, b.words()); diff != "" {
			t.Errorf("webhooks (-want +got):\n%s", diff)
		}
		for _, d := range b.deliveries() {
			if !d.authentic() {
				t.Errorf("message %s does not verify", d.id)
			}
		}
	})
}

func TestReorderStats(t *testing.T) {
	inBox(t, Faults{ReorderWebhook: 0.3, DropWebhook: 0.2, DuplicateWebhook: 0.2}, func(t *testing.T, b *box) {
		for range 300 {
			b.predict(`{` + short + `}`)
		}
		b.pass(time.Minute)
		st := b.sim.Stats()
		w := st.Webhooks
		if w.Emitted != 900 || w.Dropped < 120 || w.Dropped > 240 || w.Duplicated < 90 || w.Reordered < 140 {
			t.Errorf("stats: %+v", w)
		}
		if w.Attempts != w.Delivered || len(b.deliveries()) != w.Attempts {
			t.Errorf("%d arrived, stats: %+v", len(b.deliveries()), w)
		}
		if st.Injected["drop_webhook"] != w.Dropped || st.Injected["reorder_webhook"] != w.Reordered {
			t.Errorf("injected: %v", st.Injected)
		}
	})
}

// An older status after a newer one carries what it claims, not the newer data.
func TestOlderStatusIsConsistent(t *testing.T) {
	inBox(t, Faults{ReorderWebhook: 1}, func(t *testing.T, b *box) {
		b.predict(`{` + short + `}`)
		b.pass(time.Minute)
		got := reply{body: b.deliveries()[1].body}.json(t)
		if got["status"] != "processing" || got["completed_at"] != nil || got["output"] != nil {
			t.Errorf("got %v", got)
		}
	})
}

func TestFineProgress(t *testing.T) {
	inBox(t, Faults{FineProgress: 1}, func(t *testing.T, b *box) {
		b.predict(`{}`)
		b.pass(time.Minute)
		got := b.deliveries()
		if len(got) != 1+99+1 {
			t.Fatalf("%d webhooks", len(got))
		}
		last := -1
		for _, d := range got {
			logs, _ := reply{body: d.body}.json(t)["logs"].(string)
			lines := strings.Split(strings.TrimSpace(logs), "\n")
			percent, err := strconv.Atoi(strings.TrimSpace(strings.SplitN(lines[len(lines)-1], "%", 2)[0]))
			if err != nil || percent != last+1 {
				t.Fatalf("after %d %%: %q", last, lines[len(lines)-1])
			}
			last = percent
		}
	})
}

func TestManyBars(t *testing.T) {
	inBox(t, Faults{ManyBars: 1}, func(t *testing.T, b *box) {
		id := b.predict(`{}`)
		b.pass(time.Minute)
		logs := b.call("GET", "/v1/predictions/"+id, "").json(t)["logs"].(string)
		var percents []int
		for line := range strings.Lines(logs) {
			if p, _, ok := strings.Cut(line, "%|"); ok {
				n, err := strconv.Atoi(strings.TrimSpace(p))
				if err != nil {
					t.Fatal(err)
				}
				percents = append(percents, n)
			}
		}
		if slices.IsSorted(percents) || percents[len(percents)-1] != 100 {
			t.Errorf("bars: %v", percents)
		}
	})
}

func TestEarlyCallback(t *testing.T) {
	for _, create := range []string{"predict", "film"} {
		t.Run(create, func(t *testing.T) {
			inBox(t, Faults{EarlyCallback: 1}, func(t *testing.T, b *box) {
				var answered bool
				b.answer = func(int, delivery) int {
					if answered {
						t.Error("the create was answered before the callback")
					}
					return http.StatusNoContent
				}
				path, body, status, fresh := "/v1/predictions", `{"model":"a/b","input":{},"webhook":"`+testHook+`"}`, 201, "starting"
				if create == "film" {
					path, body, status, fresh = "/v1/videos", `{"prompt":"x"}`, 200, "queued"
				}
				r := b.call("POST", path, body)
				b.mu.Lock()
				answered = true
				seen := len(b.got)
				b.answer = nil
				b.mu.Unlock()
				if r.status != status || seen == 0 || r.json(t)["status"] != fresh {
					t.Errorf("%d webhooks before %d %s", seen, r.status, r.body)
				}
			})
		})
	}
}

func TestPrivateWebhookAddresses(t *testing.T) {
	t.Parallel()
	client := newClient(false)
	defer client.CloseIdleConnections()
	for _, url := range []string{"https://127.0.0.1:443/x", "https://10.0.0.1/x", "https://[::1]/x", "https://169.254.169.254/x"} {
		resp, err := client.Post(url, "application/json", http.NoBody)
		if err == nil {
			resp.Body.Close() //nolint:errcheck // the test fails anyway
			t.Errorf("%s was dialled", url)
		} else if !strings.Contains(err.Error(), "prohibited") {
			t.Errorf("%s: %v", url, err)
		}
	}
}
