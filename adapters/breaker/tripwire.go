package breaker

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/aivedio/aivedio/ports"
)

// Config says what is too much. The zero value works.
type Config struct {
	// Consecutive is how many failures in a row trip; 5 when zero.
	Consecutive int
	// Ratio is the part of the calls within Window whose failure trips, from MinCalls
	// calls on; a half of at least 20 when zero.
	Ratio    float64
	MinCalls int
	// Window is how far the ratio looks back; 30 s when zero.
	Window time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c Config) WithDefaults() Config {
	c.Consecutive = cmp.Or(c.Consecutive, 5)
	c.Ratio = cmp.Or(c.Ratio, .5)
	c.MinCalls = cmp.Or(c.MinCalls, 20)
	c.Window = cmp.Or(c.Window, 30*time.Second)
	return c
}

// Validate joins every fault.
func (c Config) Validate() error {
	var faults []error
	if c.Consecutive < 0 || c.MinCalls < 0 || c.Window < 0 {
		faults = append(faults, errors.New("breaker: a limit is negative"))
	}
	if c.Ratio < 0 || c.Ratio > 1 {
		faults = append(faults, errors.New("breaker: ratio must be from 0 to 1"))
	}
	return errors.Join(faults...)
}

// buckets is into how many parts the window slides.
const buckets = 10

// Tripwire is a gobreaker of which only the closed state is used: the moment it
// opens is the trip. Its own open and half-open states know one process only, and
// give way to those that all processes share.
type Tripwire struct {
	settings gobreaker.Settings

	mu      sync.Mutex
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	tripped bool
}

var _ ports.Tripwire = (*Tripwire)(nil)

// New returns a tripwire that has counted nothing. It takes the time from the
// system's clock.
func New(cfg Config) *Tripwire {
	cfg = cfg.WithDefaults()
	t := &Tripwire{}
	t.settings = gobreaker.Settings{
		Interval: cfg.Window, BucketPeriod: cfg.Window / buckets,
		ReadyToTrip: func(c gobreaker.Counts) bool {
			return int(c.ConsecutiveFailures) >= cfg.Consecutive ||
				(int(c.Requests) >= cfg.MinCalls && float64(c.TotalFailures) >= cfg.Ratio*float64(c.Requests))
		},
		OnStateChange: func(_ string, _, to gobreaker.State) { t.tripped = to == gobreaker.StateOpen },
	}
	t.breaker = gobreaker.NewTwoStepCircuitBreaker[struct{}](t.settings)
	return t
}

var errFailed = errors.New("failed")

// Report implements [ports.Tripwire]. A call is counted when it has ended, so
// that one which hangs counts once it is known to have failed.
func (t *Tripwire) Report(ok bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	done, err := t.breaker.Allow()
	if err != nil {
		return false // never: an open one is replaced at once
	}
	if ok {
		done(nil)
	} else {
		done(errFailed)
	}
	tripped := t.tripped
	if tripped {
		t.reset()
	}
	return tripped
}

// Reset implements [ports.Tripwire].
func (t *Tripwire) Reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reset()
}

func (t *Tripwire) reset() {
	t.breaker, t.tripped = gobreaker.NewTwoStepCircuitBreaker[struct{}](t.settings), false
}
