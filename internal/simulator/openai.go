package simulator

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

var videoSize = regexp.MustCompile(`^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$`)

// gatewayWords are the status words of servers that follow OpenAI's shape but
// not its vocabulary: queued, in_progress, completed, failed.
var gatewayWords = [][4]string{
	{"queued", "processing", "succeeded", "failed"},
	{"QUEUED", "IN_PROGRESS", "SUCCESS", "FAILURE"},
	{"SUBMITTED", "Processing", "Completed", "FAILED"},
}

// parseOpenAI reads the body of a create, JSON or multipart by content type.
func parseOpenAI(contentType string, body []byte) (*order, *problem) {
	kind, params, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = ""
	}
	var fields map[string]any
	switch kind {
	case "application/json":
		err = json.Unmarshal(body, &fields)
	case "multipart/form-data":
		fields, err = readForm(body, params["boundary"])
	default:
		return nil, &problem{
			status: http.StatusUnsupportedMediaType, code: "unsupported_content_type",
			detail: "Send application/json or multipart/form-data.",
		}
	}
	if err != nil || fields == nil {
		return nil, &problem{status: http.StatusBadRequest, code: "invalid_body", detail: "The body could not be read as " + kind + "."}
	}
	return orderVideo(fields)
}

func orderVideo(fields map[string]any) (*order, *problem) {
	for _, key := range []string{"model", "prompt", "seconds", "size", "seed"} {
		switch fields[key].(type) {
		case nil, string, float64:
		default:
			return nil, badParam(key, "Want text or a number.")
		}
	}
	o := &order{
		dialect: openai, model: text(fields, "model", "sora-2"), prompt: text(fields, "prompt", ""),
		seconds: text(fields, "seconds", "4"), size: text(fields, "size", "720x1280"),
	}
	switch n, err := strconv.Atoi(o.seconds); {
	case strings.TrimSpace(o.prompt) == "":
		return nil, badParam("prompt", "Missing required parameter: 'prompt'.")
	case err != nil || n < 1 || n > 600:
		return nil, badParam("seconds", "Want a number of seconds, as a string.")
	case !videoSize.MatchString(o.size):
		return nil, badParam("size", "Want a size such as 1280x720.")
	}
	if raw := text(fields, "seed", ""); raw != "" {
		seed, err := strconv.ParseUint(raw, 10, 53)
		if err != nil {
			return nil, badParam("seed", "Want a non-negative integer.")
		}
		o.seed = &seed
	}
	switch sim := fields["sim"].(type) {
	case nil:
	case string:
		o.own = json.RawMessage(sim)
	default:
		o.own, _ = json.Marshal(sim) // it came out of a JSON decoder
	}
	var err error
	if o.sim, err = parseDirective(o.prompt, o.own); err != nil {
		return nil, badParam("sim", err.Error())
	}
	return o, nil
}

// text is a field given as text or as a number.
func text(fields map[string]any, key, zero string) string {
	switch v := fields[key].(type) {
	case string:
		return v
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return zero
	}
}

const maxFormParts = 32

// readForm reads the text fields; files are accepted and thrown away.
func readForm(body []byte, boundary string) (map[string]any, error) {
	if boundary == "" {
		return nil, errors.New("no boundary")
	}
	fields := map[string]any{}
	parts := multipart.NewReader(bytes.NewReader(body), boundary)
	for range maxFormParts {
		part, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			return fields, nil
		}
		if err != nil {
			return nil, err
		}
		value, err := io.ReadAll(part)
		if err != nil {
			return nil, err
		}
		if part.FileName() == "" {
			fields[part.FormName()] = string(value)
		}
	}
	return nil, errors.New("too many parts")
}

func badParam(field, detail string) *problem {
	return &problem{status: http.StatusBadRequest, code: "invalid_value", detail: detail, field: field}
}

type videoError struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// videoObject is OpenAI's JSON for a job. Needs mu.
func (v view) videoObject() []byte {
	out := struct {
		ID          string      `json:"id"`
		Object      string      `json:"object"`
		Status      string      `json:"status"`
		Progress    int         `json:"progress"`
		Model       string      `json:"model"`
		CreatedAt   int64       `json:"created_at"`
		CompletedAt *int64      `json:"completed_at"`
		ExpiresAt   *int64      `json:"expires_at"`
		Seconds     string      `json:"seconds"`
		Size        string      `json:"size"`
		Prompt      string      `json:"prompt"`
		Remixed     *string     `json:"remixed_from_video_id"`
		Error       *videoError `json:"error"`
	}{
		ID: v.id, Object: "video", Status: v.videoStatus(), Progress: v.progress, Model: v.model,
		CreatedAt: v.created.Unix(), Seconds: v.seconds, Size: v.size, Prompt: v.prompt,
	}
	if !v.completed.IsZero() {
		out.CompletedAt = unix(v.completed)
	}
	switch {
	case v.phase == succeeded:
		out.Progress, out.ExpiresAt = 100, unix(v.completed.Add(v.ttl))
	case v.phase.terminal():
		code, message := v.failure()
		out.Error = &videoError{code, message}
	}
	body, _ := json.Marshal(out) // strings and integers always marshal
	return body
}

func (v view) videoStatus() string {
	words := [4]string{"queued", "in_progress", "completed", "failed"}
	if n := v.quirks.synonyms; n > 0 {
		words = gatewayWords[n-1]
	}
	switch v.phase {
	case starting:
		return words[0]
	case processing:
		if v.quirks.unknownStatus {
			return "rendering_tiles"
		}
		return words[1]
	case succeeded:
		return words[2]
	default:
		return words[3]
	}
}

func unix(t time.Time) *int64 {
	n := t.Unix()
	return &n
}

// writeOpenAIProblem spells a problem as OpenAI's error object.
func writeOpenAIProblem(w http.ResponseWriter, p *problem) {
	type apiError struct {
		Message string  `json:"message"`
		Type    string  `json:"type"`
		Param   *string `json:"param"`
		Code    *string `json:"code"`
	}
	out := apiError{Message: p.detail, Type: "invalid_request_error"}
	switch {
	case p.status == http.StatusTooManyRequests:
		out.Type = "rate_limit_error"
	case p.status >= 500:
		out.Type = "server_error"
	}
	if p.field != "" {
		out.Param = &p.field
	}
	if p.code != "" {
		out.Code = &p.code
	}
	body, _ := json.Marshal(map[string]apiError{"error": out})
	writeBody(w, p.status, "application/json", body)
}
