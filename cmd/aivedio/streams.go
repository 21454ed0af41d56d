package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"
)

// streams is where a command prints: results to out, everything else to err.
type streams struct {
	out, err io.Writer
}

// json prints one JSON value on one line.
func (s streams) json(v any) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	_, err = fmt.Fprintf(s.out, "%s\n", data)
	return err
}

// table prints rows in columns, the first row as the head.
func (s streams) table(rows [][]string) error {
	w := tabwriter.NewWriter(s.out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		for i, cell := range row {
			if i > 0 {
				fmt.Fprint(w, "\t")
			}
			fmt.Fprint(w, cell)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
