package replicate

import (
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/aivedio/aivedio/adapters/providers/internal/httpcall"
	"github.com/aivedio/aivedio/adapters/providers/internal/stdwebhook"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Name is the provider's name in requests, URLs and configuration.
const Name = "replicate"

// DefaultBaseURL is the public API.
const DefaultBaseURL = "https://api.replicate.com/v1"

// Config is what a provider needs from outside.
type Config struct {
	// Client makes the calls; nil for a plain one with a time-out.
	Client *http.Client
	// Now is nil for the wall clock.
	Now func() time.Time
	// Events are asked for with every prediction; nil for [DefaultEvents].
	Events []string
}

// DefaultEvents are all that Replicate knows. State needs "completed" alone, and
// not even that, since every job is polled. "start" and "logs" are what makes a
// viewer see motion: progress stands only in the logs. A fleet of thousands of
// jobs may leave "logs" out, at two deliveries per second and job.
func DefaultEvents() []string { return []string{"start", "output", "logs", "completed"} }

// Provider is the adapter. It holds no credentials: they come with every call.
type Provider struct {
	calls    *httpcall.Caller
	accounts stdwebhook.Accounts
	events   []string
}

var (
	_ ports.Provider = (*Provider)(nil)
	_ ports.Canceler = (*Provider)(nil)
)

// New returns the adapter.
func New(cfg Config) *Provider {
	events := cfg.Events
	if events == nil {
		events = DefaultEvents()
	}
	return &Provider{calls: httpcall.New(cfg.Client, cfg.Now), events: slices.Clone(events)}
}

// Capabilities is the vendor as data. Thirty minutes is the limit of a run;
// waiting for a machine comes on top.
func (p *Provider) Capabilities() ports.Capabilities {
	return ports.Capabilities{
		Name:           Name,
		Policy:         domain.Policy{CanCancel: true, MaxDuration: 40 * time.Minute},
		Webhook:        ports.WebhookPerTask,
		Trust:          domain.TrustAuthentic,
		OutputLifetime: time.Hour,
		Intermediate:   true,
	}
}

// CheckAccount returns every fault of an account, nil for none.
func CheckAccount(account ports.Account) error {
	faults := append(httpcall.CheckAccount(account), stdwebhook.Check(account)...)
	if account.APIKey == "" {
		faults = append(faults, errors.New("account "+account.ID+": api_key is missing"))
	}
	return errors.Join(faults...)
}
