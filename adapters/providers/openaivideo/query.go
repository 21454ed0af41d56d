package openaivideo

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

// Query reads a video. The vendor's wish for the next query is a header.
func (p *Provider) Query(ctx context.Context, req ports.QueryRequest) (ports.QueryResult, error) {
	id := req.Attempt.ProviderTaskID
	if !delivery.ValidJobID(id) {
		return ports.QueryResult{}, httpcall.Refused("bad_id", errors.New("the attempt has no id that fits into a URL"))
	}
	from := base(req.Account, req.Attempt)
	answer, failure := p.calls.Do(ctx, httpcall.Request{
		Method: http.MethodGet, URL: from + "/videos/" + url.PathEscape(id), Bearer: req.Account.APIKey,
	})
	if failure != nil && failure.Class != ports.ClassRejected {
		return ports.QueryResult{}, explain(failure, answer)
	}
	obs, err := read(answer, from, id)
	if failure != nil && (err != nil || !obs.Status.Terminal()) {
		// Some gateways give a failed job the status of a bad request: then the body
		// is the verdict. Without one in it, the status is no news about the job.
		return ports.QueryResult{}, explain(failure, answer)
	}
	if err != nil {
		return ports.QueryResult{}, err
	}
	next := httpcall.PollAfter(answer.Header)
	if next == 0 {
		next = httpcall.RetryAfter(answer.Header, answer.ReceivedAt)
	}
	return ports.QueryResult{Observation: obs, NextAfter: next}, nil
}

// read takes an answer for news about the job, or says why it is none.
func read(answer *httpcall.Answer, from, id string) (domain.Observation, error) {
	video, obs, err := decode(answer.Body, from)
	if err != nil {
		return domain.Observation{}, httpcall.Malformed("bad_body", err)
	}
	switch {
	case video.id() == "" || !video.Has("status"):
		if code := video.errorCode(); code != "" {
			return domain.Observation{}, inBand(code)
		}
		return domain.Observation{}, httpcall.Malformed("no_video", errors.New("an answer without id and status"))
	case video.id() != id:
		return domain.Observation{}, httpcall.Malformed("wrong_id", errors.New("an answer about another video"))
	}
	obs.Source, obs.ReceivedAt, obs.Trust = domain.SourcePoll, answer.ReceivedAt, domain.TrustAuthentic
	return obs, nil
}

// OutputRequest is the download of an output. The credential goes along only to
// the place where the job lives: a URL elsewhere is fetched without.
func (p *Provider) OutputRequest(ctx context.Context, req ports.QueryRequest, ref domain.OutputRef) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, ref.URL, nil)
	if err != nil {
		return nil, httpcall.Refused("bad_output_url", errors.New("the output's URL cannot be read"))
	}
	home, err := url.Parse(base(req.Account, req.Attempt))
	if err == nil && req.Account.APIKey != "" && r.URL.Scheme == home.Scheme && r.URL.Host == home.Host {
		r.Header.Set("Authorization", "Bearer "+req.Account.APIKey)
	}
	return r, nil
}
