package statedoc

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
)

// TestPageIsCurrent fails when the committed page is not what the code gives.
func TestPageIsCurrent(t *testing.T) {
	t.Parallel()
	want, err := Render()
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile("../../docs/state-machine.md")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(want, "\n"), strings.Split(string(got), "\n")); diff != "" {
		t.Errorf("docs/state-machine.md is out of date: run `go generate ./domain` (-code +page):\n%s", diff)
	}
}

// TestPageIsWhole: every row and every word of the lists is on the page.
func TestPageIsWhole(t *testing.T) {
	t.Parallel()
	text, err := Render()
	if err != nil {
		t.Fatal(err)
	}
	var words []string
	for _, row := range domain.Transitions() {
		words = append(words, string(row.On), row.Why)
		if row.Why == "" {
			t.Errorf("the row of %s does not say why", row.On)
		}
	}
	for _, s := range domain.Statuses() {
		words = append(words, string(s))
	}
	for _, s := range domain.AttemptStatuses() {
		words = append(words, string(s))
	}
	for _, r := range domain.Reasons() {
		words = append(words, string(r))
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			t.Errorf("%q is not on the page", w)
		}
	}
}

// TestMissingWords: a new reason without an explanation is an error, and so is an
// explanation of something that is gone.
func TestMissingWords(t *testing.T) {
	t.Parallel()
	if _, err := described([]string{"a", "b"}, map[string]string{"a": "first"}); err == nil {
		t.Error("a word without an explanation passes")
	}
	if _, err := described([]string{"a"}, map[string]string{"a": "first", "b": "second"}); err == nil {
		t.Error("an explanation without a word passes")
	}
}

func TestDuration(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{2 * time.Second: "2 s", 5 * time.Minute: "5 min", time.Hour: "1 h", 90 * time.Second: "90 s", 1500 * time.Millisecond: "1.5s"} {
		if got := duration(d); got != want {
			t.Errorf("duration(%s) = %q, want %q", d, got, want)
		}
	}
}
