package openaivideo_test

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

	"github.com/aivedio/aivedio/adapters/providers/openaivideo"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
	"github.com/aivedio/aivedio/ports/porttest"
)

// account has the secret of the published test vector and another one.
var account = ports.Account{
	ID: "main", APIKey: "sk-key",
	Secrets: []ports.Secret{
		{Version: "2026-09", Value: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"},
		{Version: "2026-01", Value: "whsec_" + base64.StdEncoding.EncodeToString([]byte("an older secret of the account"))},
	},
}

func sign(secret ports.Secret, body []byte, at time.Time) http.Header {
	key, _ := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret.Value, "whsec_"))
	h := http.Header{}
	h.Set("webhook-id", "wh_1")
	h.Set("webhook-timestamp", strconv.FormatInt(at.Unix(), 10))
	mac := hmac.New(sha256.New, key)
	fmt.Fprintf(mac, "wh_1.%d.%s", at.Unix(), body)
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

func videoObject(id, status string) []byte {
	return fmt.Appendf(nil, `{"id":%q,"object":"video","status":%q,"progress":33,"model":"sora-2","created_at":1790000000,"completed_at":null,"expires_at":null,"seconds":"8","size":"1280x720","error":null}`, id, status)
}

func event(kind, id string) []byte {
	return fmt.Appendf(nil, `{"object":"event","id":"evt_1","type":%q,"created_at":1790000300,"data":{"id":%q}}`, kind, id)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	percent := func(n int) *int { return &n }
	expires := time.Unix(1790003800, 0)
	output := func(at *time.Time) []domain.OutputRef {
		return []domain.OutputRef{{Kind: "video", Ref: "/videos/video_f1/content", URL: "http://vendor.test/v1/videos/video_f1/content", ExpiresAt: at}}
	}
	shapes := map[string]porttest.ProviderShape{
		"queued":           {Status: domain.ObservedQueued},
		"queued_short":     {Status: domain.ObservedQueued},
		"in_progress":      {Status: domain.ObservedRunning, Progress: percent(33)},
		"progress_text":    {Status: domain.ObservedRunning, Progress: percent(45)},
		"completed":        {Status: domain.ObservedSucceeded, Outputs: output(&expires)},
		"gateway_success":  {Status: domain.ObservedSucceeded, Outputs: output(nil)},
		"failed":           {Status: domain.ObservedFailed, Class: domain.ClassModerationOutput, Code: "moderation_blocked", Message: "Your request was blocked."},
		"failed_text":      {Status: domain.ObservedFailed, Class: domain.ClassProvider, Code: "unspecified", Message: "upstream said no"},
		"failed_no_reason": {Status: domain.ObservedFailed, Class: domain.ClassProvider},
		"expired":          {Status: domain.ObservedFailed, Class: domain.ClassExpired},
		"drifted":          {Status: domain.ObservedNone},
	}
	f := porttest.ProviderFixture{
		New:     func(c *http.Client) ports.Provider { return openaivideo.New(openaivideo.Config{Client: c}) },
		Account: account, BasePath: "/v1", Model: "sora-2", Job: videoObject, RecordedID: "video_f1", Sign: sign,
		Words: map[string]domain.Observed{
			"queued": domain.ObservedQueued, "in_progress": domain.ObservedRunning, "completed": domain.ObservedSucceeded, "failed": domain.ObservedFailed,
			"expired": domain.ObservedFailed, "not_start": domain.ObservedQueued, "submitted": domain.ObservedQueued, "processing": domain.ObservedRunning,
			"success": domain.ObservedSucceeded, "succeeded": domain.ObservedSucceeded, "failure": domain.ObservedFailed, "cancelled": domain.ObservedCanceled,
		},
		Event: func(id string) []byte { return event("video.completed", id) },
	}
	for name, shape := range shapes {
		shape.Name, shape.Body = name, recorded(t, name)
		f.Recorded = append(f.Recorded, shape)
	}
	porttest.Provider(t, f)
}
