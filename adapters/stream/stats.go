package stream

import (
	"maps"
	"slices"
	"sync/atomic"
)

// counters count since the start.
type counters struct {
	opened, refused, written, conflated atomic.Int64
	hints, deltas, found, reads         atomic.Int64
	readErrors, watchErrors, resets     atomic.Int64
	slow, writeErrors                   atomic.Int64
}

// Stats is a moment of the hub. Connections, Projects, Queued and LongestQueue are
// gauges, the rest counts since the start.
type Stats struct {
	Connections int
	Projects    int
	// Queued is how many events wait to be written to all clients together,
	// LongestQueue how many of them wait for one.
	Queued, LongestQueue int
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

// Stats returns the figures of now. It looks at every client.
func (h *Hub) Stats() Stats {
	h.mu.RLock()
	connections, projects := h.clients, slices.Collect(maps.Values(h.projects))
	h.mu.RUnlock()
	queued, longest := 0, 0
	for _, p := range projects {
		p.each(func(s *Subscriber) {
			n := s.waiting()
			queued, longest = queued+n, max(longest, n)
		})
	}
	c := &h.stats
	return Stats{
		Connections: connections, Projects: len(projects), Queued: queued, LongestQueue: longest,
		Opened: c.opened.Load(), Refused: c.refused.Load(), Written: c.written.Load(),
		Conflated: c.conflated.Load(), Slow: c.slow.Load(), WriteErrors: c.writeErrors.Load(),
		Hints: c.hints.Load(), Deltas: c.deltas.Load(), Found: c.found.Load(),
		Reads: c.reads.Load(), ReadErrors: c.readErrors.Load(), WatchErrors: c.watchErrors.Load(), Resets: c.resets.Load(),
	}
}
