package stream

import "sync/atomic"

// counters count since the start.
type counters struct {
	opened, refused, written, conflated atomic.Int64
	hints, deltas, found, reads         atomic.Int64
	readErrors, watchErrors, resets     atomic.Int64
	slow, writeErrors                   atomic.Int64
}

// Stats is a moment of the hub. Connections and Projects are gauges, the rest
// counts since the start.
type Stats struct {
	Connections int
	Projects    int
	// Opened and Refused count clients, Written the events written to them.
	Opened, Refused, Written int64
	// Conflated counts progress that a slow client never saw, Slow the clients
	// that were told to move for it, WriteErrors those that were cut.
	Conflated, Slow, WriteErrors int64
	// Hints counts events from the notifier, Deltas the delta queries, Found the
	// events that only a delta query brought.
	Hints, Deltas, Found int64
	// Reads counts reads of the store, ReadErrors those that failed, WatchErrors
	// subscriptions that were not confirmed, Resets histories that were replaced.
	Reads, ReadErrors, WatchErrors, Resets int64
}

// Stats returns the figures of now.
func (h *Hub) Stats() Stats {
	h.mu.RLock()
	connections, projects := h.clients, len(h.projects)
	h.mu.RUnlock()
	c := &h.stats
	return Stats{
		Connections: connections, Projects: projects,
		Opened: c.opened.Load(), Refused: c.refused.Load(), Written: c.written.Load(),
		Conflated: c.conflated.Load(), Slow: c.slow.Load(), WriteErrors: c.writeErrors.Load(),
		Hints: c.hints.Load(), Deltas: c.deltas.Load(), Found: c.found.Load(),
		Reads: c.reads.Load(), ReadErrors: c.readErrors.Load(), WatchErrors: c.watchErrors.Load(), Resets: c.resets.Load(),
	}
}
