package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
)

// figures are the numbers of a report by their path, such as "median.ours.x".
type figures struct {
	scenario string
	values   map[string]float64
}

// comparable are the parts of a report whose numbers are figures; what stands in
// the others are ids, counts of a run and the rounds behind the medians.
var comparable = []string{"median", "ratio", "latency_ms", "memory_kib_per_connection", "cpu_us_per_delivery", "details"}

// readFigures reads the report on the last line of a file.
func readFigures(path string) (*figures, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	f, err := parseFigures(text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return f, nil
}

// parseFigures takes the last line that is not empty.
func parseFigures(text []byte) (*figures, error) {
	lines := bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	var parts map[string]any
	if err := json.Unmarshal(lines[len(lines)-1], &parts); err != nil {
		return nil, fmt.Errorf("the last line is no report: %w", err)
	}
	f := &figures{values: map[string]float64{}}
	f.scenario, _ = parts["scenario"].(string)
	if f.scenario == "" {
		return nil, fmt.Errorf("the last line is no report: it names no scenario")
	}
	for _, name := range comparable {
		f.collect(name, parts[name])
	}
	return f, nil
}

// collect keeps the numbers below a value; lists have no lasting order and are
// left out.
func (f *figures) collect(path string, value any) {
	switch v := value.(type) {
	case float64:
		f.values[path] = v
	case map[string]any:
		for name, inner := range v {
			f.collect(path+"."+strings.ReplaceAll(name, ".", "_"), inner)
		}
	}
}

// compareWith sets Compared to the figures of this report divided by those of an
// older one, where both have them and the older is not 0.
func (r *report) compareWith(old *figures) error {
	if old == nil {
		return nil
	}
	text, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("report: %w", err)
	}
	now, err := parseFigures(text)
	if err != nil {
		return err
	}
	r.Compared = map[string]figure{}
	for path, value := range now.values {
		if before := old.values[path]; before != 0 {
			r.Compared[path] = figure(value / before)
		}
	}
	return nil
}
