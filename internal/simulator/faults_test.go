package simulator

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFaultsJSON(t *testing.T) {
	t.Parallel()
	f := Faults{DropWebhook: 0.5, HangFor: time.Second}
	if err := json.Unmarshal([]byte(`{"fail":true,"duplicate":0.25,"delay_for":"3s","fail_kind":"text"}`), &f); err != nil {
		t.Fatal(err)
	}
	want := Faults{DropWebhook: 0.5, HangFor: time.Second, Fail: 1, DuplicateWebhook: 0.25, DelayFor: 3 * time.Second, FailKind: "text"}
	if diff := cmp.Diff(want, f); diff != "" {
		t.Errorf("merged faults (-want +got):\n%s", diff)
	}
	body, err := json.Marshal(f)
	if err != nil {
		t.Fatal(err)
	}
	var again Faults
	if err := json.Unmarshal(body, &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(f, again); diff != "" {
		t.Errorf("round trip (-want +got):\n%s", diff)
	}
}

func TestFaultsRefuse(t *testing.T) {
	t.Parallel()
	for _, in := range []string{
		`[]`, `{"nonsense":1}`, `{"fail":2}`, `{"fail":-0.1}`, `{"fail":"often"}`, `{"fail":"NaN"}`, `{"fail":null}`,
		`{"fail_kind":"bored"}`, `{"fail_kind":1}`, `{"delay_for":5}`, `{"delay_for":"-1s"}`, `{"delay_for":"soon"}`,
	} {
		f := Faults{Abort: 0.5}
		if err := json.Unmarshal([]byte(in), &f); err == nil {
			t.Errorf("%s was accepted", in)
		}
		if (f != Faults{Abort: 0.5}) {
			t.Errorf("%s: refused, but changed the faults to %+v", in, f)
		}
	}
}

// The package comment is where a user looks the faults up.
func TestEveryFaultIsDocumented(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	words := strings.FieldsFunc(string(doc), func(r rune) bool { return !strings.ContainsRune("abcdefghijklmnopqrstuvwxyz_0123456789", r) })
	seen := map[string]bool{}
	for _, w := range words {
		seen[w] = true
	}
	for key := range faultFields {
		if !seen[key] {
			t.Errorf("doc.go does not mention %s", key)
		}
	}
	for short, long := range faultWords {
		if _, ok := faultFields[long]; !ok {
			t.Errorf("%s stands for %s, which does not exist", short, long)
		}
	}
}

func TestDirective(t *testing.T) {
	t.Parallel()
	d, err := parseDirective("a kite [sim:fail=moderation] at [sim:drop] dawn [sim:run=2s] [sim:reorder=0.5]",
		json.RawMessage(`{"drop":0.25,"key":"k1","queue":"0s","output":"array","ttl":"1m"}`))
	if err != nil {
		t.Fatal(err)
	}
	want := Faults{Fail: 1, FailKind: "moderation", DropWebhook: 0.25, ReorderWebhook: 0.5}
	if diff := cmp.Diff(want, d.own); diff != "" {
		t.Errorf("faults (-want +got):\n%s", diff)
	}
	for _, key := range []string{"fail", "fail_kind", "drop_webhook", "reorder_webhook"} {
		if !d.set[key] {
			t.Errorf("%s is not marked as set", key)
		}
	}
	if *d.run != 2*time.Second || *d.queue != 0 || *d.ttl != time.Minute || d.key != "k1" || d.shape != "array" {
		t.Errorf("got run %v, queue %v, ttl %v, key %q, shape %q", *d.run, *d.queue, *d.ttl, d.key, d.shape)
	}
}

func TestDirectiveRefuses(t *testing.T) {
	t.Parallel()
	for prompt, object := range map[string]string{
		"[sim:flail]": ``, "[sim:run]": ``, "[sim:drop=1.5]": ``, "[sim:output=tar]": ``,
		"a": `[]`, "b": `{"drop":"x"}`, "c": `{"key":1}`, "d": `{"run":3}`, "e": `{"nothing":true}`, "f": `{`,
	} {
		if _, err := parseDirective(prompt, json.RawMessage(object)); err == nil {
			t.Errorf("%q %s was accepted", prompt, object)
		}
	}
}

// A job's own zero wins over the vendor's rate.
func TestOwnFaultsWin(t *testing.T) {
	inBox(t, Faults{Fail: 1, FailKind: "text"}, func(t *testing.T, b *box) {
		good, bad := b.predict(`{"fail":false}`), b.predict(`{}`)
		b.pass(6 * time.Second)
		if got := b.status(good) + " " + b.status(bad); got != "succeeded failed" {
			t.Errorf("got %s", got)
		}
	})
}

// The same seed makes the same decisions, another one makes others.
func TestDrawsAreSeeded(t *testing.T) {
	t.Parallel()
	outcomes := func(seed uint64) string {
		s := New(Config{Seed: seed, Faults: Faults{Fail: 0.5, DropWebhook: 0.3}})
		s.mu.Lock()
		defer s.mu.Unlock()
		var out strings.Builder
		for range 200 {
			j := s.mustTake(t, &order{dialect: replicate, sim: directive{}}, "")
			out.WriteByte(j.outcome[0])
			if s.hit(&j.sim, "drop_webhook", j.seq, 3) {
				out.WriteByte('-')
			}
		}
		return out.String()
	}
	first, again := outcomes(1), outcomes(1)
	if first != again {
		t.Error("one seed, two outcomes")
	}
	if first == outcomes(2) {
		t.Error("two seeds, one outcome")
	}
	if n := strings.Count(outcomes(1), "f"); n < 75 || n > 125 {
		t.Errorf("a rate of 0.5 struck %d of 200 times", n)
	}
}
