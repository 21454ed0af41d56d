package porttest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// Gap describes one run of the gap test: operating-system processes that write
// to shared streams, and readers that follow the streams with a cursor. It is
// about what only a real database between real processes can get wrong: a number
// that is drawn before it can be seen is passed over by a reader for ever.
type Gap struct {
	// Writers is how many processes write at the same time.
	Writers int
	// Command makes the process of a writer, not started. It prints a line made by
	// [GapLine] for each event, after its commit, and exits with 0.
	Command func(writer int) *exec.Cmd
	// Streams is how many streams there are.
	Streams int
	// Readers is how many readers follow each of them.
	Readers int
	// Follow opens a reader at the beginning of a stream. Each call of what it
	// returns gives the events behind those that it gave before; an error, for
	// instance a reset, ends the reader.
	Follow func(stream int) func(ctx context.Context) ([]GapEvent, error)
}

// GapEvent is an event as its writer and its readers see it.
type GapEvent struct {
	// Number is the place in the stream, from 1.
	Number int64
	// Name tells the event from all others of the stream, without a space.
	Name string
}

// GapLine is what a writer prints about a committed event.
func GapLine(stream int, e GapEvent) string {
	return fmt.Sprintf("gap %d %d %s\n", stream, e.Number, e.Name)
}

// GapReport is what a run has shown.
type GapReport struct {
	// Committed counts the events that writers were told of.
	Committed int
	// Lost counts committed events that a reader passed by; Gaps the places where
	// a number is not the one before plus one; Disordered those where it is not
	// above it; Renumbered events that a reader saw under another number than
	// their writer.
	Lost, Gaps, Disordered, Renumbered int
	// Example is one fault in words, empty when there is none.
	Example string
}

func (r *GapReport) fault(count *int, format string, args ...any) {
	*count++
	if r.Example == "" {
		r.Example = fmt.Sprintf(format, args...)
	}
}

// GapFree runs the gap test and fails unless every reader saw every event, in
// order and without a gap.
func GapFree(t *testing.T, g Gap) {
	t.Helper()
	report, err := RunGap(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d events by %d processes: %d lost, %d gaps, %d out of order", report.Committed, g.Writers, report.Lost, report.Gaps, report.Disordered)
	if report.Committed == 0 {
		t.Fatal("the writers wrote nothing")
	}
	if report.Example != "" {
		t.Errorf("%d lost, %d gaps, %d out of order, %d renumbered; for instance: %s", report.Lost, report.Gaps, report.Disordered, report.Renumbered, report.Example)
	}
}

// RunGap runs the writers with the readers behind them and compares what both
// saw. The error is of the run itself: a writer that failed, a reader that could
// not read.
func RunGap(ctx context.Context, g Gap) (GapReport, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	written := make([]map[int][]GapEvent, g.Writers)
	seen := make([][][]GapEvent, g.Readers)
	errs := make([]error, g.Writers+g.Readers)
	var done atomic.Bool
	var writers, readers sync.WaitGroup
	for i := range seen {
		readers.Go(func() { seen[i], errs[g.Writers+i] = g.read(ctx, &done) })
	}
	for i := range written {
		writers.Go(func() { written[i], errs[i] = runWriter(g.Command(i)) })
	}
	writers.Wait()
	done.Store(true)
	readers.Wait()
	return g.compare(written, seen), errors.Join(errs...)
}

// read follows all streams in turns. Once the writers are done, one more round
// shows all that can be seen.
func (g Gap) read(ctx context.Context, done *atomic.Bool) ([][]GapEvent, error) {
	seen := make([][]GapEvent, g.Streams)
	follow := make([]func(context.Context) ([]GapEvent, error), g.Streams)
	for stream := range follow {
		follow[stream] = g.Follow(stream)
	}
	for last := false; !last; {
		last = done.Load()
		for stream, next := range follow {
			for {
				events, err := next(ctx)
				if err != nil {
					return seen, fmt.Errorf("read stream %d: %w", stream, err)
				}
				if len(events) == 0 {
					break
				}
				seen[stream] = append(seen[stream], events...)
			}
		}
	}
	return seen, nil
}

// runWriter runs one process and collects what it printed, by stream.
func runWriter(cmd *exec.Cmd) (map[int][]GapEvent, error) {
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start a writer: %w", err)
	}
	written, rest, err := parseGapLines(stdout)
	if err := errors.Join(err, cmd.Wait()); err != nil {
		return nil, fmt.Errorf("writer %d: %w\n%s%s", cmd.Process.Pid, err, rest, stderr.String())
	}
	return written, nil
}

// parseGapLines reads the events of a writer and what else it said.
func parseGapLines(r io.Reader) (map[int][]GapEvent, string, error) {
	written := map[int][]GapEvent{}
	var rest strings.Builder
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		if !strings.HasPrefix(lines.Text(), "gap ") {
			rest.WriteString(lines.Text() + "\n")
			continue
		}
		var stream int
		var e GapEvent
		if _, err := fmt.Sscanf(lines.Text(), "gap %d %d %s", &stream, &e.Number, &e.Name); err != nil {
			return nil, rest.String(), fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		written[stream] = append(written[stream], e)
	}
	return written, rest.String(), lines.Err()
}

// compare judges what the readers saw by itself and by what was written.
func (g Gap) compare(written []map[int][]GapEvent, seen [][][]GapEvent) GapReport {
	var report GapReport
	for _, streams := range written {
		for _, events := range streams {
			report.Committed += len(events)
		}
	}
	for reader, streams := range seen {
		for stream, events := range streams {
			report.checkOrder(reader, stream, events)
			numbers := map[string]int64{}
			for _, e := range events {
				numbers[e.Name] = e.Number
			}
			for _, streams := range written {
				report.checkSeen(reader, stream, numbers, streams[stream])
			}
		}
	}
	return report
}

func (r *GapReport) checkOrder(reader, stream int, events []GapEvent) {
	last := int64(0)
	for _, e := range events {
		if e.Number <= last {
			r.fault(&r.Disordered, "reader %d of stream %d saw event %d after event %d", reader, stream, e.Number, last)
		} else if e.Number != last+1 {
			r.fault(&r.Gaps, "reader %d of stream %d saw event %d right after event %d", reader, stream, e.Number, last)
		}
		last = e.Number
	}
}

func (r *GapReport) checkSeen(reader, stream int, numbers map[string]int64, written []GapEvent) {
	for _, e := range written {
		if number, ok := numbers[e.Name]; !ok {
			r.fault(&r.Lost, "reader %d of stream %d never saw event %d (%s), which was committed", reader, stream, e.Number, e.Name)
		} else if number != e.Number {
			r.fault(&r.Renumbered, "reader %d of stream %d saw %s as event %d, its writer as %d", reader, stream, e.Name, number, e.Number)
		}
	}
}
