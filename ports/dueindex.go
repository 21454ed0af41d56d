package ports

import (
	"context"
	"time"
)

// DueIndex remembers outside of the store at which moments polls will be due, so
// that pollers need not ask the store while none is. It is only a hint: any entry,
// or all of them, may be lost at any time, and the times in the store are the truth.
// Implementations are safe for concurrent use.
type DueIndex interface {
	// Note adds moments. They may be remembered as up to 50 ms later, never earlier.
	Note(ctx context.Context, moments []time.Time) error
	// Next takes the moments up to now away and says what it found.
	Next(ctx context.Context, now time.Time) (DueAnswer, error)
}

// DueAnswer is what a [DueIndex] knows.
type DueAnswer struct {
	// Due: a moment had come.
	Due bool
	// Next is the earliest moment to come; zero when none is known, which says
	// nothing about the store.
	Next time.Time
}
