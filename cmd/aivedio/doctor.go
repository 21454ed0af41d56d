package main

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore/doctor"
)

type doctorCmd struct {
	databaseFlag
	JSON bool `help:"Print JSON."`
}

// Run checks every invariant and exits 5 when one is broken.
func (cmd doctorCmd) Run(ctx context.Context, std streams) error {
	url, err := cmd.url()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return fmt.Errorf("PostgreSQL: %w", err)
	}
	defer conn.Close(context.WithoutCancel(ctx)) //nolint:errcheck // nothing is written
	checks, err := doctor.Examine(ctx, conn)
	if err != nil {
		return err
	}
	if cmd.JSON {
		err = std.json(map[string]any{"checks": checks, "violations": doctor.Violations(checks)})
	} else {
		err = printChecks(std, checks)
	}
	if err == nil && doctor.Violations(checks) > 0 {
		return &exitError{code: exitViolations}
	}
	return err
}

func printChecks(std streams, checks []doctor.Check) error {
	for _, c := range checks {
		state := "holds"
		switch {
		case c.Elsewhere != "":
			state = "not visible here; shown by " + c.Elsewhere
		case len(c.Violations) > 0:
			state = "BROKEN"
		}
		if _, err := fmt.Fprintf(std.out, "%-4s %s: %s\n", c.ID, c.Promise, state); err != nil {
			return err
		}
		for _, v := range c.Violations {
			fmt.Fprintf(std.out, "     %s\n", v)
		}
	}
	return nil
}
