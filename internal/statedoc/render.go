// Package statedoc writes docs/state-machine.md from the data of package domain:
// the transitions, the facts, the lists of verdicts and reasons and the polling
// table. Prose stands in the template; whatever can be asked of the code is asked,
// so that the page cannot say something else than the machine does.
package statedoc

import (
	_ "embed"
	"fmt"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/aivedio/aivedio/domain"
)

//go:embed page.md.tmpl
var page string

// Render returns the whole page. The same code always gives the same bytes. An
// error means that something in domain has no words here yet, or that the
// template is broken.
func Render() (string, error) {
	t, err := template.New("page").Option("missingkey=error").Funcs(template.FuncMap{
		"attemptDiagram": attemptDiagram,
		"phaseDiagram":   phaseDiagram,
		"transitions":    transitionTable,
		"facts":          factTable,
		"inputs":         inputTable,
		"verdicts":       verdictTable,
		"reasons":        reasonTable,
		"conflicts":      conflictTable,
		"guards":         guardList,
		"stages":         stageList,
		"polls":          pollTable,
		"failures":       failureTable,
		"cases":          caseTable,
		"policy":         domain.DefaultPolicy,
		"duration":       duration,
	}).Parse(page)
	if err != nil {
		return "", fmt.Errorf("parse the page: %w", err)
	}
	var b strings.Builder
	if err := t.Execute(&b, nil); err != nil {
		return "", fmt.Errorf("write the page: %w", err)
	}
	return b.String(), nil
}

// table writes a Markdown table.
func table(head []string, rows [][]string) string {
	var b strings.Builder
	line := func(cells []string) {
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	line(head)
	line(slices.Repeat([]string{"---"}, len(head)))
	for _, r := range rows {
		line(r)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// code writes words as code, with "or" between them.
func code[T ~string](words []T) string {
	var all []string
	for _, w := range words {
		all = append(all, "`"+string(w)+"`")
	}
	return strings.Join(all, ", ")
}

// described makes the rows of a list in which every word has an explanation.
func described[T ~string](words []T, text map[T]string) ([][]string, error) {
	var rows [][]string
	for _, w := range words {
		said, ok := text[w]
		if !ok {
			return nil, fmt.Errorf("nothing says what %q means", w)
		}
		rows = append(rows, []string{"`" + string(w) + "`", said})
	}
	if len(text) != len(rows) {
		return nil, fmt.Errorf("%d explanations for %d words", len(text), len(rows))
	}
	return rows, nil
}

// duration writes 2m0s as "2 min".
func duration(d time.Duration) string {
	units := []struct {
		size time.Duration
		name string
	}{{time.Hour, "h"}, {time.Minute, "min"}, {time.Second, "s"}}
	for _, u := range units {
		if d >= u.size && d%u.size == 0 {
			return fmt.Sprintf("%d %s", d/u.size, u.name)
		}
	}
	return d.String()
}
