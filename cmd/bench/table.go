package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

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
	fmt.Fprintln(t, "per second\tmedian\tratio\tgoal\trounds\t")
	for _, l := range r.rows {
		ratio := ""
		if l.ratio > 0 {
			ratio = l.ratio.String()
		}
		fmt.Fprintf(t, "%s\t%v\t%s\t%s\t%v\t\n", l.label, l.median, ratio, l.goal, l.rounds)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	var b strings.Builder
	for _, n := range r.notes {
		fmt.Fprintln(&b, n)
	}
	fmt.Fprintf(&b, "lost: %d   violations: %d\n%s\n", r.Lost, r.Violations, r.Machine)
	for _, name := range durability {
		fmt.Fprintf(&b, "%s=%s ", name, r.Settings.Ours[name])
	}
	fmt.Fprintf(&b, "PostgreSQL %s\n", r.Settings.Ours["server_version"])
	for _, path := range slices.Sorted(maps.Keys(r.Compared)) {
		fmt.Fprintf(&b, "new / old  %s  %s\n", r.Compared[path], path)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
