package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
)

// accountRow is what /admin/providers says of an account and the list shows.
type accountRow struct {
	Provider         string  `json:"provider"`
	Account          string  `json:"account"`
	Breaker          string  `json:"breaker"`
	Reason           *string `json:"breaker_reason"`
	BreakerUntil     *string `json:"breaker_until"`
	ConcurrencyLimit *int    `json:"concurrency_limit"`
	ThrottledUntil   *string `json:"throttled_until"`
	QuarantinedAt    *string `json:"quarantined_at"`
	LastCallbackAt   *string `json:"last_callback_at"`
}

// accounts asks the server for its provider accounts: nil without a server. One that
// is named must answer; a dev that has ended, or whose key may not, is no fault.
func (cmd providerListCmd) accounts(ctx context.Context) ([]json.RawMessage, error) {
	named := cmd.URL != "" || cmd.APIKey != ""
	c, err := cmd.client()
	var answer struct {
		Providers []json.RawMessage `json:"providers"`
	}
	if err == nil {
		err = c.call(ctx, http.MethodGet, "/admin/providers", nil, &answer)
	}
	switch {
	case err == nil:
		return answer.Providers, nil
	case named || ctx.Err() != nil:
		return nil, err
	default:
		return nil, nil
	}
}

// accountTable prints the accounts below the vendors.
func (cmd providerListCmd) accountTable(std streams, accounts []json.RawMessage) error {
	rows := [][]string{{"VENDOR", "ACCOUNT", "BREAKER", "REASON", "UNTIL", "CALLS AT ONCE", "THROTTLED UNTIL", "QUARANTINED AT", "LAST CALLBACK"}}
	for _, raw := range accounts {
		var a accountRow
		if err := json.Unmarshal(raw, &a); err != nil {
			return fmt.Errorf("the server's answer does not parse: %w", err)
		}
		limit := "no limit"
		if a.ConcurrencyLimit != nil {
			limit = strconv.Itoa(*a.ConcurrencyLimit)
		}
		rows = append(rows, []string{
			a.Provider, a.Account, a.Breaker, orElse(a.Reason, "–"), orElse(a.BreakerUntil, "–"), limit,
			orElse(a.ThrottledUntil, "–"), orElse(a.QuarantinedAt, "–"), orElse(a.LastCallbackAt, "–"),
		})
	}
	if _, err := fmt.Fprintln(std.out); err != nil {
		return err
	}
	return std.table(rows)
}

// accountRef names a provider account for an action.
type accountRef struct {
	remote
	Provider string `arg:"" help:"Name of the vendor."`
	Account  string `arg:"" help:"Id of the account."`
	Reason   string `required:"" help:"Why; kept in the audit log."`
}

func (a accountRef) do(ctx context.Context, std streams, action string) error {
	path := "/admin/providers/" + url.PathEscape(a.Provider) + "/" + url.PathEscape(a.Account) + "/" + action
	return adminDo(ctx, a.remote, std, path, map[string]any{"reason": a.Reason})
}

type (
	providerOpenCmd    struct{ accountRef }
	providerCloseCmd   struct{ accountRef }
	providerReleaseCmd struct{ accountRef }
)

// Run opens an account's breaker.
func (cmd providerOpenCmd) Run(ctx context.Context, std streams) error {
	return cmd.do(ctx, std, "open")
}

// Run closes an account's breaker.
func (cmd providerCloseCmd) Run(ctx context.Context, std streams) error {
	return cmd.do(ctx, std, "close")
}

// Run ends an account's quarantine.
func (cmd providerReleaseCmd) Run(ctx context.Context, std streams) error {
	return cmd.do(ctx, std, "release")
}
