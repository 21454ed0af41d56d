package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

// taskCmd groups what users do with tasks.
type taskCmd struct {
	Submit   taskSubmitCmd   `cmd:"" help:"Submit a generation task."`
	Get      taskGetCmd      `cmd:"" help:"Show a task."`
	List     taskListCmd     `cmd:"" help:"List tasks, the newest first."`
	Watch    taskWatchCmd    `cmd:"" help:"Follow a task until it ends."`
	Cancel   taskCancelCmd   `cmd:"" help:"Ask to cancel a task."`
	Retry    taskRetryCmd    `cmd:"" help:"Open a new attempt at a failed or canceled task."`
	Timeline taskTimelineCmd `cmd:"" help:"Show every observation with its verdict and reason."`
}

// taskAnswer is the snapshot of the contract.
type taskAnswer struct {
	Task   wire.Task `json:"task"`
	Cursor string    `json:"cursor"`
}

// taskRef names one task.
type taskRef struct {
	target
	ID   string `arg:"" help:"Task id." placeholder:"tsk_…"`
	JSON bool   `help:"Print JSON."`
}

type taskSubmitCmd struct {
	target
	watchOptions
	Provider       string `required:"" help:"Vendor."`
	Model          string `required:"" help:"The vendor's model."`
	Prompt         string `required:"" help:"What to generate."`
	Image          string `help:"URL of a first image." placeholder:"URL"`
	Duration       int    `help:"Length in seconds."`
	AspectRatio    string `help:"For instance 16:9."`
	Resolution     string `help:"For instance 1080p."`
	Seed           *int64 `help:"The vendor's random seed."`
	Extra          string `help:"JSON object handed to the vendor as it is."`
	IdempotencyKey string `help:"Repeating a submit with the same key gives the same task."`
	Watch          bool   `help:"Follow the task until it ends."`
}

// Run submits and, when asked, follows the task.
func (cmd taskSubmitCmd) Run(ctx context.Context, std streams) error {
	c, err := cmd.client()
	if err != nil {
		return err
	}
	input := map[string]any{"prompt": cmd.Prompt}
	add := func(key string, value any, set bool) {
		if set {
			input[key] = value
		}
	}
	add("image_url", cmd.Image, cmd.Image != "")
	add("duration_seconds", cmd.Duration, cmd.Duration != 0)
	add("aspect_ratio", cmd.AspectRatio, cmd.AspectRatio != "")
	add("resolution", cmd.Resolution, cmd.Resolution != "")
	add("seed", cmd.Seed, cmd.Seed != nil)
	add("extra", json.RawMessage(cmd.Extra), cmd.Extra != "")
	if cmd.Extra != "" && !json.Valid([]byte(cmd.Extra)) {
		return fmt.Errorf("--extra is not JSON")
	}
	req, err := c.request(ctx, http.MethodPost, c.path("tasks"), map[string]any{"provider": cmd.Provider, "model": cmd.Model, "input": input})
	if err != nil {
		return err
	}
	if cmd.IdempotencyKey != "" {
		req.Header.Set("Idempotency-Key", cmd.IdempotencyKey)
	}
	var answer taskAnswer
	if err := c.send(req, &answer); err != nil {
		return err
	}
	if cmd.Watch {
		return watchTask(ctx, c, std, answer.Task.ID, cmd.watchOptions)
	}
	return printTask(std, answer, cmd.JSON)
}

type taskGetCmd struct{ taskRef }

// Run prints the snapshot.
func (cmd taskGetCmd) Run(ctx context.Context, std streams) error {
	c, err := cmd.client()
	if err != nil {
		return err
	}
	var answer taskAnswer
	if err := c.call(ctx, http.MethodGet, c.path("tasks", cmd.ID), nil, &answer); err != nil {
		return err
	}
	return printTask(std, answer, cmd.JSON)
}

type taskListCmd struct {
	target
	Status string `help:"Only tasks of this status."`
	Limit  int    `default:"20" help:"How many."`
	After  string `help:"Continue after this value of next."`
	JSON   bool   `help:"Print JSON."`
}

// Run prints one page.
func (cmd taskListCmd) Run(ctx context.Context, std streams) error {
	c, err := cmd.client()
	if err != nil {
		return err
	}
	q := url.Values{"limit": {strconv.Itoa(cmd.Limit)}}
	if cmd.Status != "" {
		q.Set("status", cmd.Status)
	}
	if cmd.After != "" {
		q.Set("after", cmd.After)
	}
	var page struct {
		Tasks  []wire.Task `json:"tasks"`
		Cursor string      `json:"cursor"`
		Next   *string     `json:"next"`
	}
	if err := c.call(ctx, http.MethodGet, c.path("tasks")+"?"+q.Encode(), nil, &page); err != nil {
		return err
	}
	if cmd.JSON {
		return std.json(page)
	}
	rows := [][]string{{"TASK", "STATUS", "STAGE", "PROGRESS", "VENDOR", "MODEL", "UPDATED"}}
	for _, t := range page.Tasks {
		rows = append(rows, []string{t.ID, string(t.Status), string(t.Stage), percent(t.Progress), t.Attempt.Provider, t.Attempt.Model, t.UpdatedAt})
	}
	if err := std.table(rows); err != nil {
		return err
	}
	if page.Next != nil {
		fmt.Fprintf(std.err, "more: --after %s\n", *page.Next)
	}
	return nil
}

type taskCancelCmd struct{ taskRef }

// Run asks to cancel.
func (cmd taskCancelCmd) Run(ctx context.Context, std streams) error {
	return cmd.command(ctx, std, "cancel", map[string]any{})
}

type taskRetryCmd struct {
	taskRef
	AcceptPossibleDuplicate bool `help:"Retry although the vendor may have accepted the last attempt and bill both."`
}

// Run opens a new attempt.
func (cmd taskRetryCmd) Run(ctx context.Context, std streams) error {
	return cmd.command(ctx, std, "retry", map[string]any{"accept_possible_duplicate": cmd.AcceptPossibleDuplicate})
}

// command posts to a task and prints what it became.
func (r taskRef) command(ctx context.Context, std streams, verb string, body any) error {
	c, err := r.client()
	if err != nil {
		return err
	}
	var answer taskAnswer
	if err := c.call(ctx, http.MethodPost, c.path("tasks", r.ID, verb), body, &answer); err != nil {
		return err
	}
	return printTask(std, answer, r.JSON)
}

// printTask prints a snapshot for a person or a program.
func printTask(std streams, answer taskAnswer, asJSON bool) error {
	if asJSON {
		return std.json(answer)
	}
	t := answer.Task
	rows := [][]string{
		{"task", t.ID},
		{"status", string(t.Status)},
		{"stage", string(t.Stage)},
		{"progress", percent(t.Progress)},
		{"vendor", t.Attempt.Provider + " " + t.Attempt.Model},
		{"attempt", fmt.Sprintf("%d, %s", t.Attempt.No, t.Attempt.Status)},
		{"version", strconv.FormatInt(t.TaskVersion, 10)},
		{"updated", t.UpdatedAt},
	}
	if t.AssetID != nil {
		rows = append(rows, []string{"asset", *t.AssetID})
	}
	if t.Error != nil {
		rows = append(rows, []string{"error", fmt.Sprintf("%s (retryable: %t, %s)", t.Error.Code, t.Error.Retryable, t.Error.TraceID)})
	}
	return std.table(rows)
}

func percent(p *int) string {
	if p == nil {
		return "–"
	}
	return strconv.Itoa(*p) + " %"
}

// taskExit is the exit code that a task's end gives.
func taskExit(status domain.Status) error {
	switch status {
	case domain.Status(domain.PhaseReady):
		return nil
	case domain.Status(domain.PhaseFailed):
		return &exitError{code: exitFailed}
	case domain.Status(domain.PhaseCanceled):
		return &exitError{code: exitCanceled}
	default:
		return &exitError{code: exitRunning}
	}
}

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
			e.Kind, e.Detail = e.Detail, ""
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
