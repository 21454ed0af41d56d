package capacity

import "fmt"

// Plan is the answer to a load: figures with their formulas, processes, where
// they run, and what does not fit.
type Plan struct {
	Load  Load  `json:"load"`
	Costs Costs `json:"costs"`
	// Figures are in the order of the specification's sections.
	Figures []Figure `json:"figures"`
	// Processes are counted per role, each role in processes of its own.
	Processes []RoleCount `json:"processes"`
	// Machines are of the kind the costs were measured on; the first Load.Nodes
	// have a gateway. PostgreSQL, the broker and Redis are beside them.
	Machines []Placement `json:"machines"`
	// Warnings say what does not fit and what to do; never nil.
	Warnings []Warning `json:"warnings"`
}

// Figure is one number of a plan.
type Figure struct {
	// Name is stable and made for machines.
	Name string `json:"name"`
	// Label is for a person.
	Label string `json:"label"`
	// Value is in Unit; of a range it is the low end.
	Value float64 `json:"value"`
	// High is the high end of a range, and 0 for a single number.
	High float64 `json:"high,omitempty"`
	Unit string  `json:"unit"`
	// Formula is how Value came about, with the numbers put in.
	Formula string `json:"formula"`
	// Text is the number for a person, with a unit that may be larger than Unit.
	Text string `json:"text"`
}

// Warning is something that does not fit.
type Warning struct {
	// Code is stable and made for machines.
	Code string `json:"code"`
	// Text says what does not fit and what to do.
	Text string `json:"text"`
}

// heartbeatLow and heartbeatHigh are the size of a heartbeat in bytes, with what
// the protocol adds (specification 12.11.3).
const heartbeatLow, heartbeatHigh = 100, 200

// room is the part of a machine that a plan uses. The rest is for a lost node,
// reconnects, a rolling release and garbage collection.
const room = 0.6

// demand is what follows from a load alone.
type demand struct {
	inFlight, inFlightPeak float64 // tasks
	events, eventsPeak     float64 // per second
	queries, queriesPeak   float64 // per second
	heartbeats             float64 // per second
	deliveries             float64 // frames with an event at the peak, per second
	perNode, perNodeLost   int     // streams on a node, and with one node away
}

func (l Load) demand() demand {
	d := demand{inFlight: l.ArrivalRate * l.MeanDuration, events: l.ArrivalRate * l.EventsPerTask}
	d.inFlightPeak, d.eventsPeak = d.inFlight*l.PeakFactor, d.events*l.PeakFactor
	d.queries = d.inFlight / l.PollInterval
	d.queriesPeak = d.queries * l.PeakFactor
	d.heartbeats = float64(l.Connections) / l.HeartbeatInterval
	d.deliveries = d.eventsPeak * l.FanOut
	d.perNode = divideUp(l.Connections, l.Nodes)
	d.perNodeLost = divideUp(l.Connections, max(l.Nodes-1, 1))
	return d
}

func divideUp(n, by int) int { return (n + by - 1) / by }

// Make calculates the plan of a load with the given unit costs. The error names
// every input that makes no sense and what to give instead.
func Make(l Load, c Costs) (Plan, error) {
	if err := l.Validate(); err != nil {
		return Plan{}, err
	}
	if err := c.validate(); err != nil {
		return Plan{}, err
	}
	d := l.demand()
	p := Plan{Load: l, Costs: c, Figures: figures(l, c, d), Processes: roles(l, c, d), Warnings: []Warning{}}
	var err error
	if p.Machines, err = place(l.Nodes, c.Machine, p.Processes); err != nil {
		return Plan{}, err
	}
	p.Warnings = append(p.Warnings, warnings(l, c, d, len(p.Machines))...)
	return p, nil
}

// Figure returns the figure of that name.
func (p Plan) Figure(name string) (Figure, error) {
	for _, f := range p.Figures {
		if f.Name == name {
			return f, nil
		}
	}
	return Figure{}, fmt.Errorf("a plan has no figure %q", name)
}
