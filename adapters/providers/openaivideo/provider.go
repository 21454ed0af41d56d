package openaivideo

import (
	"errors"
	"net/http"
	"time"

	"github.com/aivedio/aivedio/adapters/providers/internal/httpcall"
	"github.com/aivedio/aivedio/adapters/providers/internal/stdwebhook"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Name is the provider's name in requests, URLs and configuration: the shape of
// the API, which others than OpenAI speak too.
const Name = "openaivideo"

// DefaultBaseURL is OpenAI's own API. Gateways have others.
const DefaultBaseURL = "https://api.openai.com/v1"

// Config is what a provider needs from outside.
type Config struct {
	// Client makes the calls; nil for a plain one with a time-out.
	Client *http.Client
	// Now is nil for the wall clock.
	Now func() time.Time
}

// Provider is the adapter. It holds no credentials: they come with every call.
type Provider struct {
	calls    *httpcall.Caller
	accounts stdwebhook.Accounts
}

var (
	_ ports.Provider     = (*Provider)(nil)
	_ ports.OutputOpener = (*Provider)(nil)
)

// New returns the adapter.
func New(cfg Config) *Provider { return &Provider{calls: httpcall.New(cfg.Client, cfg.Now)} }

// Capabilities is the vendor as data. There is no call that cancels a running
// job, no lookup by an id of ours, and no documented replay of a create. The
// guide asks for a query every ten to twenty seconds.
func (p *Provider) Capabilities() ports.Capabilities {
	return ports.Capabilities{
		Name: Name,
		Policy: domain.Policy{
			Running:     domain.Interval{Base: 10 * time.Second, Cap: 20 * time.Second},
			MaxDuration: time.Hour,
		},
		Webhook:        ports.WebhookPerAccount,
		Trust:          domain.TrustAuthentic,
		OutputLifetime: time.Hour,
	}
}

// CheckAccount returns every fault of an account, nil for none. A gateway may
// need no key.
func CheckAccount(account ports.Account) error {
	faults := append(httpcall.CheckAccount(account), stdwebhook.Check(account)...)
	if account.APIKey == "" && account.BaseURL == "" {
		faults = append(faults, errors.New("account "+account.ID+": api_key is missing"))
	}
	return errors.Join(faults...)
}

func base(account ports.Account, attempt domain.Attempt) string {
	return httpcall.Base(DefaultBaseURL, attempt.BaseURL, account.BaseURL)
}
