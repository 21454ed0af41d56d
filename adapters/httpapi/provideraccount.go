package httpapi

import (
	"net/http"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// accountView is a provider account for operators: what we know of the vendor, and
// what we allow ourselves.
type accountView struct {
	Provider   string `json:"provider"`
	Account    string `json:"account"`
	Configured bool   `json:"configured"`

	Breaker      domain.Breaker        `json:"breaker"`
	Reason       *domain.BreakerReason `json:"breaker_reason"`
	BreakerUntil *string               `json:"breaker_until"`
	Openings     int                   `json:"openings"`
	ProbeUntil   *string               `json:"probe_until"`

	ConcurrencyLimit *int    `json:"concurrency_limit"`
	ThrottledUntil   *string `json:"throttled_until"`

	QuarantinedAt   *string `json:"quarantined_at"`
	QuarantineUntil *string `json:"quarantine_until"`
	Malformed       int     `json:"malformed"`
	Sample          *string `json:"malformed_sample"`

	Quotas accountQuotas `json:"quotas"`

	LastCallbackAt *string `json:"last_callback_at"`
	SilentSince    *string `json:"webhook_silent_since"`
	UpdatedAt      *string `json:"updated_at"`
}

// accountQuotas are our own limits of an account's calls; null for none.
type accountQuotas struct {
	Submits *quotaView `json:"submits"`
	Queries *quotaView `json:"queries"`
}

type quotaView struct {
	PerSecond float64 `json:"per_second"`
	Burst     int     `json:"burst"`
}

func accountOf(a app.AccountView) accountView {
	return accountView{
		Provider: a.Provider, Account: a.AccountID, Configured: a.Configured,
		Breaker: a.State(), Reason: present(a.Reason), BreakerUntil: moment(a.Until), Openings: a.Opens, ProbeUntil: moment(a.ProbeUntil),
		ConcurrencyLimit: present(a.Limit), ThrottledUntil: moment(a.ThrottledUntil),
		QuarantinedAt: moment(a.QuarantinedAt), QuarantineUntil: moment(a.QuarantineUntil), Malformed: a.Malformed, Sample: present(a.Sample),
		Quotas:         accountQuotas{Submits: quotaOf(a.Submits), Queries: quotaOf(a.Queries)},
		LastCallbackAt: momentOf(a.LastCallbackAt), SilentSince: momentOf(a.WebhookSilentSince), UpdatedAt: moment(a.UpdatedAt),
	}
}

func quotaOf(r app.Rate) *quotaView {
	return present(quotaView{PerSecond: r.PerSecond, Burst: r.Burst})
}

// moment is a time on the wire, nil for none.
func moment(t time.Time) *string {
	if t.IsZero() {
		return nil
	}
	return present(wire.FormatTime(t))
}

func momentOf(t *time.Time) *string {
	if t == nil {
		return nil
	}
	return moment(*t)
}

func (s *Server) providerAccounts(w http.ResponseWriter, r *http.Request, _ *call) error {
	list, err := s.cfg.Accounts.List(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"providers": each(list, accountOf)})
}

// changeAccount carries out what a person decided about an account.
func (s *Server) changeAccount(action app.AccountAction) func(http.ResponseWriter, *http.Request, *call) error {
	return func(w http.ResponseWriter, r *http.Request, c *call) error {
		var body struct {
			Reason string `json:"reason"`
		}
		if _, err := s.readJSON(w, r, &body, false); err != nil {
			return err
		}
		if err := checkReason(body.Reason); err != nil {
			return err
		}
		view, err := s.cfg.Accounts.Do(r.Context(), app.AccountCommand{
			AccountRef: ports.AccountRef{Provider: r.PathValue("provider"), AccountID: r.PathValue("account")},
			Action:     action, Actor: c.actor(), Reason: body.Reason,
		})
		if err != nil {
			return err
		}
		return answer(w, http.StatusOK, map[string]any{"provider": accountOf(view)})
	}
}

// accountRoutes are the desk's view of the provider accounts.
func (s *Server) accountRoutes() []route {
	const accounts = "/admin/providers"
	routes := []route{{method: http.MethodGet, pattern: accounts, scope: ports.ScopePlatform, handle: s.providerAccounts}}
	for _, action := range app.AccountActions() {
		routes = append(routes, route{
			method: http.MethodPost, pattern: accounts + "/{provider}/{account}/" + string(action), scope: ports.ScopePlatform,
			handle: s.changeAccount(action),
		})
	}
	return routes
}
