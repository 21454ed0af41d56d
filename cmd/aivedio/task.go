package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"

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
	Download taskDownloadCmd `cmd:"" help:"Save the file of a task that is ready."`
}

// taskAnswer is the snapshot of the contract.
type taskAnswer struct {
	Task   wire.Task `json:"task"`
	Cursor string    `json:"cursor"`
}

// task reads a snapshot.
func (c *apiClient) task(ctx context.Context, id string) (taskAnswer, error) {
	var answer taskAnswer
	err := c.call(ctx, http.MethodGet, c.path("tasks", id), nil, &answer)
	return answer, err
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
	if !headerText(cmd.IdempotencyKey) {
		return fmt.Errorf("--idempotency-key must be printable ASCII")
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
		return watchTask(ctx, c, std, answer, cmd.watchOptions)
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
	answer, err := c.task(ctx, cmd.ID)
	if err != nil {
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
