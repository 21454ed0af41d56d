package capacity

import (
	"bytes"
	_ "embed" // the unit costs known today
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
)

// Costs are the unit costs of one machine. The JSON form is the file that
// `aivedio plan --costs` reads.
type Costs struct {
	// Machine is where they were measured; every count of processes and machines
	// is in machines of this kind.
	Machine Machine `json:"machine"`

	// CallbacksPerS: deliveries verified, stored and answered over HTTP.
	CallbacksPerS Cost `json:"callbacks_per_s"`
	// TransitionsPerS: inbox rows taken and applied to tasks, with event and outbox.
	TransitionsPerS Cost `json:"transitions_per_s"`
	// ConvergedPerS: both at once on the one machine, PostgreSQL included.
	ConvergedPerS Cost `json:"converged_per_s"`
	// PublishedPerS: outbox rows accepted by the broker.
	PublishedPerS Cost `json:"published_per_s"`

	// CPUPerCallback, CPUPerTransition, CPUPerQuery, CPUPerDelivery and
	// CPUPerPublished are CPU time in µs for one callback, one transition, one
	// query of a vendor, one frame written to one stream and one outbox row.
	CPUPerCallback   Cost `json:"cpu_us_per_callback"`
	CPUPerTransition Cost `json:"cpu_us_per_transition"`
	CPUPerQuery      Cost `json:"cpu_us_per_query"`
	CPUPerDelivery   Cost `json:"cpu_us_per_delivery"`
	CPUPerPublished  Cost `json:"cpu_us_per_published"`

	// KiBPerConnection: resident memory of one idle stream.
	KiBPerConnection Cost `json:"kib_per_connection"`
	// ConnectionsPerProcess: streams that fit in the file descriptors of a process.
	ConnectionsPerProcess Cost `json:"connections_per_process"`
}

// Machine names a machine, in the words of the bench's reports.
type Machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu,omitempty"`
	Memory int    `json:"memory_mib"`
	Go     string `json:"go,omitempty"`
	// LoadBefore is the load average before the measurement.
	LoadBefore string `json:"load_before,omitempty"`
}

// String is the machine in one line.
func (m Machine) String() string {
	text := fmt.Sprintf("%d CPUs, %s GiB, %s/%s", m.CPUs, number(float64(m.Memory)/1024), m.OS, m.Arch)
	for _, more := range []string{m.CPU, m.Go} {
		if more != "" {
			text += ", " + more
		}
	}
	return text
}

// Cost is one figure and where it is from.
type Cost struct {
	Value float64 `json:"value"`
	Basis Basis   `json:"basis"`
	// Source says who measured it and how, in a sentence for a person.
	Source string `json:"source"`
}

// Basis says how far a figure can be trusted.
type Basis string

// The bases: measured on the machine; derived from what was measured there;
// assumed, because nothing was.
const (
	Measured Basis = "measured"
	Derived  Basis = "derived"
	Assumed  Basis = "assumed"
)

// NamedCost is a cost with its JSON name, for lists.
type NamedCost struct {
	Name string `json:"name"`
	Cost
}

// List has every cost in the order of the file.
func (c Costs) List() []NamedCost {
	var all []NamedCost
	for _, f := range c.fields() {
		all = append(all, NamedCost{Name: f.name, Cost: *f.cost})
	}
	return all
}

type costField struct {
	name string
	cost *Cost
}

func (c *Costs) fields() []costField {
	return []costField{
		{"callbacks_per_s", &c.CallbacksPerS},
		{"transitions_per_s", &c.TransitionsPerS},
		{"converged_per_s", &c.ConvergedPerS},
		{"published_per_s", &c.PublishedPerS},
		{"cpu_us_per_callback", &c.CPUPerCallback},
		{"cpu_us_per_transition", &c.CPUPerTransition},
		{"cpu_us_per_query", &c.CPUPerQuery},
		{"cpu_us_per_delivery", &c.CPUPerDelivery},
		{"cpu_us_per_published", &c.CPUPerPublished},
		{"kib_per_connection", &c.KiBPerConnection},
		{"connections_per_process", &c.ConnectionsPerProcess},
	}
}

//go:embed costs.json
var embedded []byte

// DefaultCosts are the unit costs known when this version was built.
func DefaultCosts() (Costs, error) {
	c, err := decode(embedded)
	if err != nil {
		return Costs{}, fmt.Errorf("embedded unit costs: %w", err)
	}
	return c, c.validate()
}

// ParseCosts reads a file of unit costs. The machine is needed; a cost that the
// file does not have is the default one, marked as assumed, because it was
// measured elsewhere. A name that is not known is an error, so a slip of the
// keyboard cannot pass for a measurement.
func ParseCosts(data []byte) (Costs, error) {
	c, err := decode(data)
	if err != nil {
		return Costs{}, err
	}
	defaults, err := DefaultCosts()
	if err != nil {
		return Costs{}, err
	}
	borrowed := defaults.fields()
	for i, f := range c.fields() {
		if *f.cost != (Cost{}) {
			continue
		}
		from := borrowed[i].cost
		*f.cost = Cost{Value: from.Value, Basis: Assumed, Source: fmt.Sprintf("not in the file; on %s: %s", defaults.Machine, from.Source)}
	}
	return c, c.validate()
}

func decode(data []byte) (Costs, error) {
	var c Costs
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return Costs{}, fmt.Errorf("unit costs are one JSON object like internal/capacity/costs.json: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return Costs{}, errors.New("unit costs are one JSON object: remove what follows it")
	}
	return c, nil
}

// validate reports every figure that cannot be a measurement.
func (c Costs) validate() error {
	var faults []error
	bad := func(name, why string) {
		faults = append(faults, fmt.Errorf("unit costs: %s: %s", name, why))
	}
	if c.Machine.OS == "" || c.Machine.Arch == "" {
		bad("machine", "name where they were measured: os and arch")
	}
	if why := outside(float64(c.Machine.CPUs), 1, 4096); why != "" {
		bad("machine.cpus", why)
	}
	if why := outside(float64(c.Machine.Memory), 128, math.MaxInt32); why != "" {
		bad("machine.memory_mib", why)
	}
	for _, f := range c.fields() {
		if why := outside(f.cost.Value, 0.001, 1e9); why != "" {
			bad(f.name, why)
		}
		switch f.cost.Basis {
		case Measured, Derived, Assumed:
		default:
			bad(f.name, fmt.Sprintf("basis %q must be measured, derived or assumed", f.cost.Basis))
		}
		if f.cost.Source == "" {
			bad(f.name, "source must say where the figure is from")
		}
	}
	return errors.Join(faults...)
}
