package main

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/internal/testenv"
)

// TestMain lets this binary be the load process that a scenario starts.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "load" {
		main()
	}
	os.Exit(m.Run())
}

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
	for _, name := range []string{"details", "scenario", "machine", "settings", "commands", "pids", "rounds", "median", "ratio", "latency_ms", "cpu_us_per_delivery", "lost", "violations"} {
		if got[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	var figures struct {
		Settings settings
		PIDs     []int
		Lost     int
		Median   medians
		Latency  quantiles `json:"latency_ms"`
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &figures); err != nil {
		t.Fatal(err)
	}
	for _, name := range durability {
		if figures.Settings.Ours[name] != "on" || figures.Settings.Peer[name] != "on" {
			t.Errorf("%s: %q and %q", name, figures.Settings.Ours[name], figures.Settings.Peer[name])
		}
	}
	for _, name := range []string{"acknowledged_per_s", "transitions_per_s", "together_acknowledged_per_s", "together_transitions_per_s"} {
		if figures.Median.Ours[name] <= 0 {
			t.Errorf("%s is %v", name, figures.Median.Ours[name])
		}
	}
	if figures.Lost != 0 || figures.Latency.P99 <= 0 || len(figures.PIDs) < 4 {
		t.Errorf("figures %+v", figures)
	}
}

func TestUnknownPeerIsRefused(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := run(t.Context(), []string{"converge", "--peers", "sysbench"}, output{&out, &out}); code != exitUsage {
		t.Errorf("exit %d, want %d", code, exitUsage)
	}
}

func TestParsePgbench(t *testing.T) {
	t.Parallel()
	const text = "transaction type: x\nnumber of transactions actually processed: 61234\nlatency average = 0.5 ms\ninitial connection time = 12.3 ms\ntps = 12250.817 (without initial connection time)\n"
	perSecond, count, err := parsePgbench(text)
	if err != nil || perSecond != 12250.817 || count != 61234 {
		t.Errorf("%v, %d, %v", perSecond, count, err)
	}
	if perSecond, count, err := parsePgbench("number of transactions actually processed: 0\nnumber of failed transactions: 0 (NaN%)"); err != nil || perSecond != 0 || count != 0 {
		t.Errorf("nothing done: %v, %d, %v", perSecond, count, err)
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
