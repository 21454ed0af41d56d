package app

import (
	"errors"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Env is what every use case gets from the process that it runs in. The zero
// value of a field means its default; only NewID has none.
type Env struct {
	// Now is the clock; time.Now when nil.
	Now func() time.Time
	// Jitter draws the factor of an interval, from 0.8 to 1.2; uniform when nil.
	Jitter func() float64
	// NewID draws a UUIDv7. Required: the standard library has no such thing.
	NewID func() domain.ID
	// Logger is where a loop reports what it swallows; silent when nil.
	Logger *slog.Logger
	// Metrics counts; nothing is counted when nil.
	Metrics Metrics
	// Bells wake the roles of this process early; none ring when zero.
	Bells Bells
	// Webhooks watches how the ends of jobs are learned; nothing is watched when
	// nil.
	Webhooks *WebhookWatch
	// StopGrace, when set, bounds how long the work in hand goes on after the end
	// of a Run's context, below what the role itself allows: the process has to end.
	// A vendor's create that is cut off counts as unknown.
	StopGrace time.Duration
}

// WithDefaults returns a copy with every zero field set, but for NewID.
func (e Env) WithDefaults() Env {
	if e.Now == nil {
		e.Now = time.Now
	}
	if e.Jitter == nil {
		e.Jitter = func() float64 { return 0.8 + 0.4*rand.Float64() }
	}
	if e.Logger == nil {
		e.Logger = slog.New(slog.DiscardHandler)
	}
	if e.Metrics == nil {
		e.Metrics = NopMetrics{}
	}
	return e
}

// Validate reports what is missing.
func (e Env) Validate() error {
	if e.NewID == nil {
		return errors.New("env: NewID is required")
	}
	return nil
}

// required reports the named dependencies that are nil.
func required(use string, deps map[string]bool) error {
	var errs []error
	for name, present := range deps {
		if !present {
			errs = append(errs, errors.New(use+": "+name+" is required"))
		}
	}
	return errors.Join(errs...)
}
