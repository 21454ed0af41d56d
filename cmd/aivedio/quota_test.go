package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/app"
)

// The limits of the file reach the role that they are for, and no other.
func TestQuotasFromFile(t *testing.T) {
	t.Parallel()
	cfg, err := LoadConfig(configFrom(t, `
quotas:
  queries:
    platform: {per_second: 2000, burst: 50}
    account: {per_second: 250, burst: 20}
    models: {"replicate:sim/video": {per_second: 1.5, burst: 1}}
  submits:
    tenant: {per_second: 3, burst: 4}
providers:
  replicate:
    accounts:
      - {id: main, queries: {per_second: 400, burst: 30}}
      - {id: spare, submits: {per_second: 5, burst: 6}}
`))
	if err != nil {
		t.Fatal(err)
	}
	queries := app.QuotaConfig{
		Platform: app.Rate{PerSecond: 2000, Burst: 50}, Account: app.Rate{PerSecond: 250, Burst: 20},
		Accounts: map[string]app.Rate{"replicate:main": {PerSecond: 400, Burst: 30}},
		Models:   map[string]app.Rate{"replicate:sim/video": {PerSecond: 1.5, Burst: 1}},
	}
	submits := app.QuotaConfig{
		Tenant:   app.Rate{PerSecond: 3, Burst: 4},
		Accounts: map[string]app.Rate{"replicate:spare": {PerSecond: 5, Burst: 6}}, Models: map[string]app.Rate{},
	}
	if diff := cmp.Diff(queries, cfg.queryQuota()); diff != "" {
		t.Errorf("queries: %s", diff)
	}
	if diff := cmp.Diff(submits, cfg.submitQuota()); diff != "" {
		t.Errorf("submits: %s", diff)
	}
	if cfg.Quotas.Away != DefaultConfig().Quotas.Away {
		t.Errorf("away is %v", cfg.Quotas.Away)
	}
}
