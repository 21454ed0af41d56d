package vocabulary

import (
	"testing"

	"github.com/aivedio/aivedio/domain"
)

func TestTable(t *testing.T) {
	t.Parallel()
	table := New(Words{
		Queued: []string{"in_queue"}, Running: []string{"in_progress"}, Succeeded: []string{"done"},
		Failed: []string{"failed"}, Canceled: []string{"canceled"}, Expired: []string{"expired"},
	})
	for word, want := range map[string]domain.Observed{
		"in_progress": domain.ObservedRunning, "IN_PROGRESS": domain.ObservedRunning, "In Progress": domain.ObservedRunning,
		"in-progress": domain.ObservedRunning, " InProgress\n": domain.ObservedRunning, "IN QUEUE": domain.ObservedQueued,
		"Done": domain.ObservedSucceeded, "FAILED": domain.ObservedFailed, "Expired": domain.ObservedFailed, "canceled": domain.ObservedCanceled,
		"": domain.ObservedNone, " ": domain.ObservedNone, "undone": domain.ObservedNone, "failed?": domain.ObservedNone, "7": domain.ObservedNone, "dоne": domain.ObservedNone,
	} {
		if got := table.Observe(word); got != want {
			t.Errorf("%q: %q, want %q", word, got, want)
		}
	}
	if !table.Expired("EXPIRED") || table.Expired("failed") {
		t.Error("expired words are not told from failed ones")
	}
	if got := (Table{}).Observe("done"); got != domain.ObservedNone {
		t.Errorf("an empty table knows %q", got)
	}
}

func TestTwoMeanings(t *testing.T) {
	t.Parallel()
	defer func() {
		if recover() == nil {
			t.Error("a word with two meanings was taken")
		}
	}()
	New(Words{Queued: []string{"in progress"}, Running: []string{"IN_PROGRESS"}})
}
