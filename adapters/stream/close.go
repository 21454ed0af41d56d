package stream

import (
	"errors"
	"time"
)

// Close is one way in which the gateway ends a stream. The table below is the
// only list; docs/events.md repeats it.
type Close struct {
	// Event is the name of the last SSE event.
	Event string
	// Reason is a stable word within it.
	Reason string
	// Code is the WebSocket close code of the same ending.
	Code int
	// Reconnect says whether the client may come back with what it has.
	Reconnect bool
	// RetryMin and RetryMax bound the wait that the client is told.
	RetryMin, RetryMax time.Duration
}

// The endings.
var (
	closeFull        = Close{"busy", "connections", 4001, true, 5 * time.Second, 15 * time.Second}
	closeUnavailable = Close{"busy", "unavailable", 4002, true, 2 * time.Second, 8 * time.Second}
	closeDenied      = Close{"unauthorized", "credentials", 4003, false, 30 * time.Second, 60 * time.Second}
	closeDraining    = Close{"move", "draining", 4004, true, 100 * time.Millisecond, 2 * time.Second}
	closeSlow        = Close{"move", "slow", 4005, true, time.Second, 5 * time.Second}
	closeEnd         = Close{"end", "task_terminal", 4006, false, 30 * time.Second, 60 * time.Second}
)

// Closes lists every ending.
func Closes() []Close {
	return []Close{closeFull, closeUnavailable, closeDenied, closeDraining, closeSlow, closeEnd}
}

// Errors of [Hub.ServeEvents]; with each, nothing has been written.
var (
	// ErrBusy: the gateway has no room for another client, or is draining.
	ErrBusy = errors.New("the gateway takes no more streams")
	// ErrUnauthorized ends a live stream when the Auth of a request returns it.
	ErrUnauthorized = errors.New("the right to this stream has ended")
)

// QueryError is a query parameter that cannot be used. Its text is fit for a
// client.
type QueryError struct {
	Field  string
	Detail string
}

// Error names the field and what is wrong with it.
func (e *QueryError) Error() string { return e.Field + ": " + e.Detail }
