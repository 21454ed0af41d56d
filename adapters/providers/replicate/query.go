package replicate

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"github.com/aivedio/aivedio/adapters/providers/internal/delivery"
	"github.com/aivedio/aivedio/adapters/providers/internal/httpcall"
	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/adapters/providers/internal/vendortext"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Query reads a prediction.
func (p *Provider) Query(ctx context.Context, req ports.QueryRequest) (ports.QueryResult, error) {
	path, err := job(req)
	if err != nil {
		return ports.QueryResult{}, err
	}
	return p.calls.Query(ctx, httpcall.Request{Method: http.MethodGet, URL: path, Bearer: req.Account.APIKey}, req.Attempt.ProviderTaskID, queried)
}

// How answers are understood. The answer to a create may hold an id alone; that
// to a query says something or is none.
var (
	created = httpcall.Reading{Read: read, Explain: explain}
	queried = httpcall.Reading{Read: readStatus, Explain: explain}
)

func read(body []byte) (domain.Observation, error) {
	_, obs, err := decode(body)
	return obs, err
}

func readStatus(body []byte) (domain.Observation, error) {
	prediction, obs, err := decode(body)
	if err == nil && !prediction.Has("status") {
		err = errors.New("a prediction without a status")
	}
	return obs, err
}

// explain adds what the body says to a failure. Replicate's problems have no
// code, so only one in the text is of use.
func explain(failure *ports.ProviderError, body []byte) {
	problem, err := jsonbody.Parse(body)
	if err != nil {
		return
	}
	failure.Message = vendortext.Clean(sentence(problem))
	text := problem.Text("detail")
	if code := errorCode(text); code != "" && failure.Class == ports.ClassRejected {
		failure.Code, failure.ErrorClass = code, string(errorClass(text, code))
	}
}

// sentence is what a problem (RFC 7807) says, with the fields that it is about
// where the detail does not tell.
func sentence(problem jsonbody.Object) string {
	said := cmp.Or(problem.Said("detail"), problem.Said("error"), problem.Text("title"))
	for _, f := range problem.Objects("invalid_fields") {
		if what := f.Text("description"); !strings.Contains(said, what) {
			said += "; " + f.Text("field") + ": " + what
		}
	}
	return said
}

// Cancel asks to stop a prediction. One that has already ended otherwise is a
// refusal: the answer is the prediction as it is.
func (p *Provider) Cancel(ctx context.Context, req ports.QueryRequest) (refused bool, err error) {
	path, err := job(req)
	if err != nil {
		return false, err
	}
	answer, failure := p.calls.Do(ctx, httpcall.Request{Method: http.MethodPost, URL: path + "/cancel", Bearer: req.Account.APIKey})
	if failure != nil {
		if failure.Class == ports.ClassRejected {
			return true, nil
		}
		return false, failure
	}
	_, obs, err := decode(answer.Body)
	if err != nil {
		return false, httpcall.Malformed("bad_body", err)
	}
	return obs.Status == domain.ObservedSucceeded || obs.Status == domain.ObservedFailed, nil
}

func job(req ports.QueryRequest) (string, error) {
	id := req.Attempt.ProviderTaskID
	if !delivery.ValidJobID(id) {
		return "", httpcall.Refused("bad_id", errors.New("the attempt has no id that fits into a URL"))
	}
	return base(req.Account, req.Attempt) + "/predictions/" + url.PathEscape(id), nil
}
