package simulator

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

// vendor is a box with a journal that can be killed and started again.
type vendor struct {
	*box
	cfg  Config
	end  func()
	told []delivery // by the starts before
}

func startVendor(t *testing.T, cfg Config) *vendor {
	t.Helper()
	if cfg.WebhookSecret == "" {
		cfg.WebhookSecret = testSecret
	}
	cfg.Jitter, cfg.OpenAIWebhookURL = -1, "https://client.example/hook/a/main"
	v := &vendor{cfg: cfg}
	v.start(t)
	t.Cleanup(func() { v.end() })
	return v
}

// start opens the journal and runs.
func (v *vendor) start(t *testing.T) {
	t.Helper()
	b := &box{t: t}
	if v.box != nil {
		b.answer = v.answer
	}
	cfg := v.cfg
	cfg.Client = &http.Client{Transport: b}
	sim, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b.sim, v.box = sim, b
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- sim.Run(ctx) }()
	v.end = func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := sim.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		v.end = func() {}
	}
	synctest.Wait()
}

// restart ends the vendor as kill -9 does: what it would still have sent or
// written is lost. It starts again after a while.
func (v *vendor) restart(t *testing.T, down time.Duration) {
	t.Helper()
	kept, err := os.ReadFile(v.cfg.Journal)
	if err != nil {
		t.Fatal(err)
	}
	v.told = append(v.told, v.deliveries()...)
	v.end()
	if err := os.WriteFile(v.cfg.Journal, kept, 0o600); err != nil {
		t.Fatal(err)
	}
	v.pass(down)
	v.start(t)
}

func (v *vendor) all() []delivery { return append(v.told[:len(v.told):len(v.told)], v.deliveries()...) }

// bodies are the messages by id; one id with two bodies is an error.
func bodies(t *testing.T, got []delivery) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, d := range got {
		if before, ok := out[d.id]; ok && before != string(d.body) {
			t.Errorf("%s says two things:\n%s\n%s", d.id, before, d.body)
		}
		out[d.id] = string(d.body)
	}
	return out
}

// script is everything that can happen to jobs, and when.
var script = []struct {
	at time.Duration
	do func(b *box)
}{
	{0, func(b *box) {
		for _, sim := range []string{
			`{}`, `{"contradict":true}`, `{"reorder":true}`, `{"reorder":0.5,"delay":0.5,"duplicate":0.5,"duplicate_new_id":0.5}`,
			`{"delay":true,"delay_for":"3s"}`, `{"instant":true}`, `{"early":true}`, `{"empty":true}`, `{"fail":true}`,
			`{"many_bars":true}`, `{"not_found":true}`, `{"drop":0.5}`, `{"queue":"3s","run":"1s","output":"array"}`,
		} {
			b.call("POST", "/v1/predictions", predictionBody(sim))
		}
		for _, sim := range []string{`{}`, `{"fail":"moderation"}`, `{"foreign_event":true,"delay":true}`, `{"contradict":true}`, `{"synonym_status":true}`} {
			b.film(sim)
		}
	}},
	{1500 * time.Millisecond, func(b *box) {
		b.call("POST", "/v1/predictions/"+b.sim.Jobs(0)[17].ID+"/cancel", "")
		b.call("POST", "/_sim/jobs/"+b.sim.Jobs(0)[16].ID+"/finish", `{"status":"failed","fail_kind":"text"}`)
	}},
	{2 * time.Second, func(b *box) { b.call("POST", "/_sim/faults", `{"drop":0.3,"empty":0.3,"fail":0.3,"duplicate":0.3}`) }},
	{2500 * time.Millisecond, func(b *box) {
		for range 4 {
			b.predict(`{}`)
			b.film(`{}`)
		}
	}},
	{6 * time.Second, func(b *box) {
		b.call("DELETE", "/v1/videos/"+b.sim.Jobs(0)[8].ID, "")
		b.call("POST", "/_sim/jobs/"+b.sim.Jobs(0)[7].ID+"/finish", `{"status":"failed"}`)
	}},
}

// A vendor that is killed at any moment, and not at all, ends the same: the same
// jobs with the same answers and outputs, the same messages under the same ids,
// none lost.
func TestRestartAtEveryMoment(t *testing.T) {
	t.Parallel()
	const tick = 250 * time.Millisecond
	for moment := time.Duration(0); moment <= 8*time.Second; moment += tick {
		t.Run(moment.String(), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "j")
			synctest.Test(t, func(t *testing.T) {
				steady := startVendor(t, Config{Seed: 7})
				killed := startVendor(t, Config{Seed: 7, Journal: file})
				for now := time.Duration(0); now <= 10*time.Second; now += tick {
					for _, line := range script {
						if line.at == now {
							line.do(steady.box)
							line.do(killed.box)
						}
					}
					if now == moment || now == moment+time.Second {
						killed.cfg.Faults = killed.sim.Faults() // a start has its own
						killed.restart(t, 0)
						killed.sim.boot = steady.sim.boot // or later jobs have other ids
					}
					steady.pass(tick)
				}
				steady.pass(time.Minute)
				compare(t, steady, killed)
			})
		})
	}
}

// The vendor's jobs go on while it is down, and what they would have told is told
// afterwards.
func TestJobsGoOnWhileDown(t *testing.T) {
	t.Parallel()
	for _, moment := range []time.Duration{0, 500 * time.Millisecond, 1200 * time.Millisecond, 4900 * time.Millisecond} {
		t.Run(moment.String(), func(t *testing.T) {
			t.Parallel()
			file := filepath.Join(t.TempDir(), "j")
			synctest.Test(t, func(t *testing.T) {
				steady := startVendor(t, Config{Seed: 7})
				killed := startVendor(t, Config{Seed: 7, Journal: file})
				script[0].do(steady.box)
				script[0].do(killed.box)
				steady.pass(moment)
				killed.restart(t, time.Minute)
				compare(t, steady, killed)
			})
		})
	}
}

func compare(t *testing.T, steady, killed *vendor) {
	t.Helper()
	if diff := cmp.Diff(bodies(t, steady.all()), bodies(t, killed.all())); diff != "" {
		t.Errorf("messages (-steady +killed):\n%s", diff)
	}
	want, got := steady.sim.Jobs(0), killed.sim.Jobs(0)
	for i := range want {
		want[i].Queries = 0
	}
	for i := range got {
		got[i].Queries = 0
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatalf("jobs (-steady +killed):\n%s", diff)
	}
	for _, j := range want {
		path := "/v1/predictions/" + j.ID
		if j.Vendor == "openai" {
			path = "/v1/videos/" + j.ID
		}
		a, b := steady.call("GET", path, ""), killed.call("GET", path, "")
		if a.status != b.status || string(a.body) != string(b.body) {
			t.Errorf("%s: %d %s\nafter a restart: %d %s", path, a.status, a.body, b.status, b.body)
		}
	}
	a, b := steady.sim.Stats(), killed.sim.Stats()
	if a.Creates != b.Creates || a.CreateCalls != b.CreateCalls || !cmp.Equal(a.CreatesByKey, b.CreatesByKey) || a.Webhooks.Emitted != b.Webhooks.Emitted {
		t.Errorf("stats %+v\nafter a restart: %+v", a, b)
	}
}

// Only terminal messages are tried again, and a restart does not begin their
// retries anew.
func TestRetriesGoOnAfterRestart(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		v := startVendor(t, Config{Seed: 7, Journal: file})
		v.answer = func(int, delivery) int { return http.StatusServiceUnavailable }
		id := v.predict(`{}`)
		v.pass(5500 * time.Millisecond) // the first try of the terminal failed at 5 s
		v.restart(t, 0)
		v.pass(time.Second) // the second fails at 6 s
		v.restart(t, 20*time.Second)
		v.pass(5 * time.Minute)
		var tries []string
		seen := map[string]int{}
		for _, d := range v.all() {
			seen[d.id]++
			if d.word() == "succeeded" && seen[d.id] > 0 && strings.Contains(string(d.body), id) {
				tries = append(tries, d.at.Sub(v.all()[0].at).String())
			}
		}
		// One second after the create comes the first webhook; the third try was
		// due at 8 s, the vendor was away until 26.5 s.
		if want := []string{"4s", "5s", "25.5s", "29.5s", "37.5s", "53.5s", "1m25.5s"}; !cmp.Equal(tries, want) {
			t.Errorf("tries of the terminal %v, want %v", tries, want)
		}
		for id, n := range seen {
			if n != 1 && n != len(tries) {
				t.Errorf("message %s was tried %d times", id, n)
			}
		}
		v.restart(t, 0)
		v.pass(time.Hour)
		if got := len(v.deliveries()); got != 0 {
			t.Errorf("%d tries after the vendor gave up", got)
		}
	})
}

// A clean stop is a restart like any other.
func TestCleanStop(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		v := startVendor(t, Config{Journal: file, WebhookSecret: testSecret})
		id := v.predict(`{"run":"1h"}`)
		v.pass(2 * time.Second)
		v.end()
		v.start(t)
		if got := v.status(id); got != "processing" {
			t.Errorf("a running job is %s", got)
		}
		v.pass(2 * time.Hour)
		if got := v.status(id); got != "succeeded" {
			t.Errorf("it ended as %s", got)
		}
	})
}

// Ids are not used twice, not even that of a create whose line was lost.
func TestIDsAreUniqueAcrossRestarts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		v := startVendor(t, Config{Seed: 7, Journal: file})
		seen := map[string]bool{}
		for i := range 6 {
			before, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			id := v.predict(`{}`)
			if seen[id] {
				t.Fatalf("start %d gives %s out again", i, id)
			}
			seen[id] = true
			if i%2 == 1 { // a power cut took the line
				if err := os.WriteFile(file, before, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			v.pass(time.Millisecond)
			v.restart(t, time.Millisecond)
		}
	})
}

// When the vendor comes back under another address its jobs are found there, and
// what it has yet to tell is told under new ids.
func TestMovedVendor(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		v := startVendor(t, Config{Journal: file, PublicURL: "http://old.example"})
		v.answer = func(int, delivery) int { return http.StatusBadGateway }
		id := v.predict(`{"instant":true}`)
		v.pass(100 * time.Millisecond)
		v.cfg.PublicURL = "http://new.example/"
		v.restart(t, time.Minute)
		v.pass(time.Minute)
		bodies(t, v.all())
		if got := v.call("GET", "/v1/predictions/"+id, "").json(t)["output"]; got != "http://new.example/files/"+id+"/out.mp4" {
			t.Errorf("output %v", got)
		}
		if n := len(v.deliveries()); n == 0 || !strings.Contains(string(v.deliveries()[n-1].body), "http://new.example/files/") {
			t.Errorf("%d deliveries after the move", n)
		}
	})
}

func TestJournalKeepsSeedAndSecret(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "j")
	first := New(Config{Journal: file})
	second := New(Config{Journal: file})
	if first.cfg.Seed != second.cfg.Seed || first.WebhookSecret() != second.WebhookSecret() {
		t.Error("a second start has another seed or secret")
	}
	if sig := signWith(second.secret, "x", time.Unix(1, 0), nil); sig != signWith(first.secret, "x", time.Unix(1, 0), nil) {
		t.Error("a second start signs otherwise")
	}
	_, err := Open(Config{Journal: file, Seed: first.cfg.Seed + 1})
	if err == nil || !strings.Contains(err.Error(), fmt.Sprint(first.cfg.Seed)) || !strings.Contains(err.Error(), file) {
		t.Errorf("another seed: %v", err)
	}
	if again := New(Config{Journal: file, WebhookSecret: testSecret}); again.WebhookSecret() != testSecret {
		t.Error("a configured secret does not win")
	}
	for _, s := range []*Simulator{first, second} {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
}
