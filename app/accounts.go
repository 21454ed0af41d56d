package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// AccountsDeps are what [Accounts] works with. The quotas are those of the roles
// that call; the rest is required.
type AccountsDeps struct {
	Env
	Health  ports.Health
	Vendors Vendors
	Submits QuotaConfig
	Queries QuotaConfig
}

// Accounts shows operators the provider accounts and lets them intervene. It calls
// no vendor.
type Accounts struct{ deps AccountsDeps }

// NewAccounts checks what it is given.
func NewAccounts(deps AccountsDeps) (*Accounts, error) {
	err := errors.Join(deps.Env.Validate(), deps.Submits.Validate(), deps.Queries.Validate(), required("accounts", map[string]bool{
		"Health": deps.Health != nil, "Vendors": deps.Vendors.providers != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	return &Accounts{deps: deps}, nil
}

// AccountView is one account for operators.
type AccountView struct {
	ports.AccountHealth
	// Configured: this process has its credentials.
	Configured bool
	// Submits and Queries are our own limits of its calls; zero for none.
	Submits Rate
	Queries Rate
}

// List returns every account that is configured here or of which something is
// known, in the order of provider and account. ports.ErrUnavailable.
func (a *Accounts) List(ctx context.Context) ([]AccountView, error) {
	rows, err := a.deps.Health.AccountHealth(ctx)
	if err != nil {
		return nil, fmt.Errorf("account health: %w", err)
	}
	views := map[ports.AccountRef]AccountView{}
	for _, row := range rows {
		views[row.AccountRef] = a.view(row)
	}
	for _, name := range a.deps.Vendors.Names() {
		for _, account := range a.deps.Vendors.Accounts(name) {
			ref := ports.AccountRef{Provider: name, AccountID: account.ID}
			if _, known := views[ref]; !known {
				views[ref] = a.view(ports.AccountHealth{AccountRef: ref})
			}
		}
	}
	list := make([]AccountView, 0, len(views))
	for _, v := range views {
		list = append(list, v)
	}
	slices.SortFunc(list, func(x, y AccountView) int {
		return cmp.Or(cmp.Compare(x.Provider, y.Provider), cmp.Compare(x.AccountID, y.AccountID))
	})
	return list, nil
}

func (a *Accounts) view(row ports.AccountHealth) AccountView {
	_, configured := a.deps.Vendors.Account(row.Provider, row.AccountID)
	key := row.Provider + ":" + row.AccountID
	return AccountView{
		AccountHealth: row, Configured: configured,
		Submits: exception(a.deps.Submits.Accounts, key, a.deps.Submits.Account),
		Queries: exception(a.deps.Queries.Accounts, key, a.deps.Queries.Account),
	}
}

// AccountAction is what a person does to an account.
type AccountAction string

// The actions on an account.
const (
	// AccountOpen opens the breaker until a person closes it: no calls.
	AccountOpen AccountAction = "open"
	// AccountClose closes the breaker and forgets throttling and the limit of calls
	// at once: calls pass again at once.
	AccountClose AccountAction = "close"
	// AccountRelease ends a quarantine.
	AccountRelease AccountAction = "release"
)

// AccountActions lists every action.
func AccountActions() []AccountAction {
	return []AccountAction{AccountOpen, AccountClose, AccountRelease}
}

// AccountCommand is a person's decision about an account.
type AccountCommand struct {
	ports.AccountRef
	Action AccountAction
	Actor  string
	// Reason is required: it is kept in the audit log.
	Reason string
}

// accountTries is how often a decision is made again on a row that moved.
const accountTries = 5

// Do carries a decision out and returns the account as it is now. Processes that
// call vendors follow within a second. ports.ErrNotFound: no such account.
// ports.ErrUnavailable, also when the row never stands still. *FieldErrors.
func (a *Accounts) Do(ctx context.Context, cmd AccountCommand) (AccountView, error) {
	faults := &FieldErrors{}
	faults.check(slices.Contains(AccountActions(), cmd.Action), "action", "unknown", "use open, close or release")
	faults.check(cmd.Reason != "", "reason", "required", "say why")
	checkReason(faults, cmd.Reason)
	if err := faults.err(); err != nil {
		return AccountView{}, err
	}
	for range accountTries {
		view, err := a.find(ctx, cmd.AccountRef)
		if err != nil {
			return AccountView{}, err
		}
		row := view.AccountHealth
		row.Health = byHand(row.Health, cmd.Action)
		saved, err := a.deps.Health.SaveAccountHealth(ctx, row, &ports.Audit{
			ActionID: domain.ActionID{ID: a.deps.NewID()}, Actor: cmd.Actor, Action: "provider." + string(cmd.Action), Reason: cmd.Reason,
		})
		if err != nil {
			return AccountView{}, fmt.Errorf("%s account: %w", cmd.Action, err)
		}
		if saved {
			a.deps.Logger.Info("a person changed a provider account", "provider", row.Provider, "account", row.AccountID, "action", string(cmd.Action), "actor", cmd.Actor)
			return a.find(ctx, cmd.AccountRef)
		}
	}
	return AccountView{}, fmt.Errorf("%s account: it changes too fast: %w", cmd.Action, ports.ErrUnavailable)
}

func (a *Accounts) find(ctx context.Context, ref ports.AccountRef) (AccountView, error) {
	views, err := a.List(ctx)
	if err != nil {
		return AccountView{}, err
	}
	for _, v := range views {
		if v.AccountRef == ref {
			return v, nil
		}
	}
	return AccountView{}, fmt.Errorf("provider account: %w", ports.ErrNotFound)
}

func byHand(h domain.Health, action AccountAction) domain.Health {
	switch action {
	case AccountOpen:
		return h.OpenByHand()
	case AccountClose:
		return h.CloseByHand()
	default:
		return h.ReleaseByHand()
	}
}
