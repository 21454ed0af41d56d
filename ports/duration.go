package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Durations learns how long jobs of each model take, and tells.
type Durations interface {
	// LearnDurations takes P50 and P95 of each model anew, from its newest successes
	// (at most sample of each), and returns how many models it knows. It may run in
	// several processes at once.
	LearnDurations(ctx context.Context, now time.Time, sample int) (int, error)
	// Durations lists what is known, by provider and model.
	Durations(ctx context.Context) ([]ModelDuration, error)
}

// ModelDuration is how long jobs of a model take from the accepted submit to the
// end that was seen.
type ModelDuration struct {
	Provider string
	Model    string
	domain.Typical
	// Samples is how many jobs the figures are from.
	Samples   int
	UpdatedAt time.Time
}

// Watches remembers which projects somebody looks at. It only orders work.
type Watches interface {
	// Watch notes projects as watched until then; a later time that is known
	// already stays. Attempts in flight of projects that were not watched move to
	// the first queue of polls.
	Watch(ctx context.Context, params WatchParams) error
}

// WatchParams is one report of a gateway.
type WatchParams struct {
	Projects []domain.ProjectID
	Now      time.Time
	Until    time.Time
}
