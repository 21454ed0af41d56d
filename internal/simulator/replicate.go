package simulator

import (
	"encoding/json"
	"math"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// problem is an error of either API before it is spelled in that API's way.
type problem struct {
	status int
	code   string // OpenAI's error.code
	title  string // Replicate's title
	detail string
	field  string // Replicate's invalid_fields[].field, OpenAI's error.param
}

var (
	replicateModel = regexp.MustCompile(`^[A-Za-z0-9._-]+/[A-Za-z0-9._-]+$`)
	// Without a filter Replicate sends these.
	defaultEvents = []event{eventOutput, eventCompleted}
	allEvents     = []event{eventStart, eventOutput, eventLogs, eventCompleted}
)

// parseReplicate reads the body of a create. pathModel is owner/name from the
// path and makes version and model in the body superfluous.
func parseReplicate(body []byte, pathModel string, allowPrivate bool) (*order, *problem) {
	var in struct {
		Version string          `json:"version"`
		Model   string          `json:"model"`
		Input   json.RawMessage `json:"input"`
		Webhook string          `json:"webhook"`
		Events  []event         `json:"webhook_events_filter"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, &problem{status: http.StatusBadRequest, title: "Bad request", detail: "The body is not the JSON object of a prediction."}
	}
	o := &order{dialect: replicate, model: in.Model, version: in.Version, webhook: in.Webhook, events: in.Events}
	if p := o.resolveModel(pathModel); p != nil {
		return nil, p
	}
	if p := o.readInput(in.Input); p != nil {
		return nil, p
	}
	if o.webhook != "" {
		if err := checkWebhookURL(o.webhook, allowPrivate); err != nil {
			return nil, invalid("webhook", err.Error())
		}
	}
	for _, ev := range o.events {
		if !slices.Contains(allEvents, ev) {
			return nil, invalid("webhook_events_filter", "want a subset of start, output, logs, completed")
		}
	}
	if len(o.events) == 0 {
		o.events = defaultEvents
	}
	return o, nil
}

func (o *order) resolveModel(pathModel string) *problem {
	if name, version, ok := strings.Cut(o.version, ":"); ok && o.model == "" {
		o.model, o.version = name, version
	} else if o.model == "" && replicateModel.MatchString(o.version) {
		o.model, o.version = o.version, ""
	}
	if pathModel != "" {
		o.model = pathModel
	}
	switch {
	case o.model == "" && o.version == "":
		return invalid("version", "version or model is required")
	case o.model != "" && !replicateModel.MatchString(o.model):
		return invalid("model", "want owner/name")
	}
	if o.version == "" {
		o.version = token(32, mixName(o.model))
	}
	if o.model == "" {
		o.model = "sim/video"
	}
	return nil
}

func (o *order) readInput(raw json.RawMessage) *problem {
	var fields struct {
		Prompt any             `json:"prompt"`
		Seed   any             `json:"seed"`
		Sim    json.RawMessage `json:"sim"`
	}
	if len(raw) == 0 || raw[0] != '{' || json.Unmarshal(raw, &fields) != nil {
		return invalid("input", "input is required and must be an object")
	}
	o.input = raw
	o.prompt, _ = fields.Prompt.(string)
	if n, ok := fields.Seed.(float64); ok {
		if n < 0 || n != math.Trunc(n) || n >= 1<<53 {
			return invalid("input.seed", "want a non-negative integer")
		}
		seed := uint64(n)
		o.seed = &seed
	}
	o.own = fields.Sim
	var err error
	if o.sim, err = parseDirective(o.prompt, fields.Sim); err != nil {
		return invalid("input.sim", err.Error())
	}
	return nil
}

func invalid(field, detail string) *problem {
	return &problem{
		status: http.StatusUnprocessableEntity, code: "invalid_value", title: "Input validation failed",
		detail: field + ": " + detail, field: field,
	}
}

// view is a job as a message shows it; the fields here hide the job's own.
type view struct {
	*job
	phase     phase
	completed time.Time
	hasOutput bool
}

func (j *job) view() view { return view{j, j.phase, j.completed, j.hasOutput} }

// prediction is Replicate's JSON for a job. After the output's lifetime the
// data is gone while the status stays. Needs mu.
func (v view) prediction(now time.Time) []byte {
	type urls struct {
		Get    string `json:"get"`
		Cancel string `json:"cancel"`
	}
	out := struct {
		ID          string             `json:"id"`
		Model       string             `json:"model"`
		Version     string             `json:"version"`
		Input       json.RawMessage    `json:"input"`
		Logs        string             `json:"logs"`
		Output      any                `json:"output"`
		DataRemoved bool               `json:"data_removed"`
		Error       *string            `json:"error"`
		Status      string             `json:"status"`
		CreatedAt   string             `json:"created_at"`
		StartedAt   *string            `json:"started_at"`
		CompletedAt *string            `json:"completed_at"`
		Metrics     map[string]float64 `json:"metrics,omitempty"`
		URLs        urls               `json:"urls"`
		Webhook     string             `json:"webhook,omitempty"`
		Events      []event            `json:"webhook_events_filter,omitempty"`
	}{
		ID: v.id, Model: v.model, Version: v.version, Input: v.input, Logs: v.logs.String(), Status: string(v.phase),
		CreatedAt: stamp(v.created), StartedAt: optionalStamp(v.started), CompletedAt: optionalStamp(v.completed),
		URLs:    urls{Get: v.base + "/v1/predictions/" + v.id, Cancel: v.base + "/v1/predictions/" + v.id + "/cancel"},
		Webhook: v.webhook,
	}
	if v.webhook != "" {
		out.Events = v.events
	}
	if v.quirks.unknownStatus && v.phase == processing {
		out.Status = "rendering_tiles"
	}
	if v.hasOutput {
		out.Output = v.shapeOutput()
	}
	if v.phase == failed {
		_, text := v.failure()
		out.Error = &text
	}
	if !v.completed.IsZero() && !v.started.IsZero() {
		out.Metrics = map[string]float64{"predict_time": v.completed.Sub(v.started).Seconds()}
	}
	if v.expired(now) {
		out.DataRemoved, out.Output, out.Logs, out.Input = true, nil, "", json.RawMessage("{}")
	}
	body, _ := json.Marshal(out) // the input was parsed once, everything else always marshals
	return body
}

func (v view) shapeOutput() any {
	switch v.sim.shape {
	case "array":
		return []string{v.outputURL()}
	case "object":
		return map[string]string{"video": v.outputURL()}
	default:
		return v.outputURL()
	}
}

func stamp(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }

func optionalStamp(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	text := stamp(t)
	return &text
}

// writeReplicateProblem spells a problem as RFC 7807.
func writeReplicateProblem(w http.ResponseWriter, p *problem) {
	type fieldError struct {
		Field       string `json:"field"`
		Type        string `json:"type"`
		Description string `json:"description"`
	}
	out := struct {
		Type   string       `json:"type"`
		Title  string       `json:"title"`
		Status int          `json:"status"`
		Detail string       `json:"detail"`
		Fields []fieldError `json:"invalid_fields,omitempty"`
	}{Type: "about:blank", Title: p.title, Status: p.status, Detail: p.detail}
	if p.field != "" {
		out.Fields = []fieldError{{Field: p.field, Type: "invalid", Description: p.detail}}
	}
	if out.Title == "" {
		out.Title = http.StatusText(p.status)
	}
	body, _ := json.Marshal(out)
	writeBody(w, p.status, "application/problem+json", body)
}

func writeBody(w http.ResponseWriter, status int, contentType string, body []byte) {
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // a caller that went away is its own business
}
