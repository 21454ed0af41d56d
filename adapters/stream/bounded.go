package stream

import (
	"context"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// boundedEvents ends each read of a store after a time. A stream itself has no end,
// so that without it a database that is there and does not answer would keep every
// client waiting without a word.
type boundedEvents struct {
	events ports.Events
	limit  time.Duration
}

var _ ports.Events = boundedEvents{}

// bounded calls f with a context of its own. Its end is the store's fault, and not
// that of the caller's context.
func bounded[T any](ctx context.Context, limit time.Duration, f func(context.Context) (T, error)) (T, error) {
	own, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	v, err := f(own)
	if err != nil && own.Err() != nil && ctx.Err() == nil {
		return v, fmt.Errorf("%w: no answer within %v: %w", ports.ErrUnavailable, limit, err)
	}
	return v, err
}

// Head implements [ports.Events].
func (b boundedEvents) Head(ctx context.Context, project domain.ProjectID) (domain.Cursor, error) {
	return bounded(ctx, b.limit, func(ctx context.Context) (domain.Cursor, error) { return b.events.Head(ctx, project) })
}

// After implements [ports.Events].
func (b boundedEvents) After(ctx context.Context, project domain.ProjectID, cursor domain.Cursor, limit int) (ports.EventPage, error) {
	return bounded(ctx, b.limit, func(ctx context.Context) (ports.EventPage, error) {
		return b.events.After(ctx, project, cursor, limit)
	})
}

// Since implements [ports.Events].
func (b boundedEvents) Since(ctx context.Context, at time.Time, limit int) ([]ports.StoredEvent, error) {
	return bounded(ctx, b.limit, func(ctx context.Context) ([]ports.StoredEvent, error) { return b.events.Since(ctx, at, limit) })
}

// Heads implements [ports.Events].
func (b boundedEvents) Heads(ctx context.Context, projects []domain.ProjectID) (map[domain.ProjectID]int64, error) {
	return bounded(ctx, b.limit, func(ctx context.Context) (map[domain.ProjectID]int64, error) { return b.events.Heads(ctx, projects) })
}
