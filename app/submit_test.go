package app_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func TestSubmitCreate(t *testing.T) {
	t.Parallel()
	b := setup(t)
	view := b.create()
	b.want(view.Task.ID, domain.Status(domain.PhaseQueued), domain.AttemptCreated)
	if view.Attempt.AccountID != "main" || view.Attempt.BaseURL != "https://api.acme.example" || view.Attempt.Credits != 1 {
		t.Errorf("the attempt is not on the default account: %+v", view.Attempt)
	}
	if view.Attempt.ClientRequestID != view.Attempt.ID.String() || view.Task.TraceID.IsZero() {
		t.Errorf("request id %q or trace id %v is missing", view.Attempt.ClientRequestID, view.Task.TraceID)
	}
	if len(b.vendor.creates) != 0 {
		t.Error("the vendor was called by the command")
	}
}

func TestSubmitIdempotency(t *testing.T) {
	t.Parallel()
	b := setup(t)
	cmd := b.command()
	cmd.IdempotencyKey, cmd.BodyHash = "once", []byte("body")
	first, err := b.submit.Create(b.ctx(), cmd)
	b.must(err)
	again, err := b.submit.Create(b.ctx(), cmd)
	b.must(err)
	if !again.Replayed || again.View.Task.ID != first.View.Task.ID {
		t.Errorf("the same key made another task: %+v", again)
	}
	cmd.BodyHash = []byte("another body")
	if _, err := b.submit.Create(b.ctx(), cmd); !errors.Is(err, ports.ErrIdempotencyMismatch) {
		t.Errorf("another body under the key: %v", err)
	}
}

func TestSubmitStoreErrors(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for range 100 {
		b.create()
	}
	if _, err := b.submit.Create(b.ctx(), b.command()); !errors.Is(err, ports.ErrCredits) {
		t.Errorf("without credits: %v", err)
	}
	cmd := b.command()
	cmd.Project.ID = domain.ProjectID{ID: newID()}
	if _, err := b.submit.Create(b.ctx(), cmd); !errors.Is(err, ports.ErrNotFound) {
		t.Errorf("an unknown project: %v", err)
	}
}

// TestPlainImages takes http images where it is told to, and says so.
func TestPlainImages(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for _, plain := range []bool{true, false} {
		s, err := app.NewSubmit(app.SubmitDeps{Env: b.env, Transitions: b.store, Vendors: app.NewVendors(b.vendor), Tokens: b.tokens}, app.SubmitConfig{PlainImages: plain})
		b.must(err)
		cmd := b.command()
		cmd.Input.ImageURL = "http://x.example/a.png"
		if _, err := s.Create(b.ctx(), cmd); (err == nil) != plain {
			t.Errorf("plain images %v: %v", plain, err)
		}
		cmd.Input.ImageURL = "ftp://x.example/a.png"
		if _, err := s.Create(b.ctx(), cmd); err == nil || strings.Contains(err.Error(), "http or https") != plain {
			t.Errorf("plain images %v: the sentence does not fit: %v", plain, err)
		}
	}
}

func TestSubmitValidation(t *testing.T) {
	t.Parallel()
	b := setup(t)
	for name, tc := range map[string]struct {
		change func(*app.CreateCommand)
		want   []string // fields at fault
	}{
		"good":                {func(c *app.CreateCommand) {}, nil},
		"everything":          {func(c *app.CreateCommand) { c.Input = full() }, nil},
		"image without text":  {func(c *app.CreateCommand) { c.Input = ports.TaskInput{ImageURL: "https://x.example/a.png"} }, nil},
		"unknown provider":    {func(c *app.CreateCommand) { c.Provider = "nobody" }, []string{"provider"}},
		"no model":            {func(c *app.CreateCommand) { c.Model = "" }, []string{"model"}},
		"model with newline":  {func(c *app.CreateCommand) { c.Model = "a\nb" }, []string{"model"}},
		"no prompt":           {func(c *app.CreateCommand) { c.Input.Prompt = "  " }, []string{"input.prompt"}},
		"long prompt":         {func(c *app.CreateCommand) { c.Input.Prompt = strings.Repeat("é", 10_001) }, []string{"input.prompt"}},
		"longest prompt":      {func(c *app.CreateCommand) { c.Input.Prompt = strings.Repeat("é", 10_000) }, nil},
		"NUL in the prompt":   {func(c *app.CreateCommand) { c.Input.Prompt = "a\x00b" }, []string{"input.prompt"}},
		"invalid UTF-8":       {func(c *app.CreateCommand) { c.Input.Prompt = "a\xff" }, []string{"input.prompt"}},
		"plain image":         {func(c *app.CreateCommand) { c.Input.ImageURL = "http://x.example/a.png" }, []string{"input.image_url"}},
		"file image":          {func(c *app.CreateCommand) { c.Input.ImageURL = "file:///etc/passwd" }, []string{"input.image_url"}},
		"image with password": {func(c *app.CreateCommand) { c.Input.ImageURL = "https://u:p@x.example/" }, []string{"input.image_url"}},
		"image without host":  {func(c *app.CreateCommand) { c.Input.ImageURL = "https:///a" }, []string{"input.image_url"}},
		"negative duration":   {func(c *app.CreateCommand) { c.Input.DurationSeconds = -1 }, []string{"input.duration_seconds"}},
		"long duration":       {func(c *app.CreateCommand) { c.Input.DurationSeconds = 601 }, []string{"input.duration_seconds"}},
		"bad ratio":           {func(c *app.CreateCommand) { c.Input.AspectRatio = "16x9" }, []string{"input.aspect_ratio"}},
		"ratio of zero":       {func(c *app.CreateCommand) { c.Input.AspectRatio = "0:9" }, []string{"input.aspect_ratio"}},
		"bad resolution":      {func(c *app.CreateCommand) { c.Input.Resolution = "full hd" }, []string{"input.resolution"}},
		"extra is a list":     {func(c *app.CreateCommand) { c.Input.Extra = []byte(`[1]`) }, []string{"input.extra"}},
		"extra is two":        {func(c *app.CreateCommand) { c.Input.Extra = []byte(`{}{}`) }, []string{"input.extra"}},
		"extra is cut":        {func(c *app.CreateCommand) { c.Input.Extra = []byte(`{"a":`) }, []string{"input.extra"}},
		"metadata with NUL":   {func(c *app.CreateCommand) { c.Input.Metadata = []byte(`{"a":"\u0000"}`) }, []string{"metadata"}},
		"escaped backslash":   {func(c *app.CreateCommand) { c.Input.Metadata = []byte(`{"a":"\\u0000"}`) }, nil},
		"large metadata":      {func(c *app.CreateCommand) { c.Input.Metadata = []byte(`{"a":"` + strings.Repeat("a", 16<<10) + `"}`) }, []string{"metadata"}},
		"bad key":             {func(c *app.CreateCommand) { c.IdempotencyKey = "ü" }, []string{"Idempotency-Key"}},
		"all at once": {func(c *app.CreateCommand) { *c = app.CreateCommand{Project: c.Project} },
			[]string{"provider", "model", "input.prompt"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := b.command()
			tc.change(&cmd)
			_, err := b.submit.Create(t.Context(), cmd)
			var got []string
			var faults *app.FieldErrors
			if errors.As(err, &faults) {
				for _, f := range faults.Fields {
					got = append(got, f.Field)
				}
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("fields at fault (-want +got):\n%s", diff)
			}
		})
	}
}

func full() ports.TaskInput {
	seed := int64(-7)
	return ports.TaskInput{
		Prompt: "a kite", ImageURL: "https://x.example/a.png?sig=1", DurationSeconds: 600, AspectRatio: "16:9", Resolution: "1280x720",
		Seed: &seed, Extra: []byte(" {\"guidance\": 1e300}\n"), Metadata: []byte(`{"a":[{"b":"\u00e9"}]}`),
	}
}

// Whatever passes the check can be stored.
func FuzzSubmitInput(f *testing.F) {
	f.Add("a kite", "https://x.example/a.png", "16:9", "1080p", "key", []byte(`{"a":"\u0000"}`))
	f.Add("", "https://x.example:99999/%zz", "99:1", "4k", "", []byte(`{"a":[1,{"b":null}]}`))
	f.Add("\xff", "https://[::1]/", ":", "", "\x7f", []byte("\xff"))
	f.Fuzz(func(t *testing.T, prompt, image, ratio, resolution, key string, object []byte) {
		b := setup(t)
		cmd := b.command()
		cmd.Input = ports.TaskInput{Prompt: prompt, ImageURL: image, AspectRatio: ratio, Resolution: resolution, Metadata: object, Extra: object}
		cmd.IdempotencyKey = key
		var faults *app.FieldErrors
		if _, err := b.submit.Create(t.Context(), cmd); err != nil && !errors.As(err, &faults) {
			t.Errorf("got past the check: %v", err)
		}
	})
}
