package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/internal/capacity"
)

func runPlan(t *testing.T, args ...string) (code int, out, errors string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = run(t.Context(), append([]string{"plan"}, args...), streams{out: &stdout, err: &stderr})
	return code, stdout.String(), stderr.String()
}

// Without flags the command answers the specification's example.
func TestPlanDefaultsAreTheExample(t *testing.T) {
	t.Parallel()
	code, out, stderr := runPlan(t, "--json")
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	var got capacity.Plan
	if err := json.Unmarshal([]byte(out), &got); err != nil {
		t.Fatal(err)
	}
	costs, err := capacity.DefaultCosts()
	if err != nil {
		t.Fatal(err)
	}
	want, err := capacity.Make(capacity.Example(), costs)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("plan (-want +got):\n%s", diff)
	}
}

func TestPlanForPeople(t *testing.T) {
	t.Parallel()
	code, out, stderr := runPlan(t)
	if code != exitOK {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{
		"7,200 tasks", "360 events/s", "1,080 events/s", "480 queries/s", "4,000 heartbeats/s", "0.4–0.8 MB/s", "2.86 GiB", "12,500 streams", "702,000 bytes/s",
		"L = λ × W = 60/s × 120 s", "warning: quota_exceeded: 480 queries/s do not fit a quota of 200/s", "callback  2", "measured  ",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the output has no %q:\n%s", want, out)
		}
	}
}

var update = flag.Bool("update", false, "write the output of `aivedio plan` into docs/capacity.md")

// docs/capacity.md quotes the command's own output, between ```text and ```.
func TestPlanPageIsUpToDate(t *testing.T) {
	t.Parallel()
	const file = "../../docs/capacity.md"
	page, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), "```text\n")
	quoted, after, ends := strings.Cut(rest, "```\n")
	if !begins || !ends {
		t.Fatalf("%s has no output between ```text and ```", file)
	}
	_, out, _ := runPlan(t)
	if diff := cmp.Diff(quoted, out); diff != "" && !*update {
		t.Errorf("%s is stale; run go test ./cmd/aivedio -run TestPlanPageIsUpToDate -update (-page +now):\n%s", file, diff)
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+"```text\n"+out+"```\n"+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPlanReadsCosts(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "costs.json")
	text := `{"machine": {"os": "linux", "arch": "arm64", "cpus": 16, "memory_mib": 65536},
		"kib_per_connection": {"value": 5, "basis": "measured", "source": "bench fanout"}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, stderr := runPlan(t, "--costs", file)
	for _, want := range []string{"16 CPUs, 64 GiB, linux/arm64", "100,000 × 5 KiB (measured)", "bench fanout"} {
		if code != exitOK || !strings.Contains(out, want) {
			t.Errorf("exit %d, no %q: %s%s", code, want, out, stderr)
		}
	}
}

// Nonsense ends with exit code 1 and an error that names a flag there is.
func TestPlanRefusesNonsense(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ args, want string }{
		{"--arrival-rate=0", "--arrival-rate: 0 must be more than 0"},
		{"--arrival-rate=-60", "--arrival-rate: -60 must be more than 0"},
		{"--fan-out=NaN", "--fan-out: not a number"},
		{"--event-bytes=Inf", "--event-bytes: +Inf must be at least 1"},
		{"--mean-duration=0s", "--mean-duration: 0 must be"},
		{"--mean-duration=120", "--mean-duration"},
		{"--connections=2000000000", "--connections: 2,000,000,000 must be at least 1 and at most 100,000,000"},
		{"--arrival-rate=1000000 --events-per-task=10000", "check the inputs for a slip"},
		{"--costs=/does/not/exist", "unit costs: open"},
	} {
		t.Run(tt.args, func(t *testing.T) {
			t.Parallel()
			code, out, stderr := runPlan(t, strings.Fields(tt.args)...)
			if code != exitUsage || out != "" || !strings.Contains(stderr, tt.want) {
				t.Errorf("exit %d, printed %q, error %q; want %q", code, out, stderr, tt.want)
			}
		})
	}
}

// Each number has a flag, and a fault of it is reported under the flag's name,
// all of them at once.
func TestPlanNamesEveryFault(t *testing.T) {
	t.Parallel()
	flags := strings.Fields("--arrival-rate=0 --mean-duration=0s --events-per-task=0 --peak-factor=0 --poll-interval=0s --vendor-quota=0 " +
		"--connections=0 --heartbeat-interval=0s --event-bytes=0 --fan-out=0 --nodes=0 --kib-per-connection=0")
	code, _, stderr := runPlan(t, flags...)
	for _, f := range flags {
		name, _, _ := strings.Cut(f, "=")
		if code != exitUsage || !strings.Contains(stderr, name+": 0 must be") {
			t.Errorf("exit %d, nothing is said about %s: %s", code, name, stderr)
		}
	}
}
