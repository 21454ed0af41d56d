package main

import (
	"github.com/aivedio/aivedio/app"
)

// QuotasConfig limits calls of vendors at four levels, submits and queries apart,
// over all processes that share a Redis.
type QuotasConfig struct {
	Submits LevelsConfig `yaml:"submits"`
	Queries LevelsConfig `yaml:"queries"`
	// Away is the part of every limit that one process may use while Redis does not
	// answer: with n processes of a role, at most 1/n.
	Away float64 `yaml:"away" env:"AIVEDIO_QUOTA_AWAY"`
}

// LevelsConfig is one limit per level; what is not given is not limited. The
// limits of single accounts stand with the accounts.
type LevelsConfig struct {
	Platform RateConfig `yaml:"platform"`
	Tenant   RateConfig `yaml:"tenant"`
	Account  RateConfig `yaml:"account"`
	Model    RateConfig `yaml:"model"`
	// Models are exceptions, by "provider:model".
	Models map[string]RateConfig `yaml:"models"`
}

// RateConfig is calls per second on average, and how many may come at once; both
// or neither.
type RateConfig struct {
	PerSecond float64 `yaml:"per_second"`
	Burst     int     `yaml:"burst"`
}

func (r RateConfig) rate() app.Rate { return app.Rate{PerSecond: r.PerSecond, Burst: r.Burst} }

// submitQuota and queryQuota are what the roles are told.
func (c Config) submitQuota() app.QuotaConfig {
	return c.quota(c.Quotas.Submits, func(a AccountConfig) RateConfig { return a.Submits })
}

func (c Config) queryQuota() app.QuotaConfig {
	return c.quota(c.Quotas.Queries, func(a AccountConfig) RateConfig { return a.Queries })
}

func (c Config) quota(l LevelsConfig, own func(AccountConfig) RateConfig) app.QuotaConfig {
	q := app.QuotaConfig{
		Platform: l.Platform.rate(), Tenant: l.Tenant.rate(), Account: l.Account.rate(), Model: l.Model.rate(),
		Accounts: map[string]app.Rate{}, Models: map[string]app.Rate{},
	}
	for name, p := range c.Providers {
		for _, a := range p.Accounts {
			if r := own(a); r != (RateConfig{}) {
				q.Accounts[name+":"+a.ID] = r.rate()
			}
		}
	}
	for name, r := range l.Models {
		q.Models[name] = r.rate()
	}
	return q
}

// validateQuotas reports limits that cannot be meant.
func (c Config) validateQuotas(bad func(string, ...any)) {
	for _, err := range []error{c.submitQuota().Validate(), c.queryQuota().Validate()} {
		if err != nil {
			bad("quotas: %w", err)
		}
	}
	if !(c.Quotas.Away > 0 && c.Quotas.Away <= 1) {
		bad("quotas.away must be above 0 and at most 1: the part of a limit that one process may use while Redis is away")
	}
}
