package porttest_test

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/aivedio/aivedio/ports/porttest"
)

// printed is a writer that prints lines and ends.
func printed(lines ...string) func(int) *exec.Cmd {
	return func(int) *exec.Cmd {
		cmd := exec.Command(os.Args[0], "-test.run=^TestPrint$")
		cmd.Env = append(os.Environ(), "PORTTEST_PRINT="+strings.Join(lines, ""))
		return cmd
	}
}

// TestPrint is the process of printed.
func TestPrint(t *testing.T) {
	lines, ok := os.LookupEnv("PORTTEST_PRINT")
	if !ok {
		t.Skip("the child process of other tests")
	}
	os.Stdout.WriteString(lines)
}

// shown is a reader that sees these events.
func shown(events ...porttest.GapEvent) func(int) func(context.Context) ([]porttest.GapEvent, error) {
	return func(int) func(context.Context) ([]porttest.GapEvent, error) {
		return func(context.Context) ([]porttest.GapEvent, error) {
			now := events
			events = nil
			return now, nil
		}
	}
}

func TestGapReport(t *testing.T) {
	t.Parallel()
	one, two, three := porttest.GapEvent{Number: 1, Name: "a"}, porttest.GapEvent{Number: 2, Name: "b"}, porttest.GapEvent{Number: 3, Name: "c"}
	other := porttest.GapEvent{Number: 2, Name: "d"}
	line := func(e porttest.GapEvent) string { return porttest.GapLine(0, e) }
	tests := []struct {
		name    string
		written []string
		seen    []porttest.GapEvent
		want    porttest.GapReport
	}{
		{"all", []string{line(one), line(two), line(three)}, []porttest.GapEvent{one, two, three}, porttest.GapReport{Committed: 3}},
		{"unreported", []string{line(one)}, []porttest.GapEvent{one, two}, porttest.GapReport{Committed: 1}},
		{"lost", []string{line(one), line(two), line(three)}, []porttest.GapEvent{one, three}, porttest.GapReport{Committed: 3, Lost: 1, Gaps: 1}},
		{"lost at the end", []string{line(one), line(two)}, []porttest.GapEvent{one}, porttest.GapReport{Committed: 2, Lost: 1}},
		{"disordered", []string{line(one), line(two)}, []porttest.GapEvent{two, one}, porttest.GapReport{Committed: 2, Gaps: 1, Disordered: 1}},
		{"replaced", []string{line(one), line(two)}, []porttest.GapEvent{one, other}, porttest.GapReport{Committed: 2, Lost: 1}},
		{"renumbered", []string{line(one), line(porttest.GapEvent{Number: 3, Name: "b"})}, []porttest.GapEvent{one, two}, porttest.GapReport{Committed: 2, Renumbered: 1}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := porttest.RunGap(t.Context(), porttest.Gap{Writers: 1, Command: printed(test.written...), Streams: 1, Readers: 1, Follow: shown(test.seen...)})
			if err != nil {
				t.Fatal(err)
			}
			faulty := test.want.Lost+test.want.Gaps+test.want.Disordered+test.want.Renumbered > 0
			if (got.Example != "") != faulty {
				t.Errorf("example %q", got.Example)
			}
			if got.Example = ""; got != test.want {
				t.Errorf("report %+v, want %+v", got, test.want)
			}
		})
	}
}

func TestGapReportsFailedWriter(t *testing.T) {
	t.Parallel()
	_, err := porttest.RunGap(t.Context(), porttest.Gap{
		Writers: 1, Command: printed("gap x\n"), Streams: 1, Readers: 1, Follow: shown(),
	})
	if err == nil || !strings.Contains(err.Error(), "gap x") {
		t.Errorf("error %v, want one that shows the line", err)
	}
}
