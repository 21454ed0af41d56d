package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
)

// report is the object that `--json` prints as the last line.
type report struct {
	Scenario string            `json:"scenario"`
	Machine  machine           `json:"machine"`
	Settings settings          `json:"settings"`
	Commands []string          `json:"commands"`
	PIDs     []int             `json:"pids"`
	Rounds   []round           `json:"rounds"`
	Median   medians           `json:"median"`
	Ratio    map[string]figure `json:"ratio"`
	Latency  latency           `json:"latency_ms"`
	CPU      figure            `json:"cpu_us_per_delivery"`
	// Lost are deliveries that were acknowledged and are not in the inbox.
	Lost int `json:"lost"`
	// Violations is what doctor counts at the end.
	Violations int `json:"violations"`
}

// settings is what the servers report of themselves.
type settings struct {
	Ours map[string]string `json:"ours"`
	Peer map[string]string `json:"peer"`
}

// figure prints with a precision that a person can read.
type figure float64

// MarshalJSON rounds to three digits behind the point, and to whole numbers from
// a hundred on.
func (f figure) MarshalJSON() ([]byte, error) { return []byte(f.String()), nil }

// String is the rounded number.
func (f figure) String() string {
	if f >= 100 {
		return fmt.Sprintf("%.0f", float64(f))
	}
	return fmt.Sprintf("%.3f", float64(f))
}

// round is one pass over both sides. A part that did not run is absent.
type round struct {
	Intake   intakeFigures      `json:"intake"`
	Drain    drainFigures       `json:"drain"`
	Together togetherFigures    `json:"together"`
	Peers    map[string]peerRun `json:"peers"`
}

// peerRun is one run of a peer.
type peerRun struct {
	PerSecond figure `json:"per_s"`
	Clients   int    `json:"clients"`
}

// intakeFigures: the callback role alone takes deliveries, as the peer alone
// inserts rows.
type intakeFigures struct {
	Acknowledged int                `json:"acknowledged"`
	PerSecond    figure             `json:"acknowledged_per_s"`
	Refused      int                `json:"refused"`
	P50          figure             `json:"answer_p50_ms"`
	P99          figure             `json:"answer_p99_ms"`
	CPU          map[string]cpuTime `json:"cpu_s"`
}

// drainFigures: the process role alone digests what intake left, as the peer
// alone works through its inbox.
type drainFigures struct {
	Transitions int                `json:"transitions"`
	PerSecond   figure             `json:"transitions_per_s"`
	CPU         map[string]cpuTime `json:"cpu_s"`
}

// togetherFigures: all roles at once, under full load.
type togetherFigures struct {
	Acknowledged       int                `json:"acknowledged"`
	AcknowledgedPerSec figure             `json:"acknowledged_per_s"`
	Transitions        int                `json:"transitions"`
	TransitionsPerSec  figure             `json:"transitions_per_s"`
	CPUPerDelivery     figure             `json:"cpu_us_per_delivery"`
	CPU                map[string]cpuTime `json:"cpu_s"`
}

// medians are over the rounds, per second.
type medians struct {
	Ours  oursMedian        `json:"ours"`
	Peers map[string]figure `json:"peers"`
}

type oursMedian struct {
	Acknowledged         figure `json:"acknowledged_per_s"`
	Transitions          figure `json:"transitions_per_s"`
	TogetherAcknowledged figure `json:"together_acknowledged_per_s"`
	TogetherTransitions  figure `json:"together_transitions_per_s"`
}

// median of the values; 0 for none.
func median[T ~float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	s := slices.Sorted(slices.Values(values))
	if n := len(s); n%2 == 0 {
		return (s[n/2-1] + s[n/2]) / 2
	}
	return s[len(s)/2]
}

// percentile of sorted values, the nearest rank; 0 for none.
func percentile[T ~float64](sorted []T, p float64) T {
	if len(sorted) == 0 {
		return 0
	}
	at := int(p/100*float64(len(sorted))+0.9999999) - 1
	return sorted[min(max(at, 0), len(sorted)-1)]
}

// summarise fills medians and ratios from the rounds.
func (r *report) summarise() {
	collect := func(of func(round) figure) figure {
		var all []figure
		for _, rd := range r.Rounds {
			all = append(all, of(rd))
		}
		return median(all)
	}
	r.Median.Ours = oursMedian{
		Acknowledged:         collect(func(rd round) figure { return rd.Intake.PerSecond }),
		Transitions:          collect(func(rd round) figure { return rd.Drain.PerSecond }),
		TogetherAcknowledged: collect(func(rd round) figure { return rd.Together.AcknowledgedPerSec }),
		TogetherTransitions:  collect(func(rd round) figure { return rd.Together.TransitionsPerSec }),
	}
	r.CPU = collect(func(rd round) figure { return rd.Together.CPUPerDelivery })
	r.Median.Peers, r.Ratio = map[string]figure{}, map[string]figure{}
	for name, ours := range map[string]figure{peerInsert: r.Median.Ours.Acknowledged, peerNaive: r.Median.Ours.Transitions} {
		theirs := collect(func(rd round) figure { return rd.Peers[name].PerSecond })
		if theirs > 0 {
			r.Median.Peers[name], r.Ratio[name] = theirs, ours/theirs
		}
	}
}

// writeJSON prints the object on one line.
func (r *report) writeJSON(w io.Writer) error {
	line, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}

// writeTable prints the figures for a person.
func (r *report) writeTable(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	line := func(cells ...any) {
		for _, c := range cells {
			fmt.Fprintf(t, "%v\t", c)
		}
		fmt.Fprintln(t)
	}
	line("per second", "median", "ratio", "goal", "rounds")
	line("acknowledged over HTTP, intake alone", r.Median.Ours.Acknowledged, "", "", r.each(func(rd round) figure { return rd.Intake.PerSecond }))
	if v, ok := r.Median.Peers[peerInsert]; ok {
		line("  pgbench, one-row inserts", v, r.Ratio[peerInsert], "≥ 0.7", r.each(func(rd round) figure { return rd.Peers[peerInsert].PerSecond }))
	}
	line("transitions, inbox alone", r.Median.Ours.Transitions, "", "", r.each(func(rd round) figure { return rd.Drain.PerSecond }))
	if v, ok := r.Median.Peers[peerNaive]; ok {
		line("  pgbench, one by one", v, r.Ratio[peerNaive], "≥ 3", r.each(func(rd round) figure { return rd.Peers[peerNaive].PerSecond }))
	}
	line("acknowledged, all roles at once", r.Median.Ours.TogetherAcknowledged, "", "", r.each(func(rd round) figure { return rd.Together.AcknowledgedPerSec }))
	line("converged, all roles at once", r.Median.Ours.TogetherTransitions, "", "", r.each(func(rd round) figure { return rd.Together.TransitionsPerSec }))
	if err := t.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(w, "commit to stream at %v/s: p50 %v ms, p99 %v ms (%d events on %d streams)\nCPU per delivery, all roles and PostgreSQL: %v µs\nlost: %d   violations: %d\n%s\nfsync=%s synchronous_commit=%s full_page_writes=%s on both sides, PostgreSQL %s\n",
		r.Latency.Rate, r.Latency.P50, r.Latency.P99, r.Latency.Events, r.Latency.Streams, r.CPU, r.Lost, r.Violations, r.Machine,
		r.Settings.Ours["fsync"], r.Settings.Ours["synchronous_commit"], r.Settings.Ours["full_page_writes"], r.Settings.Ours["server_version"])
	return err
}

func (r *report) each(of func(round) figure) []figure {
	var all []figure
	for _, rd := range r.Rounds {
		all = append(all, of(rd))
	}
	return all
}
