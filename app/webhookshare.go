package app

import (
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// webhookShare is which part of the newest ends of jobs was told by webhooks: any
// at all, and those whose signature covers body and time. Both are from 0 to 1.
type webhookShare struct{ any, signed float64 }

// The bounds of the alarm. Between them it stays as it is, so that it does not
// flutter.
const (
	silentBelow = 0.1
	heardFrom   = 0.5
)

func (s webhookShare) silent() bool { return s.any < silentBelow }
func (s webhookShare) heard() bool  { return s.any >= heardFrom }

// slowestPace is how much rarer queries become when every end is told by a signed
// webhook: the longest regular delay, 15 s, stays below a minute, so that a vendor
// that falls silent is noticed within one. fastestPace is that of a silent one.
const (
	slowestPace = domain.MaxPace
	fastestPace = 0.5
)

// pace is the factor of polling delays. Anybody may send unsigned deliveries, so
// that they bring the pace back to normal and only signed ones make queries rarer
// (webhooks that are hints never push queries out).
func (s webhookShare) pace() float64 {
	if s.signed > heardFrom {
		return 1 + (slowestPace-1)*(s.signed-heardFrom)/(1-heardFrom)
	}
	return min(1, fastestPace+(1-fastestPace)*s.any/heardFrom)
}

// shares judges each account by its newest slices: all of the last Span, and older
// ones until Enough ends are seen. Accounts with fewer are left out. counts are
// sorted by account, the newest first.
func (w *WebhookWatch) shares(counts []ports.WebhookCount) map[ports.AccountRef]webhookShare {
	shares := map[ports.AccountRef]webhookShare{}
	recent := w.deps.Now().Add(-w.cfg.Span)
	sums := map[ports.AccountRef]ports.WebhookCount{}
	for _, c := range counts {
		sum := sums[c.AccountRef]
		if !c.Slice.Add(ports.WebhookSlice).After(recent) && sum.ByWebhook+sum.ByPoll >= int64(w.cfg.Enough) {
			continue
		}
		sum.ByWebhook, sum.ByPoll = sum.ByWebhook+c.ByWebhook, sum.ByPoll+c.ByPoll
		sum.Late, sum.Hinted = sum.Late+c.Late, sum.Hinted+c.Hinted
		sums[c.AccountRef] = sum
	}
	for ref, sum := range sums {
		if ends := sum.ByWebhook + sum.ByPoll; ends >= int64(w.cfg.Enough) {
			shares[ref] = webhookShare{
				any:    part(sum.ByWebhook+sum.Late+sum.Hinted, ends),
				signed: part(sum.ByWebhook+sum.Late, ends),
			}
		}
	}
	return shares
}

// part is at most the whole: a vendor may tell of one end more than once.
func part(n, of int64) float64 { return min(1, float64(n)/float64(of)) }

// policyOf is what the state machine has to know about an attempt at an account.
func (e Env) policyOf(vendors Vendors, provider, account string) domain.Policy {
	p := vendors.Policy(provider)
	p.Pace = e.Webhooks.Pace(ports.AccountRef{Provider: provider, AccountID: account})
	return p
}

// committed tells the other parts of the process what was stored.
func (e Env) committed(results []ports.Result) {
	e.Bells.Committed(results)
	e.Webhooks.Committed(results)
}
