package ports

import (
	"context"

	"github.com/aivedio/aivedio/domain"
)

// Notifier carries hints to the gateways. Any of them may be lost, repeated or
// late: a hint saves time and proves nothing.
type Notifier interface {
	// Notify publishes events to whoever watches their projects. It tries once,
	// within the context.
	Notify(ctx context.Context, events []StoredEvent) error
	// Listen starts a listener of one gateway.
	Listen(ctx context.Context, handler NotifyHandler) (Listener, error)
	// Close ends all listeners.
	Close() error
}

// NotifyHandler receives hints. Its methods are called one at a time and must
// not block.
type NotifyHandler interface {
	// Events delivers hints in the order in which they came.
	Events(events []StoredEvent)
	// Gap says that hints may have been lost: at every new connection or
	// subscription to the service behind.
	Gap()
}

// Listener is a gateway's ear.
type Listener interface {
	// Watch returns once the subscription is confirmed: hints of events committed
	// and notified after that are delivered, unless lost. Watching twice is one
	// watch.
	Watch(ctx context.Context, project domain.ProjectID) error
	// Unwatch ends it; late hints may still come.
	Unwatch(project domain.ProjectID)
	// Healthy reports whether the service behind is connected; while it is not,
	// the gateway reads more often.
	Healthy() bool
	// Close ends the listener.
	Close() error
}
