package httpapi

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Config is what a [Server] serves. A part that is nil is a role that this
// process does not play: its routes do not exist.
type Config struct {
	// Access is required by everything but Receive.
	Access *app.Access

	// Submit, Cancel, Retry and Reader are the tasks; all or none.
	Submit *app.Submit
	Cancel *app.Cancel
	Retry  *app.Retry
	Reader ports.Reader
	// Media serves the content of assets; it needs Reader and SigningKeys.
	Media ports.Media
	// Events streams; it needs Reader.
	Events Events
	// Inbox, Requeue, Desk, Sweeps, Outbox, Durations and
	// Resolve are the operators' desk; all or none.
	Inbox     ports.DeadLetters
	Requeue   *app.Requeue
	Desk      ports.Desk
	Sweeps    ports.SweepLog
	Outbox    ports.OutboxDesk
	Durations ports.Durations
	Resolve   *app.Resolve
	// Accounts shows operators the provider accounts.
	Accounts *app.Accounts
	// Watched is told of each read of a project's state and of each stream; nil for
	// nobody. It must not block.
	Watched func(domain.ProjectID)
	// Receive takes callbacks.
	Receive *app.Receive

	// Ready reports whether this process should get requests; nil says always.
	Ready func(context.Context) error
	// Metrics are shown at /metrics; new ones when nil.
	Metrics *Metrics

	// SigningKeys sign content URLs, the newest first; all of them verify. Each
	// has at least 16 bytes.
	SigningKeys [][]byte
	// SignedFor is how long a content URL works (15 min).
	SignedFor time.Duration
	// TrustedProxies are the networks whose X-Forwarded-Proto counts.
	TrustedProxies []netip.Prefix

	// MaxBody bounds the body of a request (256 KiB), MaxCallback that of a
	// delivery (1 MiB), in bytes; MaxHeaders the header lines (100); BodyTimeout
	// the time in which a body must have come (10 s).
	MaxBody     int64
	MaxCallback int64
	MaxHeaders  int
	BodyTimeout time.Duration
	// RequestTimeout bounds a whole request that is neither a stream nor a file
	// (10 s), and of those what comes before the first byte: a database that is there
	// and does not answer must not gather requests without end. After it the answer is
	// a 503.
	RequestTimeout time.Duration
	// CallbackTimeout bounds the wait for a delivery's commit (4 s): vendors give up
	// after five or ten seconds, and one that gets a 503 knows when to come again.
	CallbackTimeout time.Duration
	// ReadyTimeout bounds the question whether the process is ready (2 s): what asks
	// it gives up soon.
	ReadyTimeout time.Duration

	// CallbackRate is how many deliveries per second one source address may send
	// for one provider; 0 limits nothing. CallbackBurst is how many it may send at
	// once; the rate rounded up when zero.
	CallbackRate  float64
	CallbackBurst int
	// ProviderRate is how many deliveries per second are taken for one provider from
	// all addresses together; 0 limits nothing. ProviderBurst is how many at once; the
	// rate rounded up when zero.
	ProviderRate  float64
	ProviderBurst int

	// Now is the clock of signed URLs and durations; time.Now when nil.
	Now func() time.Time
	// Logger takes what clients must not see; slog.Default when nil.
	Logger *slog.Logger
}

// Events is the stream gateway.
type Events interface {
	// ServeEvents answers with a stream or a long-poll. An error means that nothing
	// was written.
	ServeEvents(w http.ResponseWriter, r *http.Request, req EventRequest) error
}

// EventsFunc is a function as [Events].
type EventsFunc func(http.ResponseWriter, *http.Request, EventRequest) error

// ServeEvents calls the function.
func (f EventsFunc) ServeEvents(w http.ResponseWriter, r *http.Request, req EventRequest) error {
	return f(w, r, req)
}

// EventRequest is an authorised wish for a project's events; the gateway has a
// struct of the same fields.
type EventRequest struct {
	Project domain.ProjectID
	// Task limits the stream when set; TaskTerminal and TaskLastEventID are that
	// task at this moment.
	Task            domain.TaskID
	TaskTerminal    bool
	TaskLastEventID int64
	// Auth asks again whether the caller may go on.
	Auth func(ctx context.Context) error
	// Denied: the caller may not; the gateway says so in the stream.
	Denied bool
	// Unavailable: the store does not answer whether the caller may; the gateway says
	// so in the stream.
	Unavailable bool
}

// WithDefaults returns a copy with every zero field set.
func (c Config) WithDefaults() Config {
	c.SignedFor = cmp.Or(c.SignedFor, 15*time.Minute)
	c.MaxBody = cmp.Or(c.MaxBody, 256<<10)
	c.MaxCallback = cmp.Or(c.MaxCallback, 1<<20)
	c.MaxHeaders = cmp.Or(c.MaxHeaders, 100)
	c.BodyTimeout = cmp.Or(c.BodyTimeout, 10*time.Second)
	c.RequestTimeout = cmp.Or(c.RequestTimeout, 10*time.Second)
	c.CallbackTimeout = cmp.Or(c.CallbackTimeout, 4*time.Second)
	c.ReadyTimeout = cmp.Or(c.ReadyTimeout, 2*time.Second)
	c.CallbackBurst = cmp.Or(c.CallbackBurst, int(math.Ceil(c.CallbackRate)))
	c.ProviderBurst = cmp.Or(c.ProviderBurst, int(math.Ceil(c.ProviderRate)))
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Metrics == nil {
		c.Metrics = NewMetrics()
	}
	if c.Watched == nil {
		c.Watched = func(domain.ProjectID) {}
	}
	return c
}

func (c Config) hasTasks() bool  { return c.Submit != nil }
func (c Config) hasAssets() bool { return c.Media != nil }
func (c Config) hasDesk() bool   { return c.Resolve != nil }

// Validate joins every fault.
func (c Config) Validate() error {
	var faults []error
	check := func(ok bool, text string) {
		if !ok {
			faults = append(faults, errors.New("httpapi: "+text))
		}
	}
	check(!c.hasTasks() || (c.Cancel != nil && c.Retry != nil && c.Reader != nil), "Submit needs Cancel, Retry and Reader")
	check(!c.hasAssets() || (c.Reader != nil && len(c.SigningKeys) > 0), "Media needs Reader and SigningKeys")
	check(c.Events == nil || c.Reader != nil, "Events needs Reader")
	check(!c.hasDesk() || (c.Inbox != nil && c.Requeue != nil && c.Desk != nil && c.Sweeps != nil && c.Outbox != nil && c.Durations != nil), "Resolve needs Inbox, Requeue, Desk, Sweeps, Outbox and Durations")
	check(c.Access != nil || (!c.hasTasks() && !c.hasAssets() && !c.hasDesk() && c.Accounts == nil && c.Events == nil), "Access is missing")
	for _, key := range c.SigningKeys {
		check(len(key) >= 16, "a signing key needs at least 16 bytes")
	}
	check(c.MaxBody >= 0 && c.MaxCallback >= 0 && c.MaxHeaders >= 0 && c.BodyTimeout >= 0 && c.RequestTimeout >= 0 && c.CallbackTimeout >= 0 && c.ReadyTimeout >= 0 && c.SignedFor >= 0 && c.CallbackRate >= 0 && c.CallbackBurst >= 0 && c.ProviderRate >= 0 && c.ProviderBurst >= 0, "a limit is negative")
	return errors.Join(faults...)
}
