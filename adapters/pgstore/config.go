package pgstore

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

const day = 24 * time.Hour

// Config is what the store needs. Zero values stand for the defaults that the
// fields name.
type Config struct {
	// URL of the primary, postgres://…; required.
	URL string
	// CallbackConns bounds the pool that only Receive uses, so that a busy
	// processor cannot make vendors wait; default 4.
	CallbackConns int32
	// Conns bounds the pool of everything else; default 12.
	Conns int32

	// LockTimeout, StatementTimeout and IdleTimeout (idle in transaction) are set
	// on every connection; defaults 2 s, 5 s and 5 s. Together they keep every
	// transaction below ten seconds.
	LockTimeout      time.Duration
	StatementTimeout time.Duration
	IdleTimeout      time.Duration

	// Keyring encrypts payloads of deliveries; required.
	Keyring Keyring
	// InboxRetention is how long a digested delivery is kept, and with it the key by
	// which a repetition is known; default 7 days. Vendors repeat a delivery for up
	// to three days: below that one could be digested twice, which the state machine
	// then refuses.
	InboxRetention time.Duration
	// PayloadRetention is how long a digested delivery keeps its payload, at most
	// InboxRetention; default 3 days. Those that are not done keep theirs.
	PayloadRetention time.Duration
	// DeadRetention is how long a dead letter is kept; default 30 days.
	DeadRetention time.Duration
	// DeskRetention is how long closed conflicts and cases are kept; default 365
	// days. AuditRetention is the same of the audit log; default 0, for ever.
	DeskRetention  time.Duration
	AuditRetention time.Duration
	// EventRetention is how long events and observations are kept, in whole days;
	// default 90 days. Readers further behind get a reset.
	EventRetention time.Duration

	// Now is the clock of decisions and events; default time.Now.
	Now func() time.Time
	// Decide is the state machine; default domain.Apply. It runs while rows are
	// locked and gets no context, so that it cannot call anybody.
	Decide func(domain.Task, domain.Attempt, domain.Input, time.Time) (domain.Decision, error)
	// NewID names operations; default a UUIDv7.
	NewID func() domain.ID
	// Logger gets what the store heals by itself; default none.
	Logger *slog.Logger

	// Failpoint, when set, is called at the points of each transaction; its error
	// rolls the transaction back and is returned as it is. For tests.
	Failpoint func(ctx context.Context, point Point) error
}

// Point is a moment of a transaction at which a test may break it.
type Point string

// The points, in their order.
const (
	// PointClaimed: deliveries were taken from the queue.
	PointClaimed Point = "claimed"
	// PointLocked: tasks, attempts and operations are locked.
	PointLocked Point = "locked"
	// PointWritten: everything is written, streams are locked, COMMIT is next.
	PointWritten Point = "written"
)

// WithDefaults returns a copy whose zero values are filled.
func (c Config) WithDefaults() Config {
	c.CallbackConns = orDefault(c.CallbackConns, 4)
	c.Conns = orDefault(c.Conns, 12)
	c.LockTimeout = orDefault(c.LockTimeout, 2*time.Second)
	c.StatementTimeout = orDefault(c.StatementTimeout, 5*time.Second)
	c.IdleTimeout = orDefault(c.IdleTimeout, 5*time.Second)
	c.InboxRetention = orDefault(c.InboxRetention, 7*day)
	c.PayloadRetention = orDefault(c.PayloadRetention, min(3*day, c.InboxRetention))
	c.DeadRetention = orDefault(c.DeadRetention, 30*day)
	c.DeskRetention = orDefault(c.DeskRetention, 365*day)
	c.EventRetention = orDefault(c.EventRetention, 90*day)
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Decide == nil {
		c.Decide = domain.Apply
	}
	if c.NewID == nil {
		c.NewID = wire.NewID
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

// Validate reports every fault of a configuration with its defaults.
func (c Config) Validate() error {
	var faults []error
	if c.URL == "" {
		faults = append(faults, errors.New("database URL is missing"))
	}
	if c.Conns < 2 || c.CallbackConns < 1 {
		faults = append(faults, fmt.Errorf("pools of %d and %d connections: at least 2 and 1 are needed", c.Conns, c.CallbackConns))
	}
	if c.LockTimeout >= c.StatementTimeout {
		faults = append(faults, fmt.Errorf("lock timeout %v must be below the statement timeout %v", c.LockTimeout, c.StatementTimeout))
	}
	if c.StatementTimeout >= 10*time.Second || c.IdleTimeout >= 10*time.Second {
		faults = append(faults, fmt.Errorf("statement timeout %v and idle timeout %v must be below 10 s", c.StatementTimeout, c.IdleTimeout))
	}
	if c.EventRetention < day || c.InboxRetention < time.Hour {
		faults = append(faults, fmt.Errorf("retention of events %v and deliveries %v: at least a day and an hour are needed", c.EventRetention, c.InboxRetention))
	}
	if c.PayloadRetention < 0 || c.PayloadRetention > c.InboxRetention {
		faults = append(faults, fmt.Errorf("retention of payloads %v: it cannot be longer than that of deliveries, %v", c.PayloadRetention, c.InboxRetention))
	}
	if c.DeadRetention < day || c.DeskRetention < day || c.AuditRetention < 0 || (c.AuditRetention > 0 && c.AuditRetention < day) {
		faults = append(faults, fmt.Errorf("retention of dead letters %v, of the desk %v and of the audit log %v: at least a day is needed, or 0 to keep the audit log for ever", c.DeadRetention, c.DeskRetention, c.AuditRetention))
	}
	faults = append(faults, c.Keyring.Validate())
	return errors.Join(faults...)
}

func orDefault[T comparable](v, def T) T {
	var zero T
	if v == zero {
		return def
	}
	return v
}
