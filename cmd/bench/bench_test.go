package main

import (
	"bytes"
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/internal/testenv"
)

// The scenario runs once, so that it cannot rot; its figures are not looked at.
func TestConverge(t *testing.T) {
	testenv.Short(t)
	args := []string{"converge", "--json", "--seconds", "1", "--rounds", "1", "--projects", "20", "--streams", "5", "--conns", "16", "--peers", "pgbench,naive"}
	if _, err := newPgbench(t.TempDir(), ""); err != nil {
		t.Logf("without peers: %v", err)
		args[len(args)-1] = ""
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, output{&out, &errs}); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var got map[string]json.RawMessage
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatalf("the last line is no object: %v", err)
	}
	for _, name := range []string{"scenario", "machine", "settings", "commands", "pids", "rounds", "median", "ratio", "latency_ms", "cpu_us_per_delivery", "lost", "violations"} {
		if got[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	var figures struct {
		Settings struct{ Ours, Peer map[string]string }
		PIDs     []int
		Lost     int
		Median   struct{ Ours oursMedian }
		Latency  latency `json:"latency_ms"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &figures); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fsync", "synchronous_commit", "full_page_writes"} {
		if figures.Settings.Ours[name] != "on" || figures.Settings.Peer[name] != "on" {
			t.Errorf("%s: %q and %q", name, figures.Settings.Ours[name], figures.Settings.Peer[name])
		}
	}
	m := figures.Median.Ours
	if figures.Lost != 0 || slices.Min([]figure{m.Acknowledged, m.Transitions, m.TogetherAcknowledged, m.TogetherTransitions}) <= 0 || figures.Latency.Events == 0 || len(figures.PIDs) < 4 {
		t.Errorf("figures %+v", figures)
	}
}

func TestMeasurementWithoutItsPeerIsInvalid(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := run(t.Context(), []string{"converge", "--peers", "sysbench"}, output{&out, &out}); code != exitUsage {
		t.Errorf("unknown peer: exit %d, want %d", code, exitUsage)
	}
	c := converge{report: report{Lost: 1}}
	if code := exitCode(c.verdict(), output{&out, &out}); code != exitInvalid {
		t.Errorf("a lost delivery: exit %d, want %d", code, exitInvalid)
	}
	c.report = report{Violations: 1}
	if code := exitCode(c.verdict(), output{&out, &out}); code != exitInvalid {
		t.Errorf("a violation: exit %d, want %d", code, exitInvalid)
	}
	c.report = report{}
	if code := exitCode(c.verdict(), output{&out, &out}); code != exitOK {
		t.Errorf("nothing wrong: exit %d", code)
	}
}

func TestParsePgbench(t *testing.T) {
	t.Parallel()
	const text = "transaction type: x\nnumber of transactions actually processed: 61234\nlatency average = 0.5 ms\ninitial connection time = 12.3 ms\ntps = 12250.817 (without initial connection time)\n"
	perSecond, count, err := parsePgbench(text)
	if err != nil || perSecond != 12250.817 || count != 61234 {
		t.Errorf("%v, %d, %v", perSecond, count, err)
	}
	if _, _, err := parsePgbench("pgbench: error: run was aborted"); err == nil {
		t.Error("no figures and no error")
	}
}

func FuzzParsePgbench(f *testing.F) {
	f.Add("number of transactions actually processed: 1\ntps = 1.5 (without initial connection time)")
	f.Add("tps = 1.1.1 (without initial connection time)\nnumber of transactions actually processed: 99999999999999999999")
	f.Fuzz(func(t *testing.T, text string) {
		if perSecond, count, err := parsePgbench(text); err == nil && (perSecond < 0 || count < 0) {
			t.Errorf("%v, %d", perSecond, count)
		}
	})
}

func TestParseStat(t *testing.T) {
	t.Parallel()
	const text = "42 (a (strange) name) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 5 6 20 0 1 0 999 0 0"
	got, err := parseStat(text)
	if diff := cmp.Diff(processTime{parent: 7, own: 120, waited: 11}, got, cmp.AllowUnexported(processTime{})); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	for _, bad := range []string{"", "42 (x) S 7", "42 (x) S p 42 42 0 -1 4194560 1 2 3 4 100 20 5 6", "42 (x) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 5 six"} {
		if _, err := parseStat(bad); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add("42 (a (strange) name) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 5 6 20 0 1 0 999 0 0")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = parseStat(text) }) // must not panic
}

func TestCPUMeterCountsThisProcess(t *testing.T) {
	t.Parallel()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("there is no /proc here")
	}
	if _, ok := processTimes()[os.Getpid()]; !ok {
		t.Error("this process is not among those of /proc")
	}
	used := startCPU(map[string]part{"self": {pid: os.Getpid(), tree: true}}).stop()
	if v, ok := used["self"]; !ok || v < 0 {
		t.Errorf("used %v", used)
	}
}

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
		hundred[i] = figure(i + 1)
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

func TestSummary(t *testing.T) {
	t.Parallel()
	r := report{Rounds: []round{
		{Intake: intakeFigures{PerSecond: 80}, Drain: drainFigures{PerSecond: 900}, Peers: map[string]peerRun{peerInsert: {PerSecond: 100}, peerNaive: {PerSecond: 300}}},
		{Intake: intakeFigures{PerSecond: 90}, Drain: drainFigures{PerSecond: 1100}, Peers: map[string]peerRun{peerInsert: {PerSecond: 100}, peerNaive: {PerSecond: 100}}},
	}}
	r.summarise()
	want := map[string]figure{peerInsert: 0.85, peerNaive: 5}
	if diff := cmp.Diff(want, r.Ratio); diff != "" {
		t.Error(diff)
	}
	r.Rounds[0].Peers, r.Rounds[1].Peers = nil, nil
	r.summarise()
	if len(r.Ratio) != 0 {
		t.Errorf("ratios %v without a peer", r.Ratio)
	}
}
