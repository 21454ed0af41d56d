package main

import (
	"net/http"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/adapters/providers"
	"github.com/aivedio/aivedio/ports"
)

// newProviders builds the adapters of the configured vendors.
func newProviders(cfg Config) (ports.Providers, error) {
	accounts, err := cfg.accounts()
	if err != nil {
		return nil, err
	}
	return providers.New(providers.Config{Accounts: accounts, Client: vendorClient(cfg)})
}

// vendorClient bounds a call by the longest that a role allows: each call has a
// limit of its own within, and a create that is cut below it is an unknown submit.
func vendorClient(cfg Config) *http.Client {
	return &http.Client{Timeout: max(cfg.Work.SubmitTimeout, 30*time.Second)}
}

type providerCmd struct {
	List providerListCmd `cmd:"" help:"Print what every vendor can do."`
}

type providerListCmd struct {
	JSON bool `help:"Print JSON."`
}

// Run prints the capabilities of all adapters, configured or not.
func (cmd providerListCmd) Run(std streams) error {
	all := providers.Capabilities()
	if cmd.JSON {
		return std.json(all)
	}
	rows := [][]string{{"VENDOR", "WEBHOOK", "TRUST", "INTERMEDIATE", "CANCEL", "LOOKUP", "REPLAY", "OUTPUT LIFETIME", "LONGEST NORMAL"}}
	for _, c := range all {
		lifetime := "not documented"
		if c.OutputLifetime > 0 {
			lifetime = c.OutputLifetime.String()
		}
		p := c.Policy.WithDefaults()
		rows = append(rows, []string{c.Name, string(c.Webhook), string(c.Trust), strconv.FormatBool(c.Intermediate), strconv.FormatBool(p.CanCancel), strconv.FormatBool(p.CanLookup), strconv.FormatBool(p.ReplaySafe), lifetime, p.MaxDuration.String()})
	}
	return std.table(rows)
}
