package app

import (
	"encoding/hex"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// observed is what the platform adds to a vendor's news: where it came from and
// whom it is about.
type observed struct {
	ref    ports.Ref
	policy domain.Policy
	jitter float64
	source domain.Source
	trust  domain.Trust
	at     time.Time
	trace  domain.TraceID

	// lease, started and nextAfter belong to queries.
	lease     domain.ID
	started   time.Time
	nextAfter time.Duration

	// eventID, dedupKey and payloadHash belong to deliveries.
	eventID     string
	dedupKey    string
	payloadHash []byte
}

// observationItem is where webhook and query meet: the only function that turns
// a vendor's news into an input of the state machine. Whatever the adapter says
// about provenance is overwritten; text that no database keeps is made storable.
func observationItem(obs domain.Observation, from observed) ports.Item {
	obs.Source, obs.Trust, obs.ReceivedAt, obs.TraceID = from.source, from.trust, from.at, from.trace
	obs.AttemptID = from.ref.AttemptID
	obs.DedupKey = from.dedupKey
	if from.eventID != "" {
		obs.ProviderEventID = from.eventID
	}
	if len(from.payloadHash) > 0 {
		obs.PayloadHash = hex.EncodeToString(from.payloadHash)
	}
	obs.ProviderEventID, obs.ProviderTaskID = storable(obs.ProviderEventID), storable(obs.ProviderTaskID)
	obs.ClientRequestID, obs.ErrorCode = storable(obs.ClientRequestID), storable(obs.ErrorCode)
	obs.ErrorMessage = sentence(obs.ErrorMessage)
	obs.Outputs = usable(obs.Outputs)
	return ports.Item{
		Ref: from.ref,
		Input: domain.Input{
			Kind: domain.InputObservation, Policy: from.policy, Jitter: from.jitter, Observation: &obs,
			Lease: from.lease, QueryStartedAt: from.started, RetryAfter: from.nextAfter,
		},
	}
}

// usable drops outputs that cannot be fetched or kept.
func usable(outputs []domain.OutputRef) []domain.OutputRef {
	var kept []domain.OutputRef
	for _, o := range outputs {
		if o.URL == "" && o.Ref == "" || !clean(o.URL) || !clean(o.Ref) || !clean(o.Kind) {
			continue
		}
		kept = append(kept, o)
	}
	return slices.Clip(kept)
}
