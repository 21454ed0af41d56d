package porttest

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// providerQueryMutations: whatever becomes of an answer on its way, it is read as
// what it was, or as less, and never as another end.
func providerQueryMutations(t *testing.T, f ProviderFixture) {
	for _, shape := range f.Recorded {
		for _, body := range mutations(shape.Body) {
			res, err := f.vendor(200, body).Query(t.Context(), f.query(f.RecordedID))
			if fault(t, err) == nil && res.Observation.Status.Terminal() && res.Observation.Status != shape.Status {
				t.Fatalf("%s became %q: %s", shape.Name, res.Observation.Status, body)
			}
		}
	}
}

// providerDecodeMutations: the same for deliveries, which reach Decode only when
// they are signed; so the bytes are the vendor's, and may still be odd.
func providerDecodeMutations(t *testing.T, f ProviderFixture) {
	if f.Event == nil {
		t.Skip("the vendor has no webhook")
	}
	p := f.New(nil)
	row := ports.InboxRow{Provider: p.Capabilities().Name, Trust: domain.TrustAuthentic, ReceivedAt: providerNow, DedupKey: "k", PayloadHash: []byte{1}, Payload: f.Event(suiteJob)}
	obs, foreign, err := p.Decode(row)
	if err != nil || foreign || obs.ProviderTaskID != suiteJob || obs.Status != domain.ObservedSucceeded {
		t.Fatalf("the event itself: %+v, foreign %v, %v", obs, foreign, err)
	}
	if obs.Source != domain.SourceWebhook || obs.Trust != row.Trust || obs.ReceivedAt != providerNow || obs.DedupKey != "k" || obs.PayloadHash != "01" || !obs.AttemptID.IsZero() {
		t.Errorf("what the inbox knows is lost: %+v", obs)
	}
	bodies := mutations(f.Event(suiteJob))
	for _, bad := range badBodies(f.Event(suiteJob)) {
		bodies = append(bodies, bad)
	}
	for _, shape := range f.Recorded {
		bodies = append(bodies, mutations(shape.Body)...)
	}
	for _, body := range bodies {
		row.Payload = body
		obs, foreign, err := p.Decode(row)
		if err == nil && !foreign && obs.ProviderTaskID == "" {
			t.Fatalf("an observation of no job: %.200s", body)
		}
	}
	for _, body := range mutations(f.Event(suiteJob)) {
		row.Payload = body
		if obs, foreign, err := p.Decode(row); err == nil && !foreign && obs.Status.Terminal() && obs.Status != domain.ObservedSucceeded {
			t.Fatalf("success became %q: %s", obs.Status, body)
		}
	}
}

// mutations are the body cut at many places, with bytes changed, and with each
// member missing or of another kind. The random ones are the same in every run.
func mutations(body []byte) [][]byte {
	var all [][]byte
	for i := 0; i < len(body); i += 1 + len(body)/100 {
		all = append(all, body[:i])
	}
	random := rand.New(rand.NewPCG(12, 4))
	for range 200 {
		changed := slices.Clone(body)
		for range 1 + random.IntN(3) {
			changed[random.IntN(len(changed))] ^= 1 << random.IntN(8)
		}
		all = append(all, changed)
	}
	return append(all, memberMutations(body)...)
}

func memberMutations(body []byte) [][]byte {
	var members map[string]json.RawMessage
	if json.Unmarshal(body, &members) != nil {
		return nil
	}
	var all [][]byte
	for name := range members {
		for _, value := range []string{"", "null", "true", "false", "0", "-1", "1e999", "1234567890123456789012345", `""`, `"x"`, "[]", "{}", `[null,{"a":[]}]`, `{"code":1,"message":[]}`} {
			changed := map[string]json.RawMessage{}
			for n, v := range members {
				changed[n] = v
			}
			if delete(changed, name); value != "" {
				changed[name] = json.RawMessage(value)
			}
			if out, err := json.Marshal(changed); err == nil {
				all = append(all, out)
			}
		}
	}
	return append(all, bytes.ReplaceAll(body, []byte(":"), []byte(" :\n")))
}
