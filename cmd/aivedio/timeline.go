package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

type taskTimelineCmd struct{ taskRef }

// timelineAnswer is the operator's view of a task's history.
type timelineAnswer struct {
	Entries []struct {
		At            string `json:"at"`
		Kind          string `json:"kind"`
		AttemptNo     int    `json:"attempt_no"`
		Source        string `json:"source"`
		Status        string `json:"status"`
		Stage         string `json:"stage"`
		Verdict       string `json:"verdict"`
		Reason        string `json:"reason"`
		VersionBefore int64  `json:"version_before"`
		VersionAfter  int64  `json:"version_after"`
		EventID       int64  `json:"event_id"`
		Progress      *int   `json:"progress"`
		Detail        string `json:"detail"`
	} `json:"entries"`
	Counters map[string]int64 `json:"counters"`
}

// Run prints the timeline.
func (cmd taskTimelineCmd) Run(ctx context.Context, std streams) error {
	c, err := cmd.client()
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := c.call(ctx, http.MethodGet, c.path("tasks", cmd.ID, "timeline"), nil, &raw); err != nil {
		return err
	}
	if cmd.JSON {
		return std.json(raw)
	}
	var answer timelineAnswer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return fmt.Errorf("the timeline does not parse: %w", err)
	}
	rows := [][]string{{"TIME", "WHAT", "TRY", "SOURCE", "STATUS", "STAGE", "%", "VERDICT", "REASON", "VERSION", "EVENT", "DETAIL"}}
	for _, e := range answer.Entries {
		if e.Kind == "observation" && e.Detail != "" { // the kind of input says more
			e.Kind, e.Detail, _ = strings.Cut(e.Detail, ": ")
		}
		rows = append(rows, []string{
			clockOf(e.At), e.Kind, number(int64(e.AttemptNo)), cmp.Or(e.Source, "–"), cmp.Or(e.Status, "–"), cmp.Or(e.Stage, "–"), percent(e.Progress),
			cmp.Or(e.Verdict, "–"), cmp.Or(e.Reason, "–"), versions(e.VersionBefore, e.VersionAfter), number(e.EventID), e.Detail,
		})
	}
	if err := std.table(rows); err != nil {
		return err
	}
	for name, n := range answer.Counters {
		fmt.Fprintf(std.out, "counted only: %s × %d\n", name, n)
	}
	return nil
}

func number(n int64) string {
	if n == 0 {
		return "–"
	}
	return strconv.FormatInt(n, 10)
}

func versions(before, after int64) string {
	if before == after {
		return number(after)
	}
	return fmt.Sprintf("%d → %d", before, after)
}

// clockOf shortens a time of the API to what a person compares.
func clockOf(s string) string {
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		return s
	}
	return t.UTC().Format("15:04:05.000")
}
