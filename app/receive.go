package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Errors of [Receive.Deliver], beside *ports.VerifyError, [ErrOverloaded] and
// ports.ErrUnavailable.
var (
	// ErrUnknownProvider: no such vendor is configured.
	ErrUnknownProvider = errors.New("unknown provider")
	// ErrUnknownToken: the URL is none of ours: the token was not made by us, or
	// the vendor has no such account.
	ErrUnknownToken = errors.New("unknown callback address")
)

// ReceiveConfig bounds the group commit.
type ReceiveConfig struct {
	// Flushers is how many transactions run at once; 2 when zero.
	Flushers int
	// Gather is how long a flusher that has just committed waits for more when little
	// waits for it; 1 ms when zero. A transaction has a price of its own, so that under
	// load few and large ones leave more of the machine to the other roles; a delivery
	// that finds a free flusher goes at once.
	Gather time.Duration
	// Batch is how many deliveries one transaction takes at most; 256 when zero.
	Batch int
	// Queue is how many deliveries may wait; 4096 when zero. Beyond it Deliver
	// gives ErrOverloaded, and the vendor comes again.
	Queue int
	// QueueTime is how long a delivery may wait for its flush, going by what the last
	// ones took; 2 s when zero. One that would wait longer gets ErrOverloaded, too: a
	// slow database makes the queue short, since a vendor that has given up does not
	// learn of the commit.
	QueueTime time.Duration
	// FlushTimeout bounds one transaction; 10 s when zero.
	FlushTimeout time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c ReceiveConfig) WithDefaults() ReceiveConfig {
	c.Flushers = cmp.Or(c.Flushers, 2)
	c.Gather = cmp.Or(c.Gather, time.Millisecond)
	c.Batch = cmp.Or(c.Batch, 256)
	c.Queue = cmp.Or(c.Queue, 4096)
	c.QueueTime = cmp.Or(c.QueueTime, 2*time.Second)
	c.FlushTimeout = cmp.Or(c.FlushTimeout, 10*time.Second)
	return c
}

// Validate joins every fault.
func (c ReceiveConfig) Validate() error {
	var errs []error
	if c.Flushers < 0 || c.Gather < 0 || c.Batch < 0 || c.Queue < 0 || c.QueueTime < 0 || c.FlushTimeout < 0 {
		errs = append(errs, errors.New("receive: a limit is negative"))
	}
	if d := c.WithDefaults(); d.Queue < d.Batch {
		errs = append(errs, errors.New("receive: queue is smaller than one batch"))
	}
	return errors.Join(errs...)
}

// ReceiveDeps are what [Receive] works with; all are required.
type ReceiveDeps struct {
	Env
	Inbox   ports.Inbox
	Vendors Vendors
	Tokens  *CallbackTokens
}

// Receive takes webhooks: it proves a delivery on its raw bytes, stores it and
// answers after the commit (I1). It decides nothing about a task.
type Receive struct {
	deps  ReceiveDeps
	cfg   ReceiveConfig
	batch batcher[ports.InboxRow, ports.ReceiveResult]
}

// NewReceive checks what it is given.
func NewReceive(deps ReceiveDeps, cfg ReceiveConfig) (*Receive, error) {
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("receive", map[string]bool{
		"Inbox": deps.Inbox != nil, "Vendors": deps.Vendors.providers != nil, "Tokens": deps.Tokens != nil,
	}))
	if err != nil {
		return nil, err
	}
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	r := &Receive{deps: deps, cfg: cfg}
	r.batch = batcher[ports.InboxRow, ports.ReceiveResult]{
		flush: r.flush, flushers: cfg.Flushers, size: cfg.Batch, depth: cfg.Queue, timeout: cfg.FlushTimeout,
		patience: cfg.QueueTime, now: deps.Now, between: cfg.Gather,
	}
	return r, nil
}

// DeliverCommand is a delivery as it came. Exactly one of Token and Account is
// set: which URL it came to.
type DeliverCommand struct {
	Provider string
	// Token is that of /callbacks/{provider}/{token}.
	Token string
	// Account is that of /callbacks/{provider}/a/{account}.
	Account string
	Header  http.Header
	// Body is the raw body, not larger than the gateway's limit. It must not be
	// changed afterwards.
	Body []byte
	// Path and Query are those of the URL that was called, undecoded.
	Path  string
	Query string
	// TraceID ties the request together; drawn when zero.
	TraceID domain.TraceID
}

// Ack says that a delivery is stored: the vendor gets its 2xx.
type Ack struct {
	// Duplicate: the same delivery had been stored before.
	Duplicate bool
	// Differs: it had, with another payload; a conflict is kept for a person.
	Differs bool
}

// Deliver verifies and stores one delivery and returns after the commit.
//
// Errors: [ErrUnknownProvider] and [ErrUnknownToken] (404), *ports.VerifyError
// (401, without detail), [ErrOverloaded] and ports.ErrUnavailable (503: nothing is
// known to be stored), another error for a row that the store refuses. The end of
// ctx ends the wait, never the commit.
func (r *Receive) Deliver(ctx context.Context, cmd DeliverCommand) (Ack, error) {
	row, err := r.accept(cmd)
	if err != nil {
		r.count(cmd.Provider, err)
		return Ack{}, err
	}
	began := r.deps.Now()
	res, err := r.batch.do(ctx, row)
	if err == nil {
		err = res.Err
	}
	if err != nil {
		r.count(cmd.Provider, err)
		return Ack{}, fmt.Errorf("store delivery: %w", err)
	}
	r.deps.Metrics.Observe(MetricDeliverTime, r.deps.Now().Sub(began).Seconds())
	r.deps.Metrics.Add(MetricDeliveries, 1, cmd.Provider, stored(res))
	return Ack{Duplicate: res.Duplicate, Differs: res.Differs}, nil
}

// Close waits for the flushes that are under way, or for the end of the context.
// Call it after the listener has stopped taking requests.
func (r *Receive) Close(ctx context.Context) error { return r.batch.drain(ctx) }

// accept verifies a delivery unless there is no room for it: under an overload a
// signature that is checked for nothing takes time from those that can be stored.
func (r *Receive) accept(cmd DeliverCommand) (ports.InboxRow, error) {
	if _, known := r.deps.Vendors.Vendor(cmd.Provider); known && r.batch.full() {
		return ports.InboxRow{}, fmt.Errorf("store delivery: %w", ErrOverloaded)
	}
	return r.verify(cmd)
}

// verify turns a delivery into an inbox row, or refuses it.
func (r *Receive) verify(cmd DeliverCommand) (ports.InboxRow, error) {
	vendor, ok := r.deps.Vendors.Vendor(cmd.Provider)
	if !ok {
		return ports.InboxRow{}, ErrUnknownProvider
	}
	accounts, err := r.address(cmd)
	if err != nil {
		return ports.InboxRow{}, err
	}
	now := r.deps.Now()
	d, err := vendor.Verify(ports.VerifyRequest{
		Header: cmd.Header, Body: cmd.Body, Path: cmd.Path, Query: cmd.Query,
		Token: cmd.Token, Accounts: accounts, Now: now,
	})
	if errors.Is(err, ports.ErrUnavailable) {
		r.deps.Logger.Error("a delivery could not be verified", "provider", cmd.Provider, "error", err)
	}
	if err != nil {
		return ports.InboxRow{}, verifyError(err)
	}
	return r.row(cmd, d, now), nil
}

// address checks the URL before any signature: the token proves itself, an
// account must exist. Either is refused without a look at the database.
func (r *Receive) address(cmd DeliverCommand) ([]ports.Account, error) {
	switch {
	case cmd.Token != "" && cmd.Account == "":
		if _, ours := r.deps.Tokens.Check(cmd.Token); ours {
			return r.deps.Vendors.Accounts(cmd.Provider), nil
		}
	case cmd.Account != "" && cmd.Token == "":
		if account, ok := r.deps.Vendors.Account(cmd.Provider, cmd.Account); ok {
			return []ports.Account{account}, nil
		}
	}
	return nil, ErrUnknownToken
}

func (r *Receive) row(cmd DeliverCommand, d ports.Delivery, now time.Time) ports.InboxRow {
	hash := sha256.Sum256(cmd.Body)
	row := ports.InboxRow{
		Provider: cmd.Provider, AccountID: cmp.Or(d.AccountID, cmd.Account),
		ProviderEventID: storable(d.ProviderEventID), ProviderTaskID: storable(d.ProviderTaskID), ClientRequestID: storable(d.ClientRequestID),
		Trust: d.Trust, ProviderOccurredAt: d.ProviderOccurredAt, ReceivedAt: now, KeyVersion: d.KeyVersion,
		PayloadHash: hash[:], Payload: cmd.Body, TraceID: cmd.TraceID, Status: ports.InboxPending, NextRetryAt: now,
	}
	if row.TraceID.IsZero() {
		row.TraceID = domain.TraceID{ID: r.deps.NewID()}
	}
	if cmd.Token != "" {
		row.TokenHash = TokenHash(cmd.Token)
	}
	row.DedupKey = dedupKey(row, cmp.Or(d.Identity, hex.EncodeToString(hash[:])))
	return row
}

// dedupKey is account | trust | token if bearer | identity. Trust belongs to it,
// so that a weaker repetition cannot take the place of a delivery that may change
// state. A bearer delivery proves only its URL, so that its identity counts
// within that URL alone.
func dedupKey(row ports.InboxRow, identity string) string {
	token := ""
	if row.Trust == domain.TrustBearer {
		token = hex.EncodeToString(row.TokenHash)
	}
	return strings.Join([]string{row.AccountID, string(row.Trust), token, storable(identity)}, "|")
}

// maxIdentity is the longest text from outside that becomes part of a key.
const maxIdentity = 200

// storable returns text from outside as it is when a database can keep and index
// it, and its hash otherwise: it then still equals itself and nothing else.
func storable(s string) string {
	if len(s) <= maxIdentity && clean(s) {
		return s
	}
	sum := sha256.Sum256([]byte(s))
	return "sha256:" + hex.EncodeToString(sum[:])
}

// verifyError keeps an adapter from answering with anything but a refusal or a
// fault of ours.
func verifyError(err error) error {
	var refused *ports.VerifyError
	if errors.As(err, &refused) || errors.Is(err, ports.ErrUnavailable) {
		return err
	}
	return &ports.VerifyError{Reason: "unverifiable"}
}

// flush stores one batch in the order of its keys: two flushers that insert
// common keys in different orders would deadlock.
func (r *Receive) flush(ctx context.Context, batch []ports.InboxRow) ([]ports.ReceiveResult, error) {
	order := make([]int, len(batch))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(batch[a].Provider, batch[b].Provider), cmp.Compare(batch[a].DedupKey, batch[b].DedupKey))
	})
	sorted := make([]ports.InboxRow, len(batch))
	for i, at := range order {
		sorted[i] = batch[at]
	}
	results, err := r.deps.Inbox.Receive(ctx, sorted)
	r.deps.Metrics.Observe(MetricInboxBatch, float64(len(batch)))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ports.ErrUnavailable, err)
	}
	if len(results) != len(batch) {
		return nil, fmt.Errorf("%w: the inbox gave %d results for %d rows", ports.ErrUnavailable, len(results), len(batch))
	}
	r.deps.Bells.Process.Ring()
	out := make([]ports.ReceiveResult, len(batch))
	for i, at := range order {
		out[at] = results[i]
	}
	return out, nil
}

func (r *Receive) count(provider string, err error) {
	var refused *ports.VerifyError
	outcome := "error"
	switch {
	case errors.Is(err, ErrUnknownProvider):
		provider, outcome = "unknown", "unknown_provider" // text from outside is no label
	case errors.Is(err, ErrUnknownToken):
		outcome = "unknown_address"
	case errors.As(err, &refused):
		outcome = refused.Reason
	case errors.Is(err, ErrOverloaded):
		outcome = "overloaded"
	case errors.Is(err, ports.ErrUnavailable), errors.Is(err, context.DeadlineExceeded): // the deadline is ours
		outcome = "unavailable"
	case errors.Is(err, context.Canceled):
		outcome = "hung_up"
	}
	r.deps.Metrics.Add(MetricDeliveries, 1, provider, outcome)
}

func stored(res ports.ReceiveResult) string {
	switch {
	case res.Differs:
		return "differs"
	case res.Duplicate:
		return "duplicate"
	default:
		return "stored"
	}
}
