package stream

import (
	"fmt"
	"time"

	"github.com/aivedio/aivedio/app"
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

// ErrBusy is [app.ErrOverloaded] for a gateway that has no room for another
// client, or is draining.
var ErrBusy = fmt.Errorf("the gateway takes no more streams: %w", app.ErrOverloaded)
