package ports

import (
	"time"

	"github.com/aivedio/aivedio/domain"
)

// StoredEvent is an event with its place in the project's stream.
type StoredEvent struct {
	domain.Event
	// EventID counts within the project: gap-free, in commit order (I5).
	EventID int64
	// CreatedAt is monotone with EventID; whole milliseconds, UTC.
	CreatedAt time.Time
}

// Cursor is the position right after the event.
func (e StoredEvent) Cursor() domain.Cursor {
	return domain.CursorOf(e.EventID, e.TaskID, e.Version, e.CreatedAt)
}
