package capacity

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func processes(p Plan) map[string]int {
	n := map[string]int{}
	for _, r := range p.Processes {
		n[r.Role] = r.Processes
	}
	return n
}

func TestProcessesOfARole(t *testing.T) {
	t.Parallel()
	base := map[string]int{
		"callback": 2, "process": 2, "poll": 2, "relay": 2, "gateway": 8,
		"api": 2, "submit": 2, "dispatch": 2, "media": 2, "sweep": 2,
	}
	for _, tt := range []struct {
		name   string
		change func(*Load, *Costs)
		want   map[string]int
	}{
		{"the example", func(*Load, *Costs) {}, nil},
		// 10,800 callbacks/s × 167 µs = 1.81 cores of 1.2 usable, and 10,800 of 7,200 usable per second.
		{"ten times the tasks", func(l *Load, _ *Costs) { l.ArrivalRate *= 10 }, map[string]int{"callback": 2, "process": 2}},
		{"thirty times", func(l *Load, _ *Costs) { l.ArrivalRate *= 30 }, map[string]int{"callback": 5, "process": 5, "relay": 3}},
		{"the rate decides where it is lower", func(_ *Load, c *Costs) { c.CallbacksPerS.Value = 300 }, map[string]int{"callback": 6}},
		{"queries stop at the quota", func(l *Load, c *Costs) { c.CPUPerQuery.Value = 20_000 }, map[string]int{"poll": 4}},
		{"queries stop at the peak", func(l *Load, c *Costs) { c.CPUPerQuery.Value, l.VendorQuota = 20_000, 1e6 }, map[string]int{"poll": 24}},
		{"descriptors", func(l *Load, _ *Costs) { l.Nodes = 3 }, map[string]int{"gateway": 9}},
		{"frames", func(l *Load, _ *Costs) { l.FanOut = 1000 }, map[string]int{"gateway": 22}},
		{"one node", func(l *Load, _ *Costs) { l.Nodes, l.Connections = 1, 1000 }, map[string]int{
			"callback": 1, "process": 1, "poll": 1, "relay": 1, "gateway": 1, "api": 1, "submit": 1, "dispatch": 1, "media": 1, "sweep": 1,
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			l, c := Example(), mustCosts(t)
			tt.change(&l, &c)
			want := map[string]int{}
			for role, n := range base {
				want[role] = n
			}
			for role, n := range tt.want {
				want[role] = n
			}
			if diff := cmp.Diff(want, processes(mustMake(t, l, c))); diff != "" {
				t.Errorf("processes (-want +got):\n%s", diff)
			}
		})
	}
}

// Everything that is counted is placed, gateways reach every node, the two of a
// role are on two machines, and no machine is planned above its room.
func TestPlacement(t *testing.T) {
	t.Parallel()
	for _, change := range []func(*Load){
		func(*Load) {},
		func(l *Load) { l.Nodes = 1 },
		func(l *Load) { l.Nodes = 3 },
		func(l *Load) { l.ArrivalRate = 6000 },
		func(l *Load) { l.FanOut = 1000 },
		func(l *Load) { l.Nodes, l.FanOut = 2000, 5000 },
	} {
		l, c := Example(), mustCosts(t)
		change(&l)
		p := mustMake(t, l, c)
		placed := map[string]int{}
		for i, m := range p.Machines {
			if m.Machine != i+1 || m.Cores > float64(c.Machine.CPUs)*room+1e-6 {
				t.Errorf("machine %d of %+v: %+v", i+1, l, m)
			}
			if i < l.Nodes && !slices.Contains(m.Roles, "gateway") {
				t.Errorf("node %d of %+v has no gateway: %v", i+1, l, m.Roles)
			}
			for _, role := range m.Roles {
				placed[role]++
			}
			if alone := slices.Compact(slices.Clone(m.Roles)); len(alone) < len(m.Roles) && l.Nodes == 8 {
				t.Errorf("machine %d of %+v has a role twice: %v", i+1, l, m.Roles)
			}
		}
		if diff := cmp.Diff(processes(p), placed); diff != "" {
			t.Errorf("%+v: counted and placed differ (-counted +placed):\n%s", l, diff)
		}
	}
}
