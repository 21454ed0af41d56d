package ports

import (
	"context"
	"time"
)

// WebhookHealth keeps how the ends of jobs were learned, per vendor account, so
// that every process can see when a vendor's webhooks fall silent. The figures are
// a signal, not a ledger: what a process had not added when it died is missing.
type WebhookHealth interface {
	// AddWebhookCounts adds to what is stored for the same account and slice. An
	// account whose counts show a delivery has been heard of at the end of the
	// slice. Any order, no account and slice twice.
	AddWebhookCounts(ctx context.Context, counts []WebhookCount) error
	// WebhookCounts returns the slices that begin at since or later, by provider
	// and account, the newest first within one account.
	WebhookCounts(ctx context.Context, since time.Time) ([]WebhookCount, error)
	// SetWebhookSilence begins the silence of an account at the time, or ends it
	// where since is zero. changed is true for exactly one of several callers.
	SetWebhookSilence(ctx context.Context, account AccountRef, since time.Time) (changed bool, err error)
	// WebhookSilences returns the accounts whose webhooks are silent, and since
	// when.
	WebhookSilences(ctx context.Context) (map[AccountRef]time.Time, error)
}

// WebhookSlice is how long a slice of [WebhookCount] is.
const WebhookSlice = 10 * time.Second

// WebhookCount is how many ends of jobs were learned in which way in one slice of
// time.
type WebhookCount struct {
	AccountRef
	// Slice is when the slice begins, a multiple of WebhookSlice.
	Slice time.Time
	// ByWebhook: a delivery ended the attempt. ByPoll: a query did.
	ByWebhook int64
	ByPoll    int64
	// Late: a delivery whose signature covers body and time told of an attempt that
	// a query had ended, or asked for that query.
	Late int64
	// Hinted: the same of a delivery that could not be taken at its word.
	Hinted int64
}

// Heard reports whether the vendor delivered anything.
func (c WebhookCount) Heard() bool { return c.ByWebhook+c.Late+c.Hinted > 0 }
