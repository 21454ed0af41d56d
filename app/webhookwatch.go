package app

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// WebhookWatchConfig shapes the watch over the vendors' webhooks.
type WebhookWatchConfig struct {
	// Every is how often figures are exchanged with the other processes; 3 s when
	// zero.
	Every time.Duration
	// Enough is how many ends of jobs make a judgement; 8 when zero. A vendor with
	// few jobs is judged by older ones.
	Enough int
	// Window is how old an end may be to count; 1 h when zero.
	Window time.Duration
	// Span is the least time that a judgement looks back, so that a webhook which is
	// a little slower than a query is not taken for silence; 20 s when zero.
	Span time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c WebhookWatchConfig) WithDefaults() WebhookWatchConfig {
	c.Every = cmp.Or(c.Every, 3*time.Second)
	c.Enough = cmp.Or(c.Enough, 8)
	c.Window = cmp.Or(c.Window, time.Hour)
	c.Span = cmp.Or(c.Span, 20*time.Second)
	return c
}

// Validate joins every fault.
func (c WebhookWatchConfig) Validate() error {
	if c.Every < 0 || c.Enough < 0 || c.Window < 0 || c.Span < 0 {
		return errors.New("webhook watch: a period or limit is negative")
	}
	return nil
}

// WebhookWatchDeps are what [WebhookWatch] works with; all are required.
type WebhookWatchDeps struct {
	Env
	Health  ports.WebhookHealth
	Vendors Vendors
}

// WebhookWatch compares how the ends of jobs become known. Where webhooks tell of
// them, queries become rarer; where only queries find them, queries become more
// frequent and somebody is told (specification 12.12). Every process that digests
// deliveries or answers has one in its Env; the figures of all meet in the store.
//
// A nil WebhookWatch counts nothing and knows nothing. Safe for concurrent use;
// Step and Run must not be called at the same time.
type WebhookWatch struct {
	deps  WebhookWatchDeps
	cfg   WebhookWatchConfig
	paces atomic.Pointer[map[ports.AccountRef]float64]

	mu      sync.Mutex
	pending map[webhookSlice]ports.WebhookCount
}

type webhookSlice struct {
	ports.AccountRef
	slice time.Time
}

// maxPendingSlices bounds what is kept while the store is away: an hour of a
// dozen accounts.
const maxPendingSlices = 4096

// NewWebhookWatch checks what it is given.
func NewWebhookWatch(deps WebhookWatchDeps, cfg WebhookWatchConfig) (*WebhookWatch, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("webhook watch", map[string]bool{
		"Health": deps.Health != nil, "Vendors": deps.Vendors.providers != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env = deps.Env.WithDefaults()
	return &WebhookWatch{deps: deps, cfg: cfg.WithDefaults(), pending: map[webhookSlice]ports.WebhookCount{}}, nil
}

// Committed counts what stored results say about webhooks. It only counts in
// memory and never blocks on the store.
func (w *WebhookWatch) Committed(results []ports.Result) {
	if w == nil {
		return
	}
	var slice time.Time
	for _, r := range results {
		one := webhookNews(r)
		if one == (ports.WebhookCount{}) {
			continue
		}
		if slice.IsZero() {
			slice = w.deps.Now().UTC().Truncate(ports.WebhookSlice)
		}
		one.Slice = slice
		one.AccountRef = ports.AccountRef{Provider: r.Decision.Attempt.Provider, AccountID: r.Decision.Attempt.AccountID}
		w.add(one)
	}
}

// webhookNews is what one result says: nothing, or one of the four counts.
func webhookNews(r ports.Result) (c ports.WebhookCount) {
	d := r.Decision
	ended := d.StatusChanged && d.Attempt.Status.Terminal()
	switch {
	case r.Err != nil || r.Replayed || d.Attempt.ID.IsZero():
	case d.Source == domain.SourcePoll || d.Source == domain.SourceReconcile:
		if ended {
			c.ByPoll = 1
		}
	case d.Source != domain.SourceWebhook:
	case ended:
		c.ByWebhook = 1
	case !d.Attempt.Status.Terminal() && d.Verdict.Kind != domain.VerdictNeedsQuery:
		// News on the way says nothing about whether the end will be told.
	case d.Verdict.Reason == domain.ReasonNotTrusted:
		c.Hinted = 1
	default:
		c.Late = 1
	}
	return c
}

func (w *WebhookWatch) add(c ports.WebhookCount) {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := webhookSlice{c.AccountRef, c.Slice}
	have, known := w.pending[key]
	if !known && len(w.pending) >= maxPendingSlices {
		return
	}
	c.ByWebhook, c.ByPoll, c.Late, c.Hinted = c.ByWebhook+have.ByWebhook, c.ByPoll+have.ByPoll, c.Late+have.Late, c.Hinted+have.Hinted
	w.pending[key] = c
}

// Pace is the factor of the account's regular polling delays for
// domain.Policy.Pace; 0 when nothing is known.
func (w *WebhookWatch) Pace(account ports.AccountRef) float64 {
	if w == nil {
		return 0
	}
	if paces := w.paces.Load(); paces != nil {
		return (*paces)[account]
	}
	return 0
}

// Run exchanges figures until the context ends, and what is counted once more
// then.
func (w *WebhookWatch) Run(ctx context.Context) error {
	// A round reports no work: it is never in a hurry for the next.
	step := func(ctx context.Context) (int, error) { return 0, w.Step(ctx) }
	drain := func() {
		ctx, cancel := detached(ctx)
		defer cancel()
		if err := w.flush(ctx); err != nil {
			w.deps.Logger.Warn("the last webhook counts are lost", "error", err)
		}
	}
	return Loop{Name: "webhooks", Step: step, Drain: drain, Interval: w.cfg.Every, Env: w.deps.Env}.Run(ctx)
}

// Step adds what was counted to the store's figures, reads those of all processes
// and judges each account.
func (w *WebhookWatch) Step(ctx context.Context) error {
	if err := w.flush(ctx); err != nil {
		return err
	}
	counts, err := w.deps.Health.WebhookCounts(ctx, w.deps.Now().Add(-w.cfg.Window))
	if err != nil {
		return err
	}
	silences, err := w.deps.Health.WebhookSilences(ctx)
	if err != nil {
		return err
	}
	return w.judge(ctx, counts, silences)
}

// flush adds the pending counts to the store; those of a failed try are kept.
func (w *WebhookWatch) flush(ctx context.Context) error {
	w.mu.Lock()
	counts := make([]ports.WebhookCount, 0, len(w.pending))
	for _, c := range w.pending {
		counts = append(counts, c)
	}
	clear(w.pending)
	w.mu.Unlock()
	if len(counts) == 0 {
		return nil
	}
	err := w.deps.Health.AddWebhookCounts(ctx, counts)
	if err != nil {
		for _, c := range counts {
			w.add(c)
		}
	}
	return err
}

// judge sets pace, gauge and alarm of every configured account that can deliver.
func (w *WebhookWatch) judge(ctx context.Context, counts []ports.WebhookCount, silences map[ports.AccountRef]time.Time) error {
	shares := w.shares(counts)
	paces := make(map[ports.AccountRef]float64, len(shares))
	var errs []error
	for _, ref := range w.accounts() {
		share, known := shares[ref]
		if known {
			paces[ref] = share.pace()
		}
		_, silent := silences[ref]
		now, err := w.alarm(ctx, ref, share, known, silent)
		errs = append(errs, err)
		w.deps.Metrics.Set(MetricWebhookSilence, flag(now), ref.Provider, ref.AccountID)
		w.deps.Metrics.Set(MetricPollPace, cmp.Or(paces[ref], 1), ref.Provider, ref.AccountID)
	}
	w.paces.Store(&paces)
	return errors.Join(errs...)
}

// accounts are those of vendors that send webhooks.
func (w *WebhookWatch) accounts() []ports.AccountRef {
	var refs []ports.AccountRef
	for _, name := range w.deps.Vendors.Names() {
		vendor, ok := w.deps.Vendors.Vendor(name)
		if kind := vendorWebhook(vendor, ok); kind == "" || kind == ports.WebhookNone {
			continue
		}
		for _, account := range w.deps.Vendors.Accounts(name) {
			refs = append(refs, ports.AccountRef{Provider: name, AccountID: account.ID})
		}
	}
	return refs
}

func vendorWebhook(v Vendor, ok bool) ports.WebhookKind {
	if !ok {
		return ports.WebhookNone
	}
	return v.Capabilities().Webhook
}

// alarm begins or ends the silence of an account where the judgement is clear, and
// says so once for all processes. It returns what holds now.
func (w *WebhookWatch) alarm(ctx context.Context, ref ports.AccountRef, share webhookShare, known, silent bool) (bool, error) {
	switch {
	case known && share.silent() && !silent:
		changed, err := w.deps.Health.SetWebhookSilence(ctx, ref, w.deps.Now())
		if changed {
			w.deps.Logger.Warn("webhooks are silent: jobs are found finished by queries only", "provider", ref.Provider, "account", ref.AccountID)
		}
		return err == nil, err
	case known && share.heard() && silent:
		changed, err := w.deps.Health.SetWebhookSilence(ctx, ref, time.Time{})
		if changed {
			w.deps.Logger.Warn("webhooks arrive again", "provider", ref.Provider, "account", ref.AccountID)
		}
		return err != nil, err
	}
	return silent, nil
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
