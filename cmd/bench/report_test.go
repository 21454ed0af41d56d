package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestMedianAndPercentile(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []figure
		want   figure
	}{{nil, 0}, {[]figure{3}, 3}, {[]figure{9, 1, 5}, 5}, {[]figure{4, 1, 2, 3}, 2.5}} {
		if got := median(tt.values); got != tt.want {
			t.Errorf("median of %v is %v, want %v", tt.values, got, tt.want)
		}
	}
	hundred := make([]figure, 100)
	for i := range hundred {
		hundred[i] = figure(100 - i)
	}
	if got, want := quantilesOf(hundred), (quantiles{P50: 50, P99: 99}); got != want {
		t.Errorf("quantiles %v, want %v", got, want)
	}
	for p, want := range map[float64]figure{0: 1, 50: 50, 99: 99, 100: 100} {
		if got := percentile(hundred, p); got != want {
			t.Errorf("percentile %v is %v, want %v", p, got, want)
		}
	}
	if got := percentile([]figure(nil), 99); got != 0 {
		t.Errorf("percentile of nothing is %v", got)
	}
}

// goodSettings are those of a server that keeps what it acknowledges.
func goodSettings() map[string]string {
	return map[string]string{"fsync": "on", "synchronous_commit": "on", "full_page_writes": "on", "server_version": "17.5"}
}

// goodReport is one that may be used.
func goodReport() *report {
	r := newReport("converge", peerInsert)
	r.Settings = settings{Ours: goodSettings(), Peer: goodSettings()}
	r.ran("/bin/aivedio serve", 41, 0, 42)
	r.Rounds = append(r.Rounds, map[string]int{"n": 1})
	r.peer(peerInsert, []figure{90, 110}, r.ours("acknowledged_per_s", []figure{80, 90}))
	r.peer(peerNaive, nil, 7)
	return r
}

func TestReport(t *testing.T) {
	t.Parallel()
	r := goodReport()
	if diff := cmp.Diff(map[string]figure{peerInsert: 0.85}, r.Ratio); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]int{41, 42}, r.PIDs); diff != "" {
		t.Error(diff)
	}
	var table bytes.Buffer
	r.line("acknowledged", []figure{80, 90})
	r.peerLine(peerInsert, "one-row inserts", "≥ 0.7", []figure{90, 110})
	r.peerLine(peerNaive, "one by one", "≥ 3", nil)
	r.note("and %d more", 3)
	if err := r.writeTable(&table); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"85.000", "0.850", "≥ 0.7", "and 3 more", "fsync=on"} {
		if !strings.Contains(table.String(), want) {
			t.Errorf("%q is missing in\n%s", want, table.String())
		}
	}
	if strings.Contains(table.String(), "one by one") {
		t.Errorf("a peer that did not run is in\n%s", table.String())
	}
}

func TestVerdict(t *testing.T) {
	t.Parallel()
	if err := goodReport().verdict(); err != nil {
		t.Fatalf("a good report: %v", err)
	}
	for name, tt := range map[string]struct {
		spoil func(*report)
		want  string
	}{
		"no settings":       {func(r *report) { r.Settings = settings{} }, `fsync is ""`},
		"no fsync":          {func(r *report) { r.Settings.Ours["fsync"] = "off" }, `fsync is "off"`},
		"lazy commit":       {func(r *report) { r.Settings.Ours["synchronous_commit"] = "local" }, `synchronous_commit is "local"`},
		"unequal":           {func(r *report) { r.Settings.Peer["server_version"] = "16" }, "set up differently"},
		"no commands":       {func(r *report) { r.Commands = nil }, "command lines"},
		"no pids":           {func(r *report) { r.PIDs = nil }, "process ids"},
		"no rounds":         {func(r *report) { r.Rounds = nil }, "no round"},
		"no peer":           {func(r *report) { delete(r.Median.Peers, peerInsert) }, "pgbench did nothing"},
		"another is wanted": {func(r *report) { r.wanted = append(r.wanted, "river") }, "river did nothing"},
		"loss":              {func(r *report) { r.Lost = 1 }, "1 acknowledged"},
		"violation":         {func(r *report) { r.Violations = 2 }, "2 violations"},
	} {
		t.Run(strings.ReplaceAll(name, " ", "_"), func(t *testing.T) {
			t.Parallel()
			r := goodReport()
			tt.spoil(r)
			err := r.verdict()
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v, want %q", err, tt.want)
			}
			var out bytes.Buffer
			if code := exitCode(err, output{&out, &out}); code != exitInvalid {
				t.Errorf("exit %d, want %d", code, exitInvalid)
			}
		})
	}
}

func TestPeerlessRunIsValid(t *testing.T) {
	t.Parallel()
	r := goodReport()
	r.wanted, r.Settings.Peer, r.Median.Peers = nil, nil, nil
	if err := r.verdict(); err != nil {
		t.Error(err)
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	old, now := goodReport(), goodReport()
	now.Median.Ours["acknowledged_per_s"] *= 2
	now.Details["stream"] = latency{quantiles: quantiles{P50: 4, P99: 9}, Streams: 5}
	old.Details["stream"] = latency{quantiles: quantiles{P50: 8, P99: 0}, Streams: 5}
	path := filepath.Join(t.TempDir(), "old.json")
	var line bytes.Buffer
	if err := old.writeJSON(&line); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("some progress\n"+line.String()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	figures, err := readFigures(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := now.compareWith(figures); err != nil {
		t.Fatal(err)
	}
	want := map[string]figure{
		"median.ours.acknowledged_per_s": 2, "median.peers.pgbench": 1, "ratio.pgbench": 1,
		"details.stream.p50": 0.5, "details.stream.streams": 1,
	}
	if diff := cmp.Diff(want, now.Compared); diff != "" {
		t.Error(diff)
	}
}

// still is a scenario that finds what it is given.
type still struct {
	report report
	err    error
	closed bool
}

func (s *still) measure(_ context.Context, r *report, dir string) error {
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	wanted, name := r.wanted, r.Scenario
	*r = s.report
	r.wanted, r.Scenario = wanted, name
	return s.err
}
func (s *still) close() error       { s.closed = true; return nil }
func (s *still) complaints() string { return "what it logged" }

func TestConduct(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	s := &still{report: *goodReport()}
	if err := (printing{JSON: true}).conduct(t.Context(), output{&out, &errs}, newReport("still"), s); err != nil || !s.closed {
		t.Errorf("error %v, closed %t", err, s.closed)
	}
	var printed report
	if err := json.Unmarshal(out.Bytes(), &printed); err != nil || printed.Scenario != "still" {
		t.Errorf("%v: %s", err, out.String())
	}

	failure := errors.New("no such luck")
	s = &still{report: *goodReport(), err: failure}
	if err := (printing{}).conduct(t.Context(), output{&out, &errs}, newReport("still"), s); !errors.Is(err, failure) || !s.closed || !strings.Contains(errs.String(), "what it logged") {
		t.Errorf("error %v, closed %t, said %s", err, s.closed, errs.String())
	}

	s = &still{report: *goodReport()}
	if code := exitCode((printing{}).conduct(t.Context(), output{&out, &errs}, newReport("still", "river"), s), output{&out, &errs}); code != exitInvalid {
		t.Errorf("without its peer: exit %d, want %d", code, exitInvalid)
	}

	path := filepath.Join(t.TempDir(), "other.json")
	if err := os.WriteFile(path, []byte(`{"scenario":"relay"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	s = &still{report: *goodReport()}
	if err := (printing{Compare: path}).conduct(t.Context(), output{&out, &errs}, newReport("still"), s); err == nil || s.closed {
		t.Errorf("a run of another scenario was compared with: %v", err)
	}
}

func TestParseFiguresRefuses(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "per second  median", `{"scenario":"x"}` + "\nexit status 1", `{"median":{}}`, `[1]`} {
		if f, err := parseFigures([]byte(bad)); err == nil {
			t.Errorf("%q is taken as %+v", bad, f)
		}
	}
}

func FuzzParseFigures(f *testing.F) {
	f.Add([]byte(`{"scenario":"ingest","median":{"ours":{"a":1}},"details":{"x":[1],"y":null}}`))
	f.Add([]byte("noise\n{}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := parseFigures(text)
		if err != nil {
			return
		}
		for path, v := range got.values {
			if math.IsNaN(v) || path == "" {
				t.Errorf("%q is %v", path, v)
			}
		}
	})
}

func TestMemory(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		samples []figure
		want    memoryFigures
	}{
		{nil, memoryFigures{}},
		{[]figure{7}, memoryFigures{Start: 7, Peak: 7, End: 7}},
		{[]figure{10, 40, 30, 20}, memoryFigures{Start: 10, Peak: 40, End: 20, Growth: 0.75}},
		{[]figure{10, 20, 25, 30, 60}, memoryFigures{Start: 10, Peak: 60, End: 60, Growth: 2.4}},
	} {
		if diff := cmp.Diff(tt.want, memoryOf(tt.samples)); diff != "" {
			t.Errorf("%v: %s", tt.samples, diff)
		}
	}
	if _, err := os.Stat("/proc/self/statm"); err == nil && residentMiB(os.Getpid()) < 1 {
		t.Errorf("this process has %v MiB", residentMiB(os.Getpid()))
	}
}

func TestFired(t *testing.T) {
	t.Parallel()
	due := time.Unix(1_800_000_000, 0)
	f := fired{shots{
		Number: []int64{1, 2, 3, 4}, Index: []int32{0, 1, 2, 3}, Status: []int16{204, 503, 0, 200}, Retry: []bool{false, true, false, false},
		Due: []int64{due.UnixNano(), 0, 0, due.UnixNano()}, Took: []int64{1e6, 2e6, 3e6, 4e6}, Waited: []int64{1e6, 2e6, 3e6, 9e6},
	}}
	var ids []string
	f.acknowledged(func(id string, index int, at, answered time.Time) {
		ids = append(ids, id)
		if want := time.Duration(f.Waited[index]); !at.Equal(due) || answered.Sub(at) != want {
			t.Errorf("%s: due %v, answered %v", id, at, answered)
		}
	})
	if diff := cmp.Diff([]string{messageID(1), messageID(4)}, ids); diff != "" {
		t.Error(diff)
	}
	if n := f.count(acknowledged); n != 2 {
		t.Errorf("%d acknowledged", n)
	}
	if diff := cmp.Diff([]figure{1, 9}, f.times(acknowledged, f.Waited)); diff != "" {
		t.Error(diff)
	}
	if got := perSecond(10, 0); got != 0 {
		t.Errorf("rate over no time: %v", got)
	}
}

func TestSpread(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		values []figure
		want   figure
	}{{nil, 0}, {[]figure{0, 4}, 0}, {[]figure{4}, 0}, {[]figure{5, 4, 4.5}, 0.25}} {
		if got := spreadOf(tt.values); got != tt.want {
			t.Errorf("spread of %v is %v, want %v", tt.values, got, tt.want)
		}
	}
}

func TestParseRiver(t *testing.T) {
	t.Parallel()
	if got, err := parseRiver([]byte(`{"jobs":500,"seconds":0.25,"jobs_per_s":2000}`), 500); err != nil || got != 2000 {
		t.Errorf("%v, %v", got, err)
	}
	if _, err := parseRiver([]byte(`{"jobs":7,"jobs_per_s":2000}`), 0); err != nil {
		t.Error(err)
	}
	for _, bad := range []string{"", "migrated", `{"jobs":499,"jobs_per_s":2000}`, `{"jobs":500}`} {
		if got, err := parseRiver([]byte(bad), 500); err == nil {
			t.Errorf("%q gave %v", bad, got)
		}
	}
}

func FuzzParseRiver(f *testing.F) {
	f.Add([]byte(`{"jobs":500,"seconds":0.25,"jobs_per_s":2000}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if got, err := parseRiver(text, 500); err == nil && got <= 0 {
			t.Errorf("%q gave %v", text, got)
		}
	})
}
