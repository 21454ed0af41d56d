package replicate_test

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/providers/replicate"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

// account has the secret of the published test vector and another one.
var account = ports.Account{
	ID: "main", APIKey: "r8_key",
	Secrets: []ports.Secret{
		{Version: "2026-09", Value: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		{Version: "2026-01", Value: "whsec_" + base64.StdEncoding.EncodeToString([]byte("an older secret of the account"))},
	},
}

func sign(secret ports.Secret, body []byte, at time.Time) http.Header {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Value, "whsec_"))
	h := http.Header{}
	h.Set("webhook-id", "msg_1")
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "msg_1.%d.%s", at.Unix(), body)
	h.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	return h
}

func recorded(t *testing.T, name string) []byte {
	t.Helper()
	body, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

func prediction(id, status string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"model":"acme/vid","version":"v1","status":%q,"input":{"prompt":"x"},"output":"https://replicate.delivery/o.mp4","error":null,"logs":"",`+
		`"created_at":"2026-09-01T10:00:00.000Z","started_at":"2026-09-01T10:00:09.000Z","completed_at":null}`, id, status)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	percent := 45
	video := func(url, ref string) domain.OutputRef { return domain.OutputRef{Kind: "video", URL: url, Ref: ref} }
	shapes := map[string]porttest.ProviderShape{
		"starting":   {Status: domain.ObservedQueued},
		"booting":    {Status: domain.ObservedQueued},
		"processing": {Status: domain.ObservedRunning, Progress: &percent},
		"succeeded": {Status: domain.ObservedSucceeded, Outputs: []domain.OutputRef{
			video("https://replicate.delivery/x/out.mp4", "https://replicate.delivery/x/out.mp4"),
		}},
		"succeeded_object": {Status: domain.ObservedSucceeded, Outputs: []domain.OutputRef{
			video("https://replicate.delivery/x/out?sig=abc", "https://replicate.delivery/x/out"),
			{Kind: "image", URL: "https://replicate.delivery/x/poster.png", Ref: "https://replicate.delivery/x/poster.png"},
		}},
		"removed":       {Status: domain.ObservedSucceeded},
		"failed":        {Status: domain.ObservedFailed, Class: domain.ClassProvider, Code: "E1234", Message: "E1234: The machine went away"},
		"failed_filter": {Status: domain.ObservedFailed, Class: domain.ClassModerationOutput, Code: "E005", Message: "The input or output was flagged. (E005)"},
		"failed_input":  {Status: domain.ObservedFailed, Class: domain.ClassInvalidInput, Message: "Input validation error: image: could not be fetched"},
		"failed_json":   {Status: domain.ObservedFailed, Class: domain.ClassProvider, Message: `{"detail":[{"msg":"x"}]}`},
		"canceled":      {Status: domain.ObservedCanceled, Class: domain.ClassCanceled},
		"aborted":       {Status: domain.ObservedCanceled, Class: domain.ClassCanceled},
	}
	f := porttest.ProviderFixture{
		New:     func(c *http.Client) ports.Provider { return replicate.New(replicate.Config{Client: c}) },
		Account: account, BasePath: "/v1", Model: "acme/vid", Job: prediction, RecordedID: "pf1", Sign: sign,
		Words: map[string]domain.Observed{
			"starting": domain.ObservedQueued, "processing": domain.ObservedRunning, "succeeded": domain.ObservedSucceeded,
			"failed": domain.ObservedFailed, "canceled": domain.ObservedCanceled, "aborted": domain.ObservedCanceled,
		},
		Event: func(id string) []byte { return prediction(id, "succeeded") },
	}
	for name, shape := range shapes {
		shape.Name, shape.Body = name, recorded(t, name)
		f.Recorded = append(f.Recorded, shape)
	}
	porttest.Provider(t, f)
}
