package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// AccountRef names one set of credentials with a vendor.
type AccountRef struct {
	Provider  string
	AccountID string
}

// Health keeps what all processes know of the provider accounts.
type Health interface {
	// AccountHealth returns every account of which something is known, in the order
	// of provider and account.
	AccountHealth(ctx context.Context) ([]AccountHealth, error)
	// SaveAccountHealth stores the health if the row still has the version it was
	// read at, which it then raises by 1; Version 0 means that there was no row. False
	// when somebody was faster. The times of callbacks are left alone. An audit, for
	// an action of a person, is written with it.
	SaveAccountHealth(ctx context.Context, row AccountHealth, audit *Audit) (saved bool, err error)
	// AttendCalls notes that a process calls vendors, and returns how many do: those
	// that were noted since `since`, this one included. Older ones are forgotten.
	AttendCalls(ctx context.Context, process domain.ID, now, since time.Time) (int, error)
}

// AccountHealth is one account as it is stored.
type AccountHealth struct {
	AccountRef
	domain.Health
	// Version counts the changes of Health.
	Version int64
	// LastCallbackAt is when a delivery of the account was last stored; nil when it is
	// not known.
	LastCallbackAt *time.Time
	// WebhookSilentSince is since when jobs are found finished by queries only; nil
	// while webhooks tell of them. [WebhookHealth] sets it.
	WebhookSilentSince *time.Time
	UpdatedAt          time.Time
}

// Tripwire counts the calls of one account in one process and says when too many
// have failed. It is safe for concurrent use.
type Tripwire interface {
	// Report counts a call. True: too many failed, and the count begins anew.
	Report(ok bool) (tripped bool)
	// Reset begins the count anew.
	Reset()
}
