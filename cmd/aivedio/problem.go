package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// problem is the error document of the API.
type problem struct {
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Code    string `json:"code"`
	TraceID string `json:"trace_id"`
	Errors  []struct {
		Field  string `json:"field"`
		Detail string `json:"detail"`
	} `json:"errors"`
}

// advice replaces sentences that are written for HTTP, by code.
var advice = map[string]string{
	"unauthenticated":      "Give a live key with --api-key or AIVEDIO_API_KEY; `aivedio key create` makes one.",
	"validation_failed":    "Correct:",
	"invalid_query":        "Correct:",
	"unknown_field":        "The server is of another version than this command. It does not know:",
	"invalid_cursor":       "Take the value of --after from the last page, or leave it out for the first one.",
	"possible_duplicate":   "Wait until that is known, or retry with --accept-possible-duplicate and risk a second bill.",
	"idempotency_mismatch": "Give another --idempotency-key for a new task, or repeat the old command unchanged.",
	"unavailable":          "Its database may be away; try again in a few seconds.",
	"overloaded":           "Try again in a few seconds.",
	"rate_limited":         "Try again in a few seconds.",
	"internal":             "Try again later; quote the trace id when you report it.",
	"insecure_transport":   "Give an https address as --url.",
	"no_such_route":        "Is --url the base address of an aivedio server, and is that server not older than this command?",
	"method_not_allowed":   "Is --url the base address of an aivedio server, and is that server not older than this command?",
	"insufficient_credits": "Whoever runs the platform can grant more: `aivedio credit grant`.",
}

// flags names what a person typed where the API names a field.
var flags = map[string]string{
	"provider":               "--provider",
	"model":                  "--model",
	"input.prompt":           "--prompt",
	"input.image_url":        "--image",
	"input.duration_seconds": "--duration",
	"input.aspect_ratio":     "--aspect-ratio",
	"input.resolution":       "--resolution",
	"input.seed":             "--seed",
	"input.extra":            "--extra",
	"Idempotency-Key":        "--idempotency-key",
	"status":                 "--status",
	"limit":                  "--limit",
	"after":                  "--after",
	"kind":                   "--kind",
	"reason":                 "--reason",
	"resolution":             "--as",
	"provider_task_id":       "--provider-task-id",
	"closing":                "--closing",
	"scopes":                 "--scopes",
	"name":                   "--name",
	"tenant":                 "--tenant",
}

// flagWords puts flags where a sentence names a field, a header or a path.
var flagWords = strings.NewReplacer("an image_url", "an image (--image)", "The id in the path", "The id", "The Idempotency-Key", "That --idempotency-key")

// Error is the sentence that a person needs, with the faults by flag.
func (p *problem) Error() string {
	var b strings.Builder
	b.WriteString(flagWords.Replace(either(p.Title, http.StatusText(p.Status))))
	if text := either(advice[p.Code], flagWords.Replace(p.Detail)); text != "" {
		b.WriteString(". " + text)
	}
	if p.Code == "scope_missing" {
		b.WriteString(" `aivedio key create --scopes …` makes one.")
	}
	for _, f := range p.Errors {
		fmt.Fprintf(&b, "\n  %s: %s", either(flags[f.Field], f.Field), flagWords.Replace(f.Detail))
	}
	if len(p.Errors) > 0 {
		b.WriteString("\n ")
	}
	fmt.Fprintf(&b, " (%s", p.Code)
	if p.TraceID != "" {
		fmt.Fprintf(&b, ", %s", p.TraceID)
	}
	return b.String() + ")"
}

// readProblem reads an error answer, whatever its form.
func readProblem(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("the server answered %s and no more: %w", resp.Status, err)
	}
	p := problem{Status: resp.StatusCode}
	if err := json.Unmarshal(data, &p); err != nil || p.Code == "" {
		return fmt.Errorf("the server answered %s; is --url the base address of an aivedio server?", resp.Status)
	}
	return &p
}
