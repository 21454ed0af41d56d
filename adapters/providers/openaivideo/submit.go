package openaivideo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"github.com/aivedio/aivedio/adapters/providers/internal/httpcall"
	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/ports"
)

// Submit creates a video. CallbackURL is not used: webhooks belong to the
// account.
func (p *Provider) Submit(ctx context.Context, req ports.SubmitRequest) (ports.SubmitResult, error) {
	body, err := create(req)
	if err != nil {
		return ports.SubmitResult{}, httpcall.Refused("bad_request", err)
	}
	from := base(req.Account, req.Attempt)
	return p.calls.Create(ctx, httpcall.Request{
		Method: http.MethodPost, URL: from + "/videos", Bearer: req.Account.APIKey, Body: body,
	}, reading(from, true))
}

// create is the JSON form of the call. "seconds" is text.
func create(req ports.SubmitRequest) ([]byte, error) {
	if req.Attempt.Model == "" {
		return nil, errors.New("model: want a name such as sora-2")
	}
	size, err := size(req.Input.Resolution, req.Input.AspectRatio)
	if err != nil {
		return nil, err
	}
	f := jsonbody.Fields{"model": req.Attempt.Model}
	f.SetText("prompt", req.Input.Prompt)
	f.SetText("size", size)
	if req.Input.DurationSeconds > 0 {
		f["seconds"] = strconv.Itoa(req.Input.DurationSeconds)
	}
	if req.Input.ImageURL != "" {
		f["input_reference"] = map[string]string{"image_url": req.Input.ImageURL}
	}
	if req.Input.Seed != nil {
		f["seed"] = *req.Input.Seed // gateways know it; OpenAI itself says so if it does not
	}
	if err := f.Merge(req.Input.Extra); err != nil {
		return nil, err
	}
	body, err := json.Marshal(f)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	return body, nil
}
