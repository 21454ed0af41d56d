// Package providers knows every vendor that has an adapter and the accounts that
// the configuration names.
package providers

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aivedio/aivedio/adapters/providers/openaivideo"
	"github.com/aivedio/aivedio/adapters/providers/replicate"
	"github.com/aivedio/aivedio/ports"
)

// vendor is one line of the table.
type vendor struct {
	name    string
	baseURL string
	check   func(ports.Account) error
	build   func(Config) ports.Provider
}

// vendors lists every adapter. A new one is a package and a line.
var vendors = []vendor{
	{openaivideo.Name, openaivideo.DefaultBaseURL, openaivideo.CheckAccount, func(c Config) ports.Provider {
		return openaivideo.New(openaivideo.Config{Client: c.Client, Now: c.Now})
	}},
	{replicate.Name, replicate.DefaultBaseURL, replicate.CheckAccount, func(c Config) ports.Provider {
		return replicate.New(replicate.Config{Client: c.Client, Now: c.Now, Events: c.ReplicateEvents})
	}},
}

// Config is what the registry is made from.
type Config struct {
	// Accounts holds the credentials by provider name, the default account first.
	// A provider without an account is not configured.
	Accounts map[string][]ports.Account
	// Client calls the vendors; nil for one with a time-out of thirty seconds. Its
	// redirects are switched off.
	Client *http.Client
	// Now is nil for the wall clock.
	Now func() time.Time
	// ReplicateEvents are the events asked of Replicate; nil for all of them.
	ReplicateEvents []string
}

// Known lists the names of all vendors that have an adapter, sorted.
func Known() []string {
	names := make([]string, 0, len(vendors))
	for _, v := range vendors {
		names = append(names, v.name)
	}
	slices.Sort(names)
	return names
}

// Capabilities lists what every adapter can do, configured or not, in the order
// of the names.
func Capabilities() []ports.Capabilities {
	all := make([]ports.Capabilities, 0, len(vendors))
	for _, v := range vendors {
		all = append(all, v.build(Config{}).Capabilities())
	}
	slices.SortFunc(all, func(a, b ports.Capabilities) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Registry holds the configured vendors. It never changes after New.
type Registry struct {
	providers map[string]ports.Provider
	accounts  map[string][]ports.Account
}

var _ ports.Providers = (*Registry)(nil)

// New builds the adapters of all providers that have an account. The error holds
// every fault of the configuration, none of them with a secret in it.
func New(cfg Config) (*Registry, error) {
	r := &Registry{providers: map[string]ports.Provider{}, accounts: map[string][]ports.Account{}}
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(cfg.Accounts)) {
		i := slices.IndexFunc(vendors, func(v vendor) bool { return v.name == name })
		if i < 0 {
			faults = append(faults, fmt.Errorf("provider %q: no such provider; known are %v", name, Known()))
			continue
		}
		if len(cfg.Accounts[name]) == 0 {
			continue
		}
		accounts, err := vendors[i].accounts(cfg.Accounts[name])
		if err != nil {
			faults = append(faults, fmt.Errorf("provider %q: %w", name, err))
			continue
		}
		r.providers[name], r.accounts[name] = vendors[i].build(cfg), accounts
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return r, nil
}

// accounts checks the accounts and gives each an address, so that an attempt can
// be pinned to it.
func (v vendor) accounts(given []ports.Account) ([]ports.Account, error) {
	var faults []error
	seen := map[string]bool{}
	accounts := slices.Clone(given)
	for i, account := range accounts {
		faults = append(faults, v.check(account))
		if seen[account.ID] {
			faults = append(faults, fmt.Errorf("account %q is listed twice", account.ID))
		}
		seen[account.ID] = true
		if account.BaseURL == "" {
			accounts[i].BaseURL = v.baseURL
		}
		accounts[i].Secrets = slices.Clone(account.Secrets)
	}
	return accounts, errors.Join(faults...)
}

// Provider returns the adapter of the name.
func (r *Registry) Provider(name string) (ports.Provider, bool) {
	p, ok := r.providers[name]
	return p, ok
}

// Accounts returns the accounts of a provider, the default one first; nil for a
// provider that is not configured.
func (r *Registry) Accounts(name string) []ports.Account { return slices.Clone(r.accounts[name]) }

// Names lists the configured providers, sorted.
func (r *Registry) Names() []string { return slices.Sorted(maps.Keys(r.providers)) }
