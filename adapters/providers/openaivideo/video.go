package openaivideo

import (
	"cmp"
	"net/url"

	"github.com/aivedio/aivedio/adapters/providers/internal/delivery"
	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/adapters/providers/internal/vendortext"
	"github.com/aivedio/aivedio/adapters/providers/internal/vocabulary"
	"github.com/aivedio/aivedio/domain"
)

// words is OpenAI's vocabulary and what gateways were seen to say instead. A
// reader that knew the first row alone once took a finished, billed video for a
// time-out.
var words = vocabulary.New(vocabulary.Words{
	Queued:    []string{"queued", "submitted", "not_start", "pending"},
	Running:   []string{"in_progress", "processing", "running", "generating"},
	Succeeded: []string{"completed", "succeeded", "success", "succeed", "done"},
	Failed:    []string{"failed", "failure", "fail", "error"},
	Canceled:  []string{"canceled", "cancelled"},
	Expired:   []string{"expired"},
})

// video is the object that the API returns.
type video struct{ jsonbody.Object }

func (v video) id() string {
	id := v.First("id", "task_id")
	if !delivery.ValidJobID(id) {
		return ""
	}
	return id
}

// errorCode is the vendor's code in an error object, its type where there is no
// code, or the error itself where it is text. Empty when there is no error.
func (v video) errorCode() string {
	if code := v.Object.Object("error").First("code", "type"); code != "" {
		return clip(code)
	}
	if v.Has("error") {
		return unspecified
	}
	return ""
}

// sentence is what the vendor says about an error, or what a gateway before it
// does.
func (v video) sentence() string {
	fault := v.Object.Object("error")
	return vendortext.Clean(cmp.Or(fault.Said("message"), v.Text("error"), v.Said("detail"), v.Said("message")))
}

// unspecified is the code of an error that is there and has none.
const unspecified = "unspecified"

// clip keeps a code a code: what is longer is text.
func clip(code string) string {
	if len(code) > 80 {
		return code[:80]
	}
	return code
}

// decode reads a video object that came from the address. The observation has no
// identity of ours, no source and no time of receipt.
func decode(body []byte, from string) (video, domain.Observation, error) {
	object, err := jsonbody.Parse(body)
	if err != nil {
		return video{}, domain.Observation{}, err
	}
	v := video{object}
	word := v.Text("status")
	obs := domain.Observation{
		Provider: Name, ProviderTaskID: v.id(), Status: words.Observe(word),
	}
	obs.ProviderOccurredAt = v.Time("completed_at")
	switch obs.Status {
	case domain.ObservedRunning:
		obs.Progress = v.Percent("progress")
	case domain.ObservedSucceeded:
		obs.Outputs = []domain.OutputRef{content(v, from)}
	case domain.ObservedFailed:
		obs.ErrorCode = v.errorCode()
		obs.ErrorClass, obs.ErrorMessage = failureClass(obs.ErrorCode), v.sentence()
		if words.Expired(word) {
			obs.ErrorClass = domain.ClassExpired
		}
	case domain.ObservedCanceled:
		obs.ErrorClass = domain.ClassCanceled
	}
	return v, obs, nil
}

// content is the one output: the API has no field for it, only a path that wants
// the credential. A job that was filtered after all shows there.
func content(v video, from string) domain.OutputRef {
	path := "/videos/" + url.PathEscape(v.id()) + "/content"
	return domain.OutputRef{Kind: "video", Ref: path, URL: from + path, ExpiresAt: v.Time("expires_at")}
}
