package httpcall

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Reading is how a vendor's answers about jobs are understood.
type Reading struct {
	// Read takes a body for news about a job. Its error is a *ports.ProviderError
	// when the vendor said in the body that the call failed, and anything else when
	// the body cannot be understood.
	Read func(body []byte) (domain.Observation, error)
	// Explain adds what an error's body says to the failure; nil for nothing.
	Explain func(failure *ports.ProviderError, body []byte)
	// NextAfter reads the vendor's wish for the next query; nil means Retry-After.
	NextAfter func(header http.Header, now time.Time) time.Duration
}

// Create calls a vendor's create, once.
func (c *Caller) Create(ctx context.Context, r Request, as Reading) (ports.SubmitResult, error) {
	r.Create = true
	answer, failure := c.Do(ctx, r)
	if failure != nil {
		return ports.SubmitResult{}, as.explained(failure, answer)
	}
	obs, err := as.Read(answer.Body)
	if err != nil {
		return ports.SubmitResult{}, unreadable(err, answer.Body)
	}
	if obs.ProviderTaskID == "" {
		return ports.SubmitResult{}, shaped(Malformed("no_id", errors.New("a created job without an id")), answer.Body)
	}
	stamp(&obs, domain.SourceSubmit, answer)
	return ports.SubmitResult{ProviderTaskID: obs.ProviderTaskID, Observation: &obs}, nil
}

// Query asks about the job of the id. An answer about another job is malformed:
// it must never become this one's end.
func (c *Caller) Query(ctx context.Context, r Request, id string, as Reading) (ports.QueryResult, error) {
	answer, failure := c.Do(ctx, r)
	if failure != nil && failure.Class != ports.ClassRejected {
		return ports.QueryResult{}, as.explained(failure, answer)
	}
	obs, err := as.Read(answer.Body)
	if err == nil && obs.ProviderTaskID != id {
		err = errors.New("an answer about no job or another one")
	}
	if failure != nil && (err != nil || !obs.Status.Terminal()) {
		// A vendor may give a failed job the status of a bad request: then the body is
		// the verdict. Without one in it, the status is no news about the job.
		return ports.QueryResult{}, as.explained(failure, answer)
	}
	if err != nil {
		return ports.QueryResult{}, unreadable(err, answer.Body)
	}
	stamp(&obs, domain.SourcePoll, answer)
	next := RetryAfter
	if as.NextAfter != nil {
		next = as.NextAfter
	}
	return ports.QueryResult{Observation: obs, NextAfter: next(answer.Header, answer.ReceivedAt)}, nil
}

// stamp adds what the call itself knows.
func stamp(obs *domain.Observation, source domain.Source, answer *Answer) {
	hash := sha256.Sum256(answer.Body)
	obs.Source, obs.Trust, obs.ReceivedAt = source, domain.TrustAuthentic, answer.ReceivedAt
	obs.PayloadHash = hex.EncodeToString(hash[:])
}

func (r Reading) explained(failure *ports.ProviderError, answer *Answer) error {
	if r.Explain != nil && answer != nil {
		r.Explain(failure, answer.Body)
	}
	return failure
}

func unreadable(err error, body []byte) error {
	var said *ports.ProviderError
	if errors.As(err, &said) {
		return said
	}
	return shaped(Malformed("bad_body", err), body)
}

// shaped adds the outline of the answer, for whoever has to mend the adapter.
func shaped(e *ports.ProviderError, body []byte) *ports.ProviderError {
	e.Shape = jsonbody.Shape(body)
	return e
}
