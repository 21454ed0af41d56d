package statedoc

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aivedio/aivedio/domain"
)

// edges collects the arrows of a diagram; what leads from one state to another
// for several reasons is one arrow with several words.
type edges struct {
	order []string
	words map[string][]string
}

func (e *edges) add(from, to, word string) {
	if e.words == nil {
		e.words = map[string][]string{}
	}
	key := from + " --> " + to
	if _, ok := e.words[key]; !ok {
		e.order = append(e.order, key)
	}
	if !slices.Contains(e.words[key], word) {
		e.words[key] = append(e.words[key], word)
	}
}

// lines writes the arrows at a depth of indentation.
func (e *edges) lines(indent string) string {
	var b strings.Builder
	for _, key := range e.order {
		fmt.Fprintf(&b, "%s%s: %s\n", indent, key, strings.Join(e.words[key], "<br>"))
	}
	return b.String()
}

// diagram frames arrows.
func diagram(body string, ends []string) string {
	var b strings.Builder
	b.WriteString("```mermaid\nstateDiagram-v2\n    direction LR\n" + body)
	for _, end := range ends {
		fmt.Fprintf(&b, "    %s --> [*]\n", end)
	}
	b.WriteString("```")
	return b.String()
}

// attemptDiagram draws the statuses of an attempt. What leads out of every open
// status is one arrow out of the box around them. Rows that apply from anywhere
// are named in the text below the diagram.
func attemptDiagram() string {
	var open []domain.AttemptStatus
	var ends []string
	for _, s := range domain.AttemptStatuses() {
		if s.Terminal() {
			ends = append(ends, string(s))
		} else {
			open = append(open, s)
		}
	}
	var inside, outside edges
	for _, t := range domain.Transitions() {
		switch {
		case t.To == "":
		case slices.Equal(t.From, open):
			outside.add("open", string(t.To), string(t.On))
		default:
			for _, from := range t.From {
				if t.To.Terminal() {
					outside.add(string(from), string(t.To), string(t.On))
				} else {
					inside.add(string(from), string(t.To), string(t.On))
				}
			}
		}
	}
	body := "    [*] --> open\n    state open {\n        direction LR\n        [*] --> " + string(domain.AttemptCreated) + "\n" +
		inside.lines("        ") + "    }\n" + outside.lines("    ")
	return diagram(body, ends)
}

// phaseDiagram draws the phases of a task.
func phaseDiagram() string {
	var e edges
	for _, t := range domain.Transitions() {
		if t.Phase == "" {
			continue
		}
		for _, from := range phasesFrom(t) {
			if from != t.Phase {
				e.add(string(from), string(t.Phase), string(t.On))
			}
		}
	}
	var ends []string
	for _, p := range domain.Phases() {
		if p.Terminal() {
			ends = append(ends, string(p))
		}
	}
	return diagram("    [*] --> "+string(domain.PhaseQueued)+"\n"+e.lines("    "), ends)
}

// phasesFrom are the phases in which a row can apply to the current attempt: its
// own, or those that its statuses belong to.
func phasesFrom(t domain.Transition) []domain.Phase {
	if len(t.FromPhase) > 0 {
		return t.FromPhase
	}
	var all []domain.Phase
	for _, s := range t.From {
		p := domain.PhaseQueued
		if s == domain.AttemptRunning {
			p = domain.PhaseRunning
		}
		if !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}
