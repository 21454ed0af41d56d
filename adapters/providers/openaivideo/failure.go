package openaivideo

import (
	"errors"
	"strings"

	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// moderated reports whether a code is about content. The codes of failed videos
// are not listed anywhere; those seen have one of these words in them.
func moderated(code string) bool {
	code = strings.ToLower(code)
	return strings.Contains(code, "moderation") || strings.Contains(code, "content_policy")
}

// failureClass sorts the code of a job that ran and failed. A filter that spoke
// after the run is called output moderation, which may be retried: filters were
// seen to change their mind about the same prompt.
func failureClass(code string) domain.ErrorClass {
	if moderated(code) {
		return domain.ClassModerationOutput
	}
	return domain.ClassProvider
}

// explain adds the body's code and sentence to a failure.
func explain(failure *ports.ProviderError, body []byte) {
	object, err := jsonbody.Parse(body)
	if err != nil {
		return
	}
	failure.Message = video{object}.sentence()
	if code := (video{object}).errorCode(); code != "" && code != unspecified {
		failure.Code = code
		if failure.Class == ports.ClassRejected && moderated(code) {
			failure.ErrorClass = string(domain.ClassModerationInput)
		}
	}
}

// inBand sorts an error that came with a 200 instead of a job. None of them is a
// verdict about the job.
func inBand(code string) *ports.ProviderError {
	e := &ports.ProviderError{Class: ports.ClassTransport, Code: code, Err: errors.New("an error with status 200")}
	switch word := strings.ToLower(code); {
	case strings.Contains(word, "rate_limit"), strings.Contains(word, "quota"):
		e.Class = ports.ClassThrottled
	case strings.Contains(word, "api_key"), strings.Contains(word, "authentication"), strings.Contains(word, "permission"):
		e.Class = ports.ClassAuth
	case strings.Contains(word, "not_found"):
		e.Class = ports.ClassNotFound
	}
	return e
}

// rejected sorts an error that came with a 200 to a create. Only what is plainly
// about the request is a refusal; of the rest nobody knows whether a job exists.
func rejected(code string) *ports.ProviderError {
	e := inBand(code)
	switch {
	case e.Class == ports.ClassThrottled:
		e.NotSent = true // the body's form of a 429
	case e.Class != ports.ClassTransport:
	case moderated(code):
		e.Class, e.ErrorClass = ports.ClassRejected, string(domain.ClassModerationInput)
	case strings.HasPrefix(strings.ToLower(code), "invalid_"):
		e.Class, e.ErrorClass = ports.ClassRejected, string(domain.ClassInvalidInput)
	}
	return e
}
