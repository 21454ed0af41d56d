package app

import (
	"errors"
	"fmt"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Rate is a limit of calls; the zero Rate is none.
type Rate struct {
	// PerSecond is how many calls per second are allowed on average.
	PerSecond float64
	// Burst is how many may come at once; at least 1 with PerSecond.
	Burst int
}

// QuotaConfig limits calls of vendors at four levels (specification 12.6.2).
// Levels without a limit are not asked for.
type QuotaConfig struct {
	// Platform limits all calls together, Tenant those for each tenant.
	Platform Rate
	Tenant   Rate
	// Account limits calls with each vendor account, Model those for each model of
	// a vendor.
	Account Rate
	Model   Rate
	// Accounts and Models are exceptions, by "provider:account" and
	// "provider:model".
	Accounts map[string]Rate
	Models   map[string]Rate
}

// Validate joins every fault.
func (c QuotaConfig) Validate() error {
	var errs []error
	check := func(name string, r Rate) {
		if r.PerSecond < 0 || r.Burst < 0 || (r.PerSecond > 0) != (r.Burst > 0) {
			errs = append(errs, fmt.Errorf("quota: %s needs both per_second and burst, or neither", name))
		}
	}
	check("platform", c.Platform)
	check("tenant", c.Tenant)
	check("account", c.Account)
	check("model", c.Model)
	for name, r := range c.Accounts {
		check("accounts."+name, r)
	}
	for name, r := range c.Models {
		check("models."+name, r)
	}
	return errors.Join(errs...)
}

// buckets lists the limits that a call of the attempt's vendor falls under. verb
// keeps submits and queries apart: a vendor limits them apart too.
func (c QuotaConfig) buckets(verb string, task domain.Task, a domain.Attempt) []ports.Bucket {
	account, model := a.Provider+":"+a.AccountID, a.Provider+":"+a.Model
	var list []ports.Bucket
	add := func(key string, r Rate) {
		if r != (Rate{}) {
			list = append(list, ports.Bucket{Key: verb + ":" + key, Rate: r.PerSecond, Burst: r.Burst})
		}
	}
	add("platform", c.Platform)
	add("tenant:"+task.TenantID.String(), c.Tenant)
	add("account:"+account, exception(c.Accounts, account, c.Account))
	add("model:"+model, exception(c.Models, model, c.Model))
	return list
}

func exception(exceptions map[string]Rate, key string, rule Rate) Rate {
	if r, ok := exceptions[key]; ok {
		return r
	}
	return rule
}
