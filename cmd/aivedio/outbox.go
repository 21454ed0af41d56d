package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
)

type outboxCmd struct {
	List   outboxListCmd   `cmd:"" help:"Show what waits for the bus, and the projects that are parked because the bus refuses their events."`
	Unpark outboxUnparkCmd `cmd:"" help:"Have a parked project's events sent again, in order."`
}

type (
	outboxListCmd   struct{ listRef }
	outboxUnparkCmd struct {
		remote
		Project string `arg:"" help:"Id of the project, prj_…"`
		Reason  string `required:"" help:"Why; kept in the audit log."`
		DryRun  bool   `help:"Only say how many events would be sent."`
	}
)

// outboxAnswer is what the server says of the outbox.
type outboxAnswer struct {
	Outbox struct {
		Rows       int64       `json:"rows"`
		AgeSeconds float64     `json:"oldest_age_seconds"`
		Projects   int         `json:"parked_projects"`
		Parked     []parkedRow `json:"parked"`
	} `json:"outbox"`
}

// Run shows the backlog and the parked projects.
func (cmd outboxListCmd) Run(ctx context.Context, std streams) error {
	raw, err := adminRow(ctx, cmd.remote, cmd.query("outbox", nil))
	if err != nil {
		return err
	}
	if cmd.JSON {
		return std.json(raw)
	}
	var answer outboxAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("the server's answer does not parse: %w", err)
	}
	if _, err := fmt.Fprintf(std.out, "%d events wait, the oldest for %.1f s; %d projects are parked\n", answer.Outbox.Rows, answer.Outbox.AgeSeconds, answer.Outbox.Projects); err != nil {
		return err
	}
	if len(answer.Outbox.Parked) == 0 {
		return nil
	}
	table := [][]string{{"PROJECT ID", "ERROR CODE", "REFUSALS", "SINCE", "ROWS"}}
	for _, p := range answer.Outbox.Parked {
		table = append(table, []string{p.ProjectID, p.ErrorCode, fmt.Sprint(p.Refusals), p.Since, fmt.Sprint(p.Rows)})
	}
	return std.table(table)
}

// parkedRow is a parked project in an answer.
type parkedRow struct {
	ProjectID string `json:"project_id"`
	ErrorCode string `json:"error_code"`
	Refusals  int    `json:"refusals"`
	Since     string `json:"since"`
	Rows      int64  `json:"rows"`
}

// Run releases a project.
func (cmd outboxUnparkCmd) Run(ctx context.Context, std streams) error {
	c, err := cmd.client()
	if err != nil {
		return err
	}
	if strings.ContainsAny(cmd.Project, "/?#") {
		return fmt.Errorf("%q is not the id of a project", cmd.Project)
	}
	var answer struct {
		Parked parkedRow `json:"parked"`
	}
	body := map[string]any{"reason": cmd.Reason, "dry_run": cmd.DryRun}
	if err := c.call(ctx, http.MethodPost, "/admin/outbox/"+cmd.Project+"/unpark", body, &answer); err != nil {
		return err
	}
	verb := "are sent again"
	if cmd.DryRun {
		verb = "would be sent again"
	}
	_, err = fmt.Fprintf(std.out, "%d events of %s %s\n", answer.Parked.Rows, answer.Parked.ProjectID, verb)
	return err
}
