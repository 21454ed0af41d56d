package openaivideo

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

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
	return p.calls.Query(ctx, httpcall.Request{
		Method: http.MethodGet, URL: from + "/videos/" + url.PathEscape(id), Bearer: req.Account.APIKey,
	}, id, reading(from, false))
}

// reading is how answers from the address are understood. The answer to a create
// may hold an id alone; that to a query says something or is none.
func reading(from string, create bool) httpcall.Reading {
	sort := inBand
	if create {
		sort = rejected
	}
	return httpcall.Reading{
		Read: func(body []byte) (domain.Observation, error) {
			video, obs, err := decode(body, from)
			if err == nil && (video.id() == "" || !create && !video.Has("status")) {
				if code := video.errorCode(); code != "" {
					failure := sort(code)
					failure.Message = video.sentence()
					return obs, failure
				}
				err = errors.New("a video without an id or a status")
			}
			return obs, err
		},
		Explain: explain,
		NextAfter: func(header http.Header, now time.Time) time.Duration {
			return cmp.Or(httpcall.PollAfter(header), httpcall.RetryAfter(header, now))
		},
	}
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
