package main

import (
	"context"
	"net/http"
	"strconv"
	"strings"
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
	List    providerListCmd    `cmd:"" help:"Print what every vendor can do, and how the accounts of a running server are."`
	Open    providerOpenCmd    `cmd:"" help:"Stop all calls with an account until it is closed again."`
	Close   providerCloseCmd   `cmd:"" help:"Close an account's breaker and forget its throttling."`
	Release providerReleaseCmd `cmd:"" help:"End an account's quarantine."`
}

type providerListCmd struct {
	remote
	JSON bool `help:"Print JSON."`
}

// vendorView is what a vendor can do, as `provider list --json` prints it.
type vendorView struct {
	Name string `json:"name"`
	// Webhook is none, per_task or per_account; Trust the best level that a delivery
	// reaches.
	Webhook string `json:"webhook"`
	Trust   string `json:"trust"`
	// Intermediate: it also reports before the end.
	Intermediate bool `json:"intermediate"`
	Cancel       bool `json:"cancel"`
	// Lookup: a job can be found by our own id.
	Lookup bool `json:"lookup"`
	// Replay: the same create, sent again, is documented to run once.
	Replay bool `json:"replay"`
	// OutputLifetime is null where the vendor documents none.
	OutputLifetime *string `json:"output_lifetime"`
	// LongestNormal is how long a job may take before it is overdue.
	LongestNormal string `json:"longest_normal"`
}

func viewOfVendor(c ports.Capabilities) vendorView {
	p := c.Policy.WithDefaults()
	v := vendorView{
		Name: c.Name, Webhook: string(c.Webhook), Trust: string(c.Trust), Intermediate: c.Intermediate,
		Cancel: p.CanCancel, Lookup: p.CanLookup, Replay: p.ReplaySafe, LongestNormal: shortly(p.MaxDuration),
	}
	if c.OutputLifetime > 0 {
		v.OutputLifetime = new(shortly(c.OutputLifetime))
	}
	return v
}

// shortly is a duration without its empty parts: 1h, not 1h0m0s.
func shortly(d time.Duration) string {
	s := d.String()
	for _, empty := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(s, empty) {
			s = s[:len(s)-2]
		}
	}
	return s
}

// Run prints the capabilities of all adapters, configured or not, and the accounts
// of the server, where there is one.
func (cmd providerListCmd) Run(ctx context.Context, std streams) error {
	accounts, err := cmd.accounts(ctx)
	if err != nil {
		return err
	}
	views := []vendorView{}
	for _, c := range providers.Capabilities() {
		views = append(views, viewOfVendor(c))
	}
	if cmd.JSON {
		answer := map[string]any{"providers": views}
		if accounts != nil {
			answer["accounts"] = accounts
		}
		return std.json(answer)
	}
	yes := strconv.FormatBool
	rows := [][]string{{"VENDOR", "WEBHOOK", "TRUST", "INTERMEDIATE", "CANCEL", "LOOKUP", "REPLAY", "OUTPUT LIFETIME", "LONGEST NORMAL"}}
	for _, v := range views {
		rows = append(rows, []string{v.Name, v.Webhook, v.Trust, yes(v.Intermediate), yes(v.Cancel), yes(v.Lookup), yes(v.Replay), orElse(v.OutputLifetime, "not documented"), v.LongestNormal})
	}
	if err := std.table(rows); err != nil || accounts == nil {
		return err
	}
	return cmd.accountTable(std, accounts)
}
