package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/e2e/leasewatch"
	"github.com/aivedio/aivedio/internal/simulator"
	"github.com/aivedio/aivedio/internal/testenv"
)

// at is a moment of a made-up run, in ms.
func at(ms int) time.Time { return time.UnixMilli(1_800_000_000_000 + int64(ms)) }

func asked(job string, ms int) simulator.QueryEntry {
	return simulator.QueryEntry{Job: job, At: at(ms).UnixNano()}
}

func TestGapsCountTheWaiting(t *testing.T) {
	t.Parallel()
	before := map[string]int64{"a": at(0).UnixNano(), "b": at(1000).UnixNano()}
	got := gaps(before, []simulator.QueryEntry{asked("a", 5000), asked("c", 6000), asked("a", 9000)}, at(21_000))
	if want := []figure{4000, 5000, 20_000}; !cmp.Equal(got, want) { // b waits; c was not asked for before
		t.Errorf("got %v, want %v", got, want)
	}
	if want := map[string]int64{"a": at(9000).UnixNano(), "b": at(1000).UnixNano(), "c": at(6000).UnixNano()}; !cmp.Equal(before, want) {
		t.Errorf("brought up to date: %v", before)
	}
}

func TestWhatTheDeadHeld(t *testing.T) {
	t.Parallel()
	k := &killing{at: at(1000), held: map[domain.ID]time.Time{{1}: at(30_500), {2}: at(30_600), {3}: at(30_700)}}
	claims := map[domain.ID][]*leasewatch.Claim{
		{1}: {{At: at(500)}, {At: at(31_000)}, {At: at(46_000)}}, // taken over once its lease had ended
		{2}: {{At: at(600)}, {At: at(20_000)}},                   // too early
		{3}: {{At: at(700)}},                                     // forgotten
		{4}: {{At: at(800)}, {At: at(12_000)}},                   // not the dead one's
	}
	got := k.end(func(id domain.ID) []*leasewatch.Claim { return claims[id] })
	if want := (death{Held: 3, TakenOver: 2, Early: 1, Last: 30}); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

func TestRatesAroundAnOutage(t *testing.T) {
	t.Parallel()
	o := &outage{began: at(0), lost: at(2000), back: at(3000), end: at(4000)}
	got := o.of([]simulator.QueryEntry{asked("a", -1), asked("a", 0), asked("a", 1999), asked("a", 2000), asked("a", 3500), asked("a", 3999), asked("a", 4000)})
	if want := (alone{Before: 1, During: 1, After: 2}); *got != want {
		t.Errorf("got %+v, want %+v", *got, want)
	}
}

// A promise that was broken makes the run invalid, by name.
func TestBrokenPromises(t *testing.T) {
	t.Parallel()
	p, r := &poll{}, newReport("poll")
	p.judge(r, pollPhase{Name: "x", Leases: &leasewatch.Findings{}, Death: &death{Held: 2, TakenOver: 2}})
	if r.Violations != 0 || len(r.faults) != 0 {
		t.Errorf("nothing is broken: %d, %v", r.Violations, r.faults)
	}
	p.judge(r, pollPhase{Name: "x", Over: 1, Leases: &leasewatch.Findings{Repeated: 2, Stolen: 3, Unclaimed: 4}, Death: &death{Held: 6, TakenOver: 1, Early: 1}})
	if r.Violations != 1+2+3+4+1+5 || len(r.faults) != 6 || !strings.Contains(r.verdict().Error(), "x: 1 queries above the vendor's quota") {
		t.Errorf("%d, %v", r.Violations, r.verdict())
	}
}

func TestPollArguments(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{
		{"--workers", "1"},
		{"--tasks", "0"},
		{"--parts", "rest,siesta"},
		{"--peers", "sysbench"},
		{"--scarce", "3"}, // less than what is under way
	} {
		var out bytes.Buffer
		if code := run(t.Context(), append([]string{"poll"}, args...), output{&out, &out}); code != exitUsage {
			t.Errorf("%v: exit %d, want %d", args, code, exitUsage)
		}
	}
	if got := (pollCmd{Workers: 2, Calls: 64}).limit(2000); got != (limit{perSecond: 1822, burst: 50, calls: 64}) {
		t.Errorf("limit %+v", got)
	}
	if got := (pollCmd{Workers: 2, Calls: 64}).limit(400); got != (limit{perSecond: 340, burst: 10, calls: 25}) {
		t.Errorf("limit of a small quota %+v", got)
	}
}

// The scenario runs once, so that it cannot rot; its promises hold at any size.
func TestPoll(t *testing.T) {
	testenv.Short(t)
	if _, err := exec.LookPath("redis-server"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("redis-server is not installed")
	}
	args := []string{"poll", "--json", "--tasks", "300", "--seconds", "3", "--parts", "rest,flood,scarce,alone", "--peers", "claim"}
	if _, err := newPgbench(t.TempDir(), ""); err != nil {
		t.Logf("without a peer: %v", err)
		args[len(args)-1] = ""
	}
	var out, errs bytes.Buffer
	if code := run(t.Context(), args, output{&out, &errs}); code != exitOK {
		t.Fatalf("exit %d\n%s%s", code, out.String(), errs.String())
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	var got struct {
		Scenario   string
		Rounds     []pollPhase
		Median     medians
		Latency    quantiles `json:"latency_ms"`
		Violations int
		PIDs       []int
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &got); err != nil {
		t.Fatalf("the last line is no object: %v", err)
	}
	if got.Scenario != "poll" || len(got.Rounds) != 4 || got.Violations != 0 || got.Latency.P99 <= 0 || len(got.PIDs) < 2*4+2 {
		t.Errorf("%+v", got)
	}
	for _, name := range []string{"queries_per_s", "at_rest_queries_per_s", "postgres_cpu_us_per_query", "workers_cpu_us_per_query"} {
		if got.Median.Ours[name] <= 0 {
			t.Errorf("%s is %v", name, got.Median.Ours[name])
		}
	}
	if a := got.Rounds[3].Alone; a == nil || a.During <= 0 {
		t.Errorf("without Redis: %+v", a)
	}
	for _, ph := range got.Rounds {
		if ph.Queries == 0 || ph.WorstSecond == 0 || ph.WorstSecond > ph.Quota {
			t.Errorf("%+v", ph)
		}
	}
}
