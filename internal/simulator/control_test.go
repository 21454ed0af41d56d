package simulator

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
)

func TestChangeFaultsAtRunTime(t *testing.T) {
	inBox(t, Faults{Abort: 0.5}, func(t *testing.T, b *box) {
		r := b.call("POST", "/_sim/faults", `{"drop":1,"delay_for":"9s"}`)
		if got := r.json(t); r.status != 200 || got["drop_webhook"] != 1.0 || got["abort"] != 0.5 || got["delay_for"] != "9s" {
			t.Errorf("merge: %d %s", r.status, r.body)
		}
		if f := b.sim.Faults(); f != (Faults{Abort: 0.5, DropWebhook: 1, DelayFor: 9 * time.Second}) {
			t.Errorf("in force: %+v", f)
		}
		for _, bad := range []string{`{"drop":2}`, `{"nothing":1}`, `x`} {
			if r := b.call("POST", "/_sim/faults", bad); r.status != 400 {
				t.Errorf("%s: %d", bad, r.status)
			}
		}
		if r := b.call("POST", "/_sim/faults?reset=true", `{"fail":1}`); r.status != 200 || b.sim.Faults() != (Faults{Fail: 1}) {
			t.Errorf("reset: %d, %+v", r.status, b.sim.Faults())
		}
		if got := b.call("GET", "/_sim/faults", "").json(t); got["fail"] != 1.0 {
			t.Errorf("read back: %v", got)
		}
		id := b.predict(`{}`)
		b.pass(6 * time.Second)
		if got := b.status(id); got != "failed" {
			t.Errorf("a new job ends as %s", got)
		}
		if err := b.sim.SetFaults(Faults{Fail: 3}); err == nil {
			t.Error("SetFaults accepted a rate of 3")
		}
	})
}

func TestFinishJob(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		for _, tc := range []struct{ body, want, word string }{
			{``, "succeeded", "succeeded"},
			{`{"status":"failed","fail_kind":"text"}`, "failed", "failed"},
			{`{"status":"aborted"}`, "aborted", "aborted"},
		} {
			id := b.predict(`{}`)
			r := b.call("POST", "/_sim/jobs/"+id+"/finish", tc.body)
			if got := r.json(t); r.status != 200 || got["status"] != tc.want || got["id"] != id {
				t.Errorf("%s: %d %s", tc.body, r.status, r.body)
			}
			b.pass(10 * time.Second)
			if words := b.words(); words[len(words)-1] != tc.word || b.status(id) != tc.want {
				t.Errorf("%s: webhooks %v, query %s", tc.body, words, b.status(id))
			}
		}
		video := b.film(`{}`)
		if r := b.call("POST", "/_sim/jobs/"+video+"/finish", ""); r.status != 200 || b.status(video) != "completed" {
			t.Errorf("video: %d, %s", r.status, b.status(video))
		}
		// The vendor changes its mind about a finished job.
		b.call("POST", "/_sim/jobs/"+video+"/finish", `{"status":"failed"}`)
		if got := b.status(video); got != "failed" {
			t.Errorf("revised: %s", got)
		}
		for path, body := range map[string]string{
			"/_sim/jobs/" + video + "/finish": `{"status":"processing"}`, "/_sim/jobs/nothing/finish": ``,
			"/_sim/jobs/" + video + "/finish?": `{"fail_kind":"x"}`, "/_sim/jobs/" + video + "/finish?x": `[`,
		} {
			if r := b.call("POST", path, body); r.status/100 != 4 {
				t.Errorf("%s %s: %d", path, body, r.status)
			}
		}
	})
}

func TestJobsAndStatsRoutes(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		first := b.predict(`{"key":"k"}`)
		second := b.film(`{}`)
		b.status(first)
		b.pass(6 * time.Second)
		var list struct{ Jobs []JobInfo }
		if err := json.Unmarshal(b.call("GET", "/_sim/jobs?limit=0", "").body, &list); err != nil || len(list.Jobs) != 2 {
			t.Fatalf("%v: %+v", err, list)
		}
		if got := list.Jobs[0]; got.ID != second || got.Vendor != "openai" || got.Status != "succeeded" || got.Messages != 1 {
			t.Errorf("newest: %+v", got)
		}
		if got := list.Jobs[1]; got.ID != first || got.Key != "k" || got.Queries != 1 || got.Webhook != testHook || got.CompletedAt == nil {
			t.Errorf("oldest: %+v", got)
		}
		if got, ok := b.sim.Job(first); !ok || got.ID != first {
			t.Errorf("Job: %v %+v", ok, got)
		}
		if _, ok := b.sim.Job("nothing"); ok {
			t.Error("Job found nothing")
		}
		if err := json.Unmarshal(b.call("GET", "/_sim/jobs?limit=1", "").body, &list); err != nil || len(list.Jobs) != 1 {
			t.Errorf("%v: %+v", err, list)
		}
		if r := b.call("GET", "/_sim/jobs?limit=-1", ""); r.status != 400 {
			t.Errorf("limit -1: %d", r.status)
		}
		var st Stats
		if err := json.Unmarshal(b.call("GET", "/_sim/stats", "").body, &st); err != nil || st.Creates != 2 || st.Queries != 1 || st.Jobs["succeeded"] != 2 {
			t.Errorf("%v: %+v", err, st)
		}
	})
}

func TestUnknownRoutes(t *testing.T) {
	inBox(t, Faults{}, func(t *testing.T, b *box) {
		for _, path := range []string{"/", "/v1/nothing", "/v1/predictions/x/y", "/files/x/out.mp4"} {
			if r := b.call("GET", path, ""); r.status != 404 || !strings.Contains(string(r.body), `"detail"`) {
				t.Errorf("%s: %d %s", path, r.status, r.body)
			}
		}
	})
}
