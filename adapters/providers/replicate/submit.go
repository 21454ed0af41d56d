package replicate

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	"github.com/aivedio/aivedio/adapters/providers/internal/httpcall"
	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

var (
	modelName    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*/[A-Za-z0-9][A-Za-z0-9._-]*$`)
	modelVersion = regexp.MustCompile(`^[0-9a-f]{64}$`)
)

// Submit creates a prediction. The model is "owner/name" for an official model,
// or a version of 64 hexadecimal digits, alone or after "owner/name:".
func (p *Provider) Submit(ctx context.Context, req ports.SubmitRequest) (ports.SubmitResult, error) {
	path, body, err := p.create(req)
	if err != nil {
		return ports.SubmitResult{}, httpcall.Refused("bad_request", err)
	}
	return p.calls.Create(ctx, httpcall.Request{
		Method: http.MethodPost, URL: base(req.Account, req.Attempt) + path, Bearer: req.Account.APIKey, Body: body,
	}, created)
}

// create is the path and the body of the call. The webhook stands beside the
// input, where no extra field of the user can reach it.
func (p *Provider) create(req ports.SubmitRequest) (path string, body []byte, err error) {
	input, err := input(req.Input)
	if err != nil {
		return "", nil, err
	}
	call := map[string]any{"input": input}
	if req.CallbackURL != "" {
		call["webhook"] = req.CallbackURL
		call["webhook_events_filter"] = p.events
	}
	switch name, version, versioned := strings.Cut(req.Attempt.Model, ":"); {
	case versioned && modelName.MatchString(name) && modelVersion.MatchString(version):
		path, call["version"] = "/predictions", version
	case modelVersion.MatchString(req.Attempt.Model):
		path, call["version"] = "/predictions", req.Attempt.Model
	case modelName.MatchString(req.Attempt.Model):
		path = "/models/" + req.Attempt.Model + "/predictions"
	default:
		return "", nil, fmt.Errorf("model %.80q: want owner/name, owner/name:version or a version of 64 hexadecimal digits", req.Attempt.Model)
	}
	body, err = json.Marshal(call)
	if err != nil {
		return "", nil, fmt.Errorf("encode: %w", err)
	}
	return path, body, nil
}

// input names the product's fields as most video models on Replicate do; a model
// that calls them otherwise takes them as extra fields.
func input(in ports.TaskInput) (jsonbody.Fields, error) {
	f := jsonbody.Fields{}
	f.SetText("prompt", in.Prompt)
	f.SetText("image", in.ImageURL)
	f.SetText("aspect_ratio", in.AspectRatio)
	f.SetText("resolution", in.Resolution)
	if in.DurationSeconds > 0 {
		f["duration"] = in.DurationSeconds
	}
	if in.Seed != nil {
		f["seed"] = *in.Seed
	}
	if err := f.Merge(in.Extra); err != nil {
		return nil, err
	}
	return f, nil
}

func base(account ports.Account, attempt domain.Attempt) string {
	return httpcall.Base(DefaultBaseURL, attempt.BaseURL, account.BaseURL)
}
