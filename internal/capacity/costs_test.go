package capacity

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestDefaultCostsSayWhereTheyAreFrom(t *testing.T) {
	t.Parallel()
	c := mustCosts(t)
	for _, cost := range c.List() {
		if cost.Source == "" || cost.Value <= 0 {
			t.Errorf("%+v", cost)
		}
	}
	if want := "2 CPUs, 24 GiB, linux/amd64, go1.26"; c.Machine.String() != want {
		t.Errorf("machine %q, want %q", c.Machine, want)
	}
	data, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	back, err := ParseCosts(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(c, back); diff != "" {
		t.Errorf("costs through a file (-want +got):\n%s", diff)
	}
}

// A file of a bench that measured a part is enough; the rest is borrowed, and
// says so.
func TestPartOfTheCosts(t *testing.T) {
	t.Parallel()
	c, err := ParseCosts([]byte(`{
		"machine": {"os": "linux", "arch": "arm64", "cpus": 16, "memory_mib": 65536, "cpu": "Big", "go": "go1.26.1", "load_before": "0.10"},
		"callbacks_per_s": {"value": 90000, "basis": "measured", "source": "bench ingest"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.CallbacksPerS.Value != 90000 || c.CallbacksPerS.Basis != Measured {
		t.Errorf("given: %+v", c.CallbacksPerS)
	}
	d, err := DefaultCosts()
	if err != nil {
		t.Fatal(err)
	}
	if got := c.TransitionsPerS; got.Value != d.TransitionsPerS.Value || got.Basis != Assumed || !strings.HasPrefix(got.Source, "not in the file; on 2 CPUs") {
		t.Errorf("borrowed: %+v", got)
	}
	if strings.Contains(c.assumed(), "callbacks_per_s") || !strings.Contains(c.assumed(), "transitions_per_s") {
		t.Errorf("assumed: %s", c.assumed())
	}
}

func TestBadCosts(t *testing.T) {
	t.Parallel()
	const machine = `"machine": {"os": "linux", "arch": "amd64", "cpus": 2, "memory_mib": 24576}`
	for _, tt := range []struct{ name, file, want string }{
		{"empty", ``, "one JSON object like"},
		{"a list", `[]`, "one JSON object like"},
		{"more than one", `{` + machine + `} {}`, "remove what follows"},
		{"no machine", `{}`, "name where they were measured"},
		{"no processors", `{"machine": {"os": "linux", "arch": "amd64", "memory_mib": 24576}}`, "machine.cpus: 0 must be at least 1"},
		{"unknown", `{` + machine + `, "calbacks_per_s": {"value": 1}}`, "calbacks_per_s"},
		{"zero", `{` + machine + `, "callbacks_per_s": {"value": 0, "basis": "measured", "source": "x"}}`, "callbacks_per_s: 0 must be"},
		{"negative", `{` + machine + `, "kib_per_connection": {"value": -4, "basis": "measured", "source": "x"}}`, "kib_per_connection: -4 must be"},
		{"basis", `{` + machine + `, "callbacks_per_s": {"value": 1, "basis": "hoped", "source": "x"}}`, `basis "hoped"`},
		{"source", `{` + machine + `, "callbacks_per_s": {"value": 1, "basis": "measured"}}`, "source must say"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := ParseCosts([]byte(tt.file)); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

// Whatever a file holds, it is refused or it makes a plan that is JSON.
func FuzzParseCosts(f *testing.F) {
	f.Add(embedded)
	f.Add([]byte(`{"machine": {"os": "a", "arch": "b", "cpus": 1, "memory_mib": 128}}`))
	f.Add([]byte(`{"machine": {"os": "a", "arch": "b", "cpus": 1, "memory_mib": 128}, "connections_per_process": {"value": 0.001, "basis": "assumed", "source": "c"}}`))
	f.Add([]byte(`{"machine": null}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCosts(data)
		if err != nil {
			return
		}
		p, err := Make(Example(), c)
		if err != nil {
			return // more processes than a plan may have
		}
		if _, err := json.Marshal(p); err != nil {
			t.Fatal(err)
		}
	})
}
