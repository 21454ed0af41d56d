package replicate

import (
	"context"
	"errors"
	"net/http"
	"net/url"

	"github.com/aivedio/aivedio/adapters/providers/internal/delivery"
	"github.com/aivedio/aivedio/adapters/providers/internal/httpcall"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Query reads a prediction.
func (p *Provider) Query(ctx context.Context, req ports.QueryRequest) (ports.QueryResult, error) {
	path, err := job(req)
	if err != nil {
		return ports.QueryResult{}, err
	}
	answer, failure := p.calls.Do(ctx, httpcall.Request{Method: http.MethodGet, URL: path, Bearer: req.Account.APIKey})
	if failure != nil && failure.Class != ports.ClassRejected {
		return ports.QueryResult{}, failure
	}
	obs, err := read(answer, req.Attempt.ProviderTaskID)
	if failure != nil && (err != nil || !obs.Status.Terminal()) {
		// A bad request whose body is the job's verdict is one; any other is no news.
		return ports.QueryResult{}, failure
	}
	if err != nil {
		return ports.QueryResult{}, err
	}
	return ports.QueryResult{Observation: obs, NextAfter: httpcall.RetryAfter(answer.Header, answer.ReceivedAt)}, nil
}

// read takes an answer for news about the job, or says why it is none.
func read(answer *httpcall.Answer, id string) (domain.Observation, error) {
	prediction, obs, err := decode(answer.Body)
	if err != nil {
		return domain.Observation{}, httpcall.Malformed("bad_body", err)
	}
	switch {
	case prediction.id() == "" || !prediction.Has("status"):
		return domain.Observation{}, httpcall.Malformed("no_prediction", errors.New("an answer without id and status"))
	case prediction.id() != id:
		return domain.Observation{}, httpcall.Malformed("wrong_id", errors.New("an answer about another prediction"))
	}
	obs.Source, obs.ReceivedAt, obs.Trust = domain.SourcePoll, answer.ReceivedAt, domain.TrustAuthentic
	return obs, nil
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
