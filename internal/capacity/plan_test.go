package capacity

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// mustCosts are unit costs of the tests' own, so that a new measurement changes
// the embedded ones and no expectation here.
func mustCosts(t *testing.T) Costs {
	t.Helper()
	data, err := os.ReadFile("testdata/costs.json")
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCosts(data)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func mustMake(t *testing.T, l Load, c Costs) Plan {
	t.Helper()
	p, err := Make(l, c)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// The example's figures are those of specification 12.11.1 to 12.11.4, as
// numbers and as they are printed.
func TestExampleHasTheFiguresOfTheSpecification(t *testing.T) {
	t.Parallel()
	p := mustMake(t, Example(), mustCosts(t))
	for _, want := range []struct {
		name      string
		low, high float64
		text      string
	}{
		{"in_flight", 7_200, 0, "7,200 tasks"},
		{"events_per_s", 360, 0, "360 events/s"},
		{"events_peak_per_s", 1_080, 0, "1,080 events/s"},
		{"queries_per_s", 480, 0, "480 queries/s"},
		{"fitting_interval_s", 36, 0, "36 s"},
		{"webhook_share", 1 - 200./480, 0, "58.4 %"},
		{"heartbeats_per_s", 4_000, 0, "4,000 heartbeats/s"},
		{"heartbeat_bytes_per_s", 400_000, 800_000, "0.4–0.8 MB/s"},
		{"connection_memory_gib", 100_000. * 30 / 1_048_576, 0, "2.86 GiB"},
		{"connections_per_node", 12_500, 0, "12,500 streams"},
		{"connections_per_node_one_lost", 14_286, 0, "14,286 streams"},
		{"event_bytes_per_s", 702_000, 0, "702,000 bytes/s"},
		{"egress_bytes_per_s", 1_102_000, 1_502_000, "1.1–1.5 MB/s"},
	} {
		f, err := p.Figure(want.name)
		if err != nil {
			t.Error(err)
			continue
		}
		if !near(f.Value, want.low) || !near(f.High, want.high) || f.Text != want.text {
			t.Errorf("%s is %v to %v, %q; want %v to %v, %q", want.name, f.Value, f.High, f.Text, want.low, want.high, want.text)
		}
	}
}

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*math.Max(math.Abs(a), math.Abs(b)) }

func TestEveryFigureSaysHow(t *testing.T) {
	t.Parallel()
	p := mustMake(t, Example(), mustCosts(t))
	seen := map[string]bool{}
	for _, f := range p.Figures {
		if f.Label == "" || f.Unit == "" || f.Formula == "" || f.Text == "" || seen[f.Name] || strings.Contains(f.Formula+f.Text, "%!") {
			t.Errorf("figure %+v is incomplete, badly printed or there twice", f)
		}
		seen[f.Name] = true
	}
	for _, r := range p.Processes {
		if r.Formula == "" || r.Processes < 1 || strings.Contains(r.Formula, "%!") {
			t.Errorf("role %+v", r)
		}
	}
	if _, err := p.Figure("luck"); err == nil {
		t.Error("a figure that does not exist was found")
	}
}

func TestWarnings(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		load   func(*Load)
		costs  func(*Costs)
		code   string
		absent bool
		text   []string
	}{
		{"200 per second are too few", nil, nil, WarnQuota, false, []string{"480 queries/s do not fit a quota of 200/s", "every 36 s", "58.4 %"}},
		{"also at a peak", nil, nil, WarnQuotaPeak, false, []string{"21,600 tasks", "1,440 queries/s", "every 108 s", "86.2 %"}},
		{"480 per second are enough", func(l *Load) { l.VendorQuota = 480 }, nil, WarnQuota, true, nil},
		{"but not at a peak", func(l *Load) { l.VendorQuota = 480 }, nil, WarnQuotaPeak, false, []string{"every 45 s"}},
		{"1,440 are", func(l *Load) { l.VendorQuota = 1440 }, nil, WarnQuotaPeak, true, nil},
		{"36 s fit", func(l *Load) { l.PollInterval = 36 }, nil, WarnQuota, true, nil},
		{"one node", func(l *Load) { l.Nodes = 1 }, nil, WarnOneNode, false, []string{"at least 2"}},
		{"too few nodes for the descriptors", func(l *Load) { l.Nodes = 6 }, nil, WarnDescriptors, false, []string{"20,000 streams", "plan 7 nodes"}},
		{"enough with seven", func(l *Load) { l.Nodes = 8 }, nil, WarnDescriptors, true, nil},
		{"memory", func(l *Load) { l.KiBPerConnection = 2048 }, nil, WarnMemory, false, []string{"27.9 GiB at 2,048 KiB", "60 % of a machine's 24 GiB"}},
		{"memory fits", nil, nil, WarnMemory, true, nil},
		{"a stream costs more than planned", func(l *Load) { l.KiBPerConnection = 20 }, nil, WarnMemoryCost, false, []string{"--kib-per-connection=27"}},
		{"and less", nil, nil, WarnMemoryCost, true, nil},
		{"CPU of the nodes", func(l *Load) { l.Nodes, l.FanOut = 2, 400 }, nil, WarnMachines, false, []string{"2 nodes have not enough CPU"}},
		{"the database", func(l *Load) { l.ArrivalRate = 600 }, nil, WarnDatabase, false, []string{"173.1 %", "do not help a single primary"}},
		{"the database fits", nil, nil, WarnDatabase, true, nil},
		{"what was not measured", nil, nil, WarnUnmeasured, false, []string{"cpu_us_per_query", "--costs"}},
		{"all measured", nil, func(c *Costs) {
			for _, f := range c.fields() {
				f.cost.Basis = Measured
			}
		}, WarnUnmeasured, true, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, c := Example(), mustCosts(t)
			if tt.load != nil {
				tt.load(&l)
			}
			if tt.costs != nil {
				tt.costs(&c)
			}
			p := mustMake(t, l, c)
			i := slices.IndexFunc(p.Warnings, func(w Warning) bool { return w.Code == tt.code })
			if (i < 0) != tt.absent {
				t.Fatalf("warnings %+v, want %s absent: %v", p.Warnings, tt.code, tt.absent)
			}
			for _, text := range tt.text {
				if !strings.Contains(p.Warnings[i].Text, text) {
					t.Errorf("%q does not say %q", p.Warnings[i].Text, text)
				}
			}
		})
	}
}

func TestNonsenseIsRefused(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*Load)
		want   string
	}{
		{"zero", func(l *Load) { l.ArrivalRate = 0 }, "--arrival-rate: 0 must be more than 0 and at most 1,000,000; give the mean number"},
		{"negative", func(l *Load) { l.MeanDuration = -120 }, "--mean-duration: -120 must be more than 0"},
		{"NaN", func(l *Load) { l.FanOut = math.NaN() }, "--fan-out: not a number, must be more than 0"},
		{"infinite", func(l *Load) { l.EventBytes = math.Inf(1) }, "--event-bytes: +Inf must be at least 1 and at most 1,048,576"},
		{"infinitely small", func(l *Load) { l.PollInterval = math.Inf(-1) }, "--poll-interval: -Inf must be"},
		{"absurd", func(l *Load) { l.Connections = math.MaxInt }, "--connections: "},
		{"a peak below the mean", func(l *Load) { l.PeakFactor = 0.5 }, "--peak-factor: 0.5 must be at least 1"},
		{"no quota", func(l *Load) { l.VendorQuota = 0 }, "without a quota, what you are willing to send"},
		{"no nodes", func(l *Load) { l.Nodes = 0 }, "--nodes: 0 must be at least 1 and at most 2,000"},
		{"events", func(l *Load) { l.EventsPerTask = 1e5 }, "--events-per-task: 100,000 must be"},
		{"heartbeat", func(l *Load) { l.HeartbeatInterval = 0.001 }, "--heartbeat-interval: 0.001 must be at least 1"},
		{"memory", func(l *Load) { l.KiBPerConnection = -1 }, "--kib-per-connection: -1 must be"},
		{"each value alone and all together", func(l *Load) {
			l.ArrivalRate, l.Nodes, l.FanOut = 1e6, 2000, 1e6
			l.EventsPerTask = 1e4
			l.PeakFactor = 1e3
		}, "check the inputs for a slip"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l := Example()
			tt.change(&l)
			_, err := Make(l, mustCosts(t))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
	_, err := Make(Load{}, mustCosts(t))
	if err == nil || strings.Count(err.Error(), "\n") != 11 {
		t.Errorf("an empty load has 12 faults, got: %v", err)
	}
	if _, err := Make(Example(), Costs{}); err == nil || !strings.Contains(err.Error(), "name where they were measured") {
		t.Errorf("empty costs: %v", err)
	}
}

// A plan survives the way through JSON: no figure is infinite or not a number,
// also at the ends of what is accepted.
func TestPlanIsJSON(t *testing.T) {
	t.Parallel()
	tiny := Load{
		ArrivalRate: math.SmallestNonzeroFloat64, MeanDuration: math.SmallestNonzeroFloat64, EventsPerTask: 1e-300, PeakFactor: 1,
		PollInterval: 86_400, VendorQuota: 1e6, Connections: 1, HeartbeatInterval: 3600, EventBytes: 1, FanOut: 1e-300, Nodes: 1, KiBPerConnection: 1e-300,
	}
	crowded := Example()
	crowded.Connections, crowded.Nodes = 1e8, 2000
	for _, l := range []Load{Example(), tiny, crowded} {
		p := mustMake(t, l, mustCosts(t))
		data, err := json.Marshal(p)
		if err != nil {
			t.Fatalf("%+v: %v", l, err)
		}
		var back Plan
		if err := json.Unmarshal(data, &back); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(p, back); diff != "" {
			t.Errorf("after JSON (-want +got):\n%s", diff)
		}
	}
}
