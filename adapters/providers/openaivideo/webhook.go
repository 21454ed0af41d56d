package openaivideo

import (
	"errors"
	"fmt"
	"strings"

	"github.com/aivedio/aivedio/adapters/providers/internal/delivery"
	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// eventPrefix begins the type of every event about a video. The endpoint of an
// account gets the events of all its APIs.
const eventPrefix = "video."

// events are the documented ones. Another event about a video is a reason to
// ask, without a claim.
var events = map[string]domain.Observed{
	"video.completed": domain.ObservedSucceeded,
	"video.failed":    domain.ObservedFailed,
}

// Verify checks the Standard Webhooks signature. The signed id in the header is
// the identity; the id in the body is another one and names the event.
func (p *Provider) Verify(req ports.VerifyRequest) (ports.Delivery, error) {
	match, err := p.accounts.Verify(req.Header, req.Body, req.Accounts, req.Now)
	if err != nil {
		return ports.Delivery{}, err
	}
	d := ports.Delivery{
		AccountID: match.AccountID, Trust: domain.TrustAuthentic, KeyVersion: match.KeyVersion,
		Identity: delivery.Ladder{SignedID: match.ID}.Identity(), ProviderEventID: match.ID,
	}
	event, err := jsonbody.Parse(req.Body)
	if err != nil {
		return d, nil // signed, so it is kept; whoever decodes it will say what is wrong
	}
	if id := event.Text("id"); delivery.ValidJobID(id) {
		d.ProviderEventID = id
	}
	if strings.HasPrefix(event.Text("type"), eventPrefix) {
		d.ProviderTaskID = jobID(event)
	}
	d.ProviderOccurredAt = event.Time("created_at")
	return d, nil
}

// Decode reads a delivery. Events of other APIs of the account are foreign.
func (p *Provider) Decode(row ports.InboxRow) (domain.Observation, bool, error) {
	event, err := jsonbody.Parse(row.Payload)
	if err != nil {
		return domain.Observation{}, false, fmt.Errorf("openai webhook: %w", err)
	}
	kind := event.Text("type")
	switch {
	case kind == "":
		return domain.Observation{}, false, errors.New("openai webhook: no type")
	case !strings.HasPrefix(kind, eventPrefix):
		return domain.Observation{}, true, nil
	}
	id := jobID(event)
	if id == "" {
		return domain.Observation{}, false, errors.New("openai webhook: no video id")
	}
	obs := delivery.Observation(Name, row)
	obs.ProviderTaskID, obs.ProviderOccurredAt = id, event.Time("created_at")
	obs.Status, obs.Thin = events[kind], true
	return obs, false, nil
}

func jobID(event jsonbody.Object) string {
	id := event.Object("data").Text("id")
	if !delivery.ValidJobID(id) {
		return ""
	}
	return id
}
