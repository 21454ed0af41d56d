package replicate

import (
	"errors"
	"fmt"

	"github.com/aivedio/aivedio/adapters/providers/internal/delivery"
	"github.com/aivedio/aivedio/adapters/providers/internal/jsonbody"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Verify checks the Standard Webhooks signature. The body is read only after it
// holds; one that does not parse is still a delivery, for the inbox to judge.
func (p *Provider) Verify(req ports.VerifyRequest) (ports.Delivery, error) {
	match, err := p.accounts.Verify(req.Header, req.Body, req.Accounts, req.Now)
	if err != nil {
		return ports.Delivery{}, err
	}
	d := ports.Delivery{
		AccountID: match.AccountID, Trust: domain.TrustAuthentic, KeyVersion: match.KeyVersion,
		Identity: delivery.Ladder{SignedID: match.ID}.Identity(), ProviderEventID: match.ID,
	}
	if object, err := jsonbody.Parse(req.Body); err == nil {
		p := prediction{object}
		d.ProviderTaskID, d.ProviderOccurredAt = p.id(), p.at()
	}
	return d, nil
}

// Decode reads a delivery: the prediction itself, with no word about which event
// it is. Nothing that Replicate sends to a prediction's own URL is foreign.
func (p *Provider) Decode(row ports.InboxRow) (domain.Observation, bool, error) {
	prediction, said, err := decode(row.Payload)
	if err != nil {
		return domain.Observation{}, false, fmt.Errorf("replicate webhook: %w", err)
	}
	if prediction.id() == "" {
		return domain.Observation{}, false, errors.New("replicate webhook: no id")
	}
	obs := delivery.Observation(Name, row)
	obs.ProviderTaskID, obs.ProviderOccurredAt = said.ProviderTaskID, said.ProviderOccurredAt
	obs.ProviderSequence, obs.SequenceKind = said.ProviderSequence, said.SequenceKind
	obs.Status, obs.Progress, obs.Outputs = said.Status, said.Progress, said.Outputs
	obs.ErrorClass, obs.ErrorCode, obs.ErrorMessage = said.ErrorClass, said.ErrorCode, said.ErrorMessage
	return obs, false, nil
}
