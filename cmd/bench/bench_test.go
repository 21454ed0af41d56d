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

// measured runs a scenario and returns the object on its last line, with every field
// of the contract that a scenario of webhooks fills.
func measured(t *testing.T, args ...string) (got map[string]json.RawMessage) {
	t.Helper()
	testenv.Short(t)
	if _, err := newPgbench(t.TempDir(), ""); err != nil && args[0] != "growth" { // it has no peers
		t.Logf("without peers: %v", err)
		args = append(args, "--peers", "")
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), append(args, "--json"), output{&out, &errs}); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatalf("the last line is no object: %v", err)
	}
	for _, name := range []string{"scenario", "machine", "settings", "commands", "pids", "rounds", "median", "lost", "violations"} {
		if got[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	return got
}

// field decodes a part of a report.
func field[T any](t *testing.T, report map[string]json.RawMessage, name string) (value T) {
	t.Helper()
	if err := json.Unmarshal(report[name], &value); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return value
}

// wantPositive fails for every figure that is missing or not above 0.
func wantPositive(t *testing.T, figures map[string]figure, names ...string) {
	t.Helper()
	for _, name := range names {
		if figures[name] <= 0 {
			t.Errorf("%s is %v in %v", name, figures[name], figures)
		}
	}
}

// The scenarios run once, so that they cannot rot; their figures are not looked at.

func TestConverge(t *testing.T) {
	got := measured(t, "converge", "--seconds", "1", "--rounds", "1", "--projects", "20", "--streams", "5", "--conns", "16", "--rate", "100")
	both := field[settings](t, got, "settings")
	for _, name := range durability {
		if both.Ours[name] != "on" || both.Peer[name] != "on" {
			t.Errorf("%s: %q and %q", name, both.Ours[name], both.Peer[name])
		}
	}
	wantPositive(t, field[medians](t, got, "median").Ours, "acknowledged_per_s", "transitions_per_s", "together_acknowledged_per_s", "together_transitions_per_s")
	details := field[map[string]json.RawMessage](t, got, "details")
	if s := field[steadyFigures](t, details, "paced"); s.Converged <= 0 || s.Answer.P99 <= 0 || s.Refused != 0 {
		t.Errorf("paced: %v", s)
	}
	if b := field[brokerFigures](t, details, "broker"); b.Messages == 0 || b.Stored.P99 <= 0 || b.Received.P99 < b.Stored.P50 {
		t.Errorf("through the broker: %v", b)
	}
	if field[quantiles](t, got, "latency_ms").P99 <= 0 || len(field[[]int](t, got, "pids")) < 4 {
		t.Errorf("figures %s", got)
	}
}

func TestIngest(t *testing.T) {
	got := measured(t, "ingest", "--seconds", "1", "--rounds", "1", "--projects", "20", "--conns", "16", "--rate", "200", "--overload", "1")
	wantPositive(t, field[medians](t, got, "median").Ours, "acknowledged_per_s")
	details := field[map[string]json.RawMessage](t, got, "details")
	paced := field[pacedFigures](t, details, "paced")
	if paced.P99 <= 0 || paced.Reads.P99 <= 0 || paced.Acknowledged == 0 {
		t.Errorf("paced %+v", paced)
	}
	for _, name := range []string{overloadCPU, overloadDatabase} {
		o := field[overloadFigures](t, details, "overload_"+name)
		if o.Capacity <= 0 || o.Acknowledged <= 0 || o.Silent != 0 || o.Other != 0 || o.Reads.P99 <= 0 {
			t.Errorf("overload %s: %v", name, o)
		}
	}
}

func TestHotProject(t *testing.T) {
	got := measured(t, "hot-project", "--seconds", "1", "--rounds", "1", "--projects", "20", "--conns", "16")
	wantPositive(t, field[medians](t, got, "median").Ours, "hot_transitions_per_s", "many_transitions_per_s")
	if n := field[int](t, field[map[string]json.RawMessage](t, got, "details"), "gaps"); n != 0 {
		t.Errorf("%d projects have gaps", n)
	}
}

func TestGrowth(t *testing.T) {
	got := measured(t, "growth", "--stored", "2000,4000", "--seconds", "1", "--rounds", "1", "--projects", "20", "--conns", "16")
	stages := field[[]stage](t, got, "rounds")
	if len(stages) != 2 || stages[0].Events < 2000 || stages[1].Events-stages[0].Events < 2000 {
		t.Errorf("stages %+v", stages)
	}
	for _, s := range stages {
		if s.Drain[0].Transitions == 0 || s.Intake[0].cost() <= 0 || s.Drain[0].cost() <= 0 {
			t.Errorf("stage %+v", s)
		}
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
