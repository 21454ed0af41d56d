package porttest

import (
	"testing"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// DueIndexFixture is an empty index.
type DueIndexFixture struct {
	Index ports.DueIndex
	// Flush forgets everything.
	Flush func(t *testing.T)
}

// DueIndex runs the conformance suite of [ports.DueIndex].
func DueIndex(t *testing.T, open func(t *testing.T) DueIndexFixture) {
	tests := []struct {
		name string
		run  func(*testing.T, DueIndexFixture)
	}{
		{"EarliestFirst", dueEarliestFirst},
		{"TakenOnce", dueTakenOnce},
		{"NeverEarly", dueNeverEarly},
		{"Flushed", dueFlushed},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, open(t))
		})
	}
}

// dueStart is the time of the suite.
var dueStart = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func noteDue(t *testing.T, index ports.DueIndex, after ...time.Duration) {
	t.Helper()
	var moments []time.Time
	for _, d := range after {
		moments = append(moments, dueStart.Add(d))
	}
	if err := index.Note(t.Context(), moments); err != nil {
		t.Fatalf("Note: %v", err)
	}
}

// wantDue asks at a time and compares; next 0 means that none is known.
func wantDue(t *testing.T, index ports.DueIndex, at time.Duration, due bool, next time.Duration) {
	t.Helper()
	answer, err := index.Next(t.Context(), dueStart.Add(at))
	if err != nil {
		t.Fatalf("Next: %v", err)
	}
	want := time.Time{}
	if next != 0 {
		want = dueStart.Add(next)
	}
	if answer.Due != due || !answer.Next.Equal(want) {
		t.Errorf("at %v: due %v, next %v; want %v, %v", at, answer.Due, answer.Next, due, want)
	}
}

func dueEarliestFirst(t *testing.T, f DueIndexFixture) {
	wantDue(t, f.Index, 0, false, 0)
	noteDue(t, f.Index)
	noteDue(t, f.Index, 3*time.Second, time.Second, 2*time.Second)
	wantDue(t, f.Index, 0, false, time.Second)
	wantDue(t, f.Index, 2500*time.Millisecond, true, 3*time.Second)
	wantDue(t, f.Index, time.Hour, true, 0)
}

func dueTakenOnce(t *testing.T, f DueIndexFixture) {
	noteDue(t, f.Index, time.Second, time.Second, 1001*time.Millisecond)
	taken := make([]bool, 8)
	together(len(taken), func(i int) {
		answer, err := f.Index.Next(t.Context(), dueStart.Add(time.Minute))
		if err != nil {
			t.Errorf("Next: %v", err)
		}
		taken[i] = answer.Due
	})
	n := 0
	for _, due := range taken {
		if due {
			n++
		}
	}
	if n != 1 {
		t.Errorf("%d callers were told of one moment", n)
	}
	noteDue(t, f.Index, time.Second)
	wantDue(t, f.Index, time.Minute, true, 0)
}

func dueNeverEarly(t *testing.T, f DueIndexFixture) {
	const at = 1010*time.Millisecond + 1
	noteDue(t, f.Index, at)
	wantDue(t, f.Index, at-1, false, 1050*time.Millisecond)
	wantDue(t, f.Index, at+50*time.Millisecond, true, 0)
}

func dueFlushed(t *testing.T, f DueIndexFixture) {
	noteDue(t, f.Index, time.Second)
	f.Flush(t)
	wantDue(t, f.Index, time.Minute, false, 0)
	noteDue(t, f.Index, 2*time.Second)
	wantDue(t, f.Index, time.Second, false, 2*time.Second)
}
