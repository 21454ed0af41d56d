package ports

import (
	"context"
	"errors"
)

// ErrRefused marks a failure that is the rows' own fault: the bus works and will
// not take them. Every other failure is the bus's and passes with its outage.
var ErrRefused = errors.New("refused by the bus")

// Bus carries committed events to their consumers, at least once. Events of one
// project arrive in order as long as the number of queues is stable; any suffix
// may be repeated. Consumers drop what they have seen and never wait for it.
type Bus interface {
	// Publish sends the rows and returns after the bus has stored them durably.
	// Rows of one project are in order; the order is kept. An error means that any
	// part may have been sent: the caller sends all again. FailedProjects of a
	// *PublishError narrows it down.
	Publish(ctx context.Context, rows []OutboxRow) error
	// Subscribe calls the handler with batches, sorted by (project, event), for
	// each group at least once per event. An error, or a panic, of the handler
	// brings the batch back later. A new group starts with events published after
	// its first subscription. Close of the Subscription waits for running handlers.
	Subscribe(ctx context.Context, group string, handler func(context.Context, []StoredEvent) error) (Subscription, error)
	// Close ends the bus after all subscriptions.
	Close() error
}

// Subscription is a running consumer.
type Subscription interface {
	// Close stops taking batches and returns after the running handler.
	Close() error
}

// PublishError says which projects' rows were not all stored.
type PublishError struct {
	// FailedProjects holds an error per project, keyed by ProjectID.String(); rows
	// of all others are stored. One that is ErrRefused is the project's own fault.
	FailedProjects map[string]error
	Err            error
}

// Error names the cause.
func (e *PublishError) Error() string { return "publish: " + e.Err.Error() }

// Unwrap returns the cause.
func (e *PublishError) Unwrap() error { return e.Err }
