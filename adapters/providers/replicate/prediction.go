package replicate

import (
	"regexp"
	"strings"
	"time"

	"github.com/aivedio/aivedio/adapters/providers/internal/delivery"
	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/adapters/providers/internal/vendortext"
	"github.com/aivedio/aivedio/adapters/providers/internal/vocabulary"
	"github.com/aivedio/aivedio/domain"
)

// words is the vocabulary. "aborted" is in the API's description and unknown to
// two of the vendor's own clients.
var words = vocabulary.New(vocabulary.Words{
	Queued:    []string{"starting"},
	Running:   []string{"processing"},
	Succeeded: []string{"succeeded"},
	Failed:    []string{"failed"},
	Canceled:  []string{"canceled", "cancelled", "aborted"},
})

// prediction is the object that the API returns and that webhooks carry.
type prediction struct{ jsonbody.Object }

func (p prediction) id() string {
	id := p.Text("id")
	if !delivery.ValidJobID(id) {
		return ""
	}
	return id
}

// at is when what the prediction shows came to be, by the vendor's clock.
func (p prediction) at() *time.Time {
	for _, name := range []string{"completed_at", "started_at", "created_at"} {
		if t := p.Time(name); t != nil {
			return t
		}
	}
	return nil
}

// status is the vendor's word, except that a prediction which says that it has
// not started is still waiting for a machine.
func (p prediction) status() domain.Observed {
	observed := words.Observe(p.Text("status"))
	if observed == domain.ObservedRunning && p.Null("started_at") {
		return domain.ObservedQueued
	}
	return observed
}

// decode reads a prediction. The observation has no identity of ours, no source
// and no time of receipt.
func decode(body []byte) (prediction, domain.Observation, error) {
	object, err := jsonbody.Parse(body)
	if err != nil {
		return prediction{}, domain.Observation{}, err
	}
	p := prediction{object}
	obs := domain.Observation{
		Provider: Name, ProviderTaskID: p.id(), ProviderOccurredAt: p.at(),
		Status: p.status(),
	}
	// There is no counter. The vendor's own times order its news; they have coarse
	// steps and stand still while a prediction runs, so ties go to rank.
	if obs.ProviderOccurredAt != nil {
		sequence := obs.ProviderOccurredAt.UnixMilli()
		obs.ProviderSequence, obs.SequenceKind = &sequence, domain.SequenceTimestamp
	}
	switch obs.Status {
	case domain.ObservedRunning:
		obs.Progress = progress(p.Text("logs"))
	case domain.ObservedSucceeded:
		// After an hour the output is gone and the status stays: no outputs then,
		// which only a query may call missing.
		obs.Outputs = outputs(p.Object["output"])
	case domain.ObservedFailed:
		text := p.Text("error")
		obs.ErrorCode = errorCode(text)
		obs.ErrorClass = errorClass(text, obs.ErrorCode)
		obs.ErrorMessage = vendortext.Clean(p.Said("error"))
	case domain.ObservedCanceled:
		obs.ErrorClass = domain.ClassCanceled
	}
	return p, obs, nil
}

// codePattern is a code of the platform or of a model, at the start of the text
// or in brackets at its end.
var codePattern = regexp.MustCompile(`(?:^|\()(E[0-9]{3,4})\b`)

func errorCode(text string) string {
	if m := codePattern.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}

// errorClass knows what public sources agree on; the meaning of the other codes
// is not documented anywhere, so they are the vendor's error and no more.
//   - E005: a model's content filter refused the input or the output; it is not
//     deterministic, so the class is one that may be retried;
//   - "Input validation error": the platform could not take or fetch an input.
func errorClass(text, code string) domain.ErrorClass {
	switch {
	case code == "E005":
		return domain.ClassModerationOutput
	case strings.HasPrefix(text, "Input validation error"):
		return domain.ClassInvalidInput
	default:
		return domain.ClassProvider
	}
}
