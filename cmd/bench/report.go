package main

import (
	"fmt"
)

// report is the object that `--json` prints as the last line. It knows no
// scenario: what a round holds and which medians there are is a scenario's own.
type report struct {
	Scenario string   `json:"scenario"`
	Machine  machine  `json:"machine"`
	Settings settings `json:"settings"`
	// Commands are the command lines of everything that took part, PIDs the ids of
	// all their lives.
	Commands []string `json:"commands"`
	PIDs     []int    `json:"pids"`
	// Rounds are the passes over all sides, in their order.
	Rounds []any   `json:"rounds"`
	Median medians `json:"median"`
	// Ratio is ours divided by the peer's, by the name of the peer.
	Ratio map[string]figure `json:"ratio,omitempty"`
	// Latency is the one that the scenario is about; others stand in Details.
	Latency *quantiles `json:"latency_ms,omitempty"`
	Memory  figure     `json:"memory_kib_per_connection,omitempty"`
	CPU     figure     `json:"cpu_us_per_delivery,omitempty"`
	// Details are what else the scenario found, by names of its own.
	Details map[string]any `json:"details,omitempty"`
	// Lost are deliveries that were acknowledged and are not there.
	Lost int `json:"lost"`
	// Violations is what doctor counts at the end, and what a scenario counts itself
	// of promises that were broken.
	Violations int `json:"violations"`
	// Compared is this run divided by an older one, by the path of the figure.
	Compared map[string]figure `json:"compared,omitempty"`

	// wanted are the peers without which the figures mean nothing.
	wanted []string
	// faults are a scenario's own reasons why the figures must not be used.
	faults []error
	rows   []row
	notes  []string
}

// settings is what the servers report of themselves. Peer is empty where there is
// none.
type settings struct {
	Ours map[string]string `json:"ours"`
	Peer map[string]string `json:"peer,omitempty"`
}

// medians are over the rounds: ours by the name of the figure, a peer's one figure
// by its name.
type medians struct {
	Ours  map[string]figure `json:"ours"`
	Peers map[string]figure `json:"peers,omitempty"`
}

// newReport begins the report of a scenario that has to measure these peers, too.
func newReport(scenario string, wanted ...string) *report {
	return &report{
		Scenario: scenario, Machine: thisMachine(), Rounds: []any{}, Commands: []string{}, PIDs: []int{},
		Median: medians{Ours: map[string]figure{}, Peers: map[string]figure{}}, Ratio: map[string]figure{}, Details: map[string]any{}, wanted: wanted,
	}
}

// ran notes command lines and process ids of those that took part; an empty
// command and the id 0 are left out.
func (r *report) ran(command string, pids ...int) {
	if command != "" {
		r.Commands = append(r.Commands, command)
	}
	for _, pid := range pids {
		if pid != 0 {
			r.PIDs = append(r.PIDs, pid)
		}
	}
}

// ours sets the median of a figure of ours and returns it.
func (r *report) ours(name string, values []figure) figure {
	m := median(values)
	r.Median.Ours[name] = m
	return m
}

// peer sets the median of a peer and, when it did anything, the ratio of our
// figure to it.
func (r *report) peer(name string, values []figure, ours figure) {
	if m := median(values); m > 0 {
		r.Median.Peers[name], r.Ratio[name] = m, ours/m
	}
}

// row is a line of the table for a person.
type row struct {
	label, goal string
	median      figure
	ratio       figure // 0: there is none
	rounds      []figure
}

// line adds a line to the table.
func (r *report) line(label string, values []figure) {
	r.rows = append(r.rows, row{label: label, median: median(values), rounds: values})
}

// peerLine adds a line of a peer, with the ratio that peer has set and its goal.
func (r *report) peerLine(name, label, goal string, values []figure) {
	if m, ok := r.Median.Peers[name]; ok {
		r.rows = append(r.rows, row{label: "  " + label, goal: goal, median: m, ratio: r.Ratio[name], rounds: values})
	}
}

// note adds a sentence below the table.
func (r *report) note(format string, args ...any) {
	r.notes = append(r.notes, fmt.Sprintf(format, args...))
}
