package stdwebhook

import (
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// Match says whose secret signed a delivery.
type Match struct {
	Envelope
	AccountID  string
	KeyVersion string
}

// Accounts verifies deliveries against the secrets of several accounts. The zero
// value is ready; safe for concurrent use. It remembers parsed secrets, since
// they come with every request and hardly ever change.
type Accounts struct {
	keys sync.Map // ports.Secret → Key
}

// Verify finds the account that signed the delivery. Errors are
// *ports.VerifyError.
func (a *Accounts) Verify(header http.Header, body []byte, accounts []ports.Account, now time.Time) (Match, error) {
	envelope, err := Open(header, now)
	if err != nil {
		return Match{}, err
	}
	usable := false
	for _, account := range accounts {
		keys := a.parsed(account.Secrets)
		usable = usable || len(keys) > 0
		if version, ok := envelope.Verify(body, keys); ok {
			return Match{Envelope: envelope, AccountID: account.ID, KeyVersion: version}, nil
		}
	}
	if !usable {
		return Match{}, &ports.VerifyError{Reason: ReasonNoSecret}
	}
	return Match{}, &ports.VerifyError{Reason: ReasonBadSignature}
}

// parsed drops secrets that cannot be read: [Check] refuses them at start.
func (a *Accounts) parsed(secrets []ports.Secret) []Key {
	keys := make([]Key, 0, len(secrets))
	for _, s := range secrets {
		cached, ok := a.keys.Load(s)
		if !ok {
			key, err := ParseKey(s.Version, s.Value)
			if err != nil {
				continue
			}
			cached, _ = a.keys.LoadOrStore(s, key)
		}
		keys = append(keys, cached.(Key))
	}
	return keys
}

// Check returns a fault for every secret of the account that cannot verify
// anything.
func Check(account ports.Account) []error {
	var faults []error
	for _, s := range account.Secrets {
		if _, err := ParseKey(s.Version, s.Value); err != nil {
			faults = append(faults, fmt.Errorf("account %q: %w", account.ID, err))
		}
	}
	return faults
}
