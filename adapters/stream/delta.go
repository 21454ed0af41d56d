package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
)

const (
	// deltaPage and deltaPages bound one delta query.
	deltaPage  = 2000
	deltaPages = 16
	// headParts is the number of rounds in which every watched head is compared
	// once: 3 rounds of 5 s keep a lost hint below 16 s.
	headParts = 3
	// headChunk bounds the projects of one comparison.
	headChunk = 1000
	// gapRest is the least time between two rounds.
	gapRest = 250 * time.Millisecond
)

// Run listens to the notifier, finds what it lost and ends with the context; it
// returns after all its goroutines. Streams still open are cut: [Hub.Drain]
// first. Call it once.
func (h *Hub) Run(ctx context.Context) error {
	defer h.finish()
	end := context.AfterFunc(ctx, h.stop)
	defer end()
	h.goes(h.listen)
	for h.rest(ctx) {
		h.tend()
		if err := h.delta(h.ctx); err != nil && ctx.Err() == nil {
			h.stats.readErrors.Add(1)
			h.cfg.Logger.Warn("stream: delta query failed, the next round repeats it", "error", err)
		}
	}
	return nil
}

// rest waits for the next round, or for a gap in the hints, but never less than
// gapRest, since a notifier reports a gap at each new subscription. It is false
// at the end of the context.
func (h *Hub) rest(ctx context.Context) bool {
	pause := h.cfg.spread(h.pause(), 0.1)
	soon := time.NewTimer(min(gapRest, pause))
	defer soon.Stop()
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	case <-h.gap:
	}
	select {
	case <-ctx.Done():
		return false
	case <-soon.C:
		return true
	}
}

// pause is the time to the next round.
func (h *Hub) pause() time.Duration {
	if l := h.currentListener(); l == nil || !l.Healthy() {
		return h.cfg.DeltaUnhealthy
	}
	return h.cfg.Delta
}

func (h *Hub) finish() {
	h.stop()
	h.mu.Lock()
	h.stopped = true
	listener := h.listener
	h.mu.Unlock()
	if listener != nil {
		if err := listener.Close(); err != nil {
			h.cfg.Logger.Warn("stream: close the listener", "error", err)
		}
	}
	h.work.Wait()
}

// delta compares a part of the heads and offers the newest events by time. Both
// only feed [project.behind] and [project.offer]: what is known is dropped there.
// Neither waits for the other to pass: the heads are the guarantee, and the events
// by time may be too many for the store.
func (h *Hub) delta(ctx context.Context) error {
	watched := h.watchedProjects()
	if len(watched) == 0 {
		h.mark = time.Time{}
		return nil
	}
	h.stats.deltas.Add(1)
	return errors.Join(h.heads(ctx, watched), h.since(ctx))
}

func (h *Hub) since(ctx context.Context) error {
	if h.mark.IsZero() {
		h.mark = h.cfg.Now()
	}
	at := h.mark.Add(-h.cfg.DeltaOverlap)
	for range deltaPages {
		events, err := h.cfg.Events.Since(ctx, at, deltaPage)
		if err != nil {
			return fmt.Errorf("delta query: %w", err)
		}
		h.deliver(events, func() { h.stats.found.Add(1) })
		if len(events) == 0 {
			return nil
		}
		newest := events[len(events)-1].CreatedAt
		if newest.After(h.mark) {
			h.mark = newest
		}
		if len(events) < deltaPage || !newest.After(at) {
			return nil // a page of one instant goes no further; the heads tell
		}
		at = newest
	}
	// More than a round can read. Time goes on all the same, or every round would
	// read the same beginning; the heads find what is left.
	if now := h.cfg.Now(); now.After(h.mark) {
		h.mark = now
	}
	return nil
}

// heads compares the part of the watched projects whose turn it is. It finds
// what the time window cannot: clocks that went back, and a restored database.
func (h *Hub) heads(ctx context.Context, watched []*project) error {
	h.round++
	turn := byte(h.round % headParts)
	byID := make(map[domain.ProjectID]*project)
	chunk := make([]domain.ProjectID, 0, headChunk)
	compare := func() error {
		if len(chunk) == 0 {
			return nil
		}
		heads, err := h.cfg.Events.Heads(ctx, chunk)
		if err != nil {
			return fmt.Errorf("compare heads: %w", err)
		}
		for _, id := range chunk {
			byID[id].behind(heads[id])
		}
		chunk = chunk[:0]
		return nil
	}
	for _, p := range watched {
		if p.id.ID[15]%headParts != turn {
			continue
		}
		byID[p.id] = p
		if chunk = append(chunk, p.id); len(chunk) == headChunk {
			if err := compare(); err != nil {
				return err
			}
		}
	}
	return compare()
}

func (h *Hub) watchedProjects() []*project {
	h.mu.RLock()
	defer h.mu.RUnlock()
	watched := make([]*project, 0, len(h.projects))
	for _, p := range h.projects {
		if p.clients > 0 {
			watched = append(watched, p)
		}
	}
	return watched
}
