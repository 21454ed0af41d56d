package memory

import (
	"cmp"
	"context"
	"slices"
	"sort"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// stream is the event stream of a project. last is kept apart from the events,
// as a counter is: retention may remove events, damage may set it back.
type stream struct {
	last   int64
	lastAt time.Time
	// events are stored in order; the first may have any number after retention.
	events []ports.StoredEvent
}

// cursor is the position of the newest event.
func (st stream) cursor() domain.Cursor {
	if n := len(st.events); n > 0 {
		return st.events[n-1].Cursor()
	}
	return domain.Cursor{EventID: st.last}
}

// from is the index of the first event after the number.
func (st stream) from(id int64) int {
	return sort.Search(len(st.events), func(i int) bool { return st.events[i].EventID > id })
}

// appendEvent numbers an event, stores it and puts it into the outbox.
func (x *tx) appendEvent(e domain.Event) ports.StoredEvent {
	st := x.streams[e.ProjectID]
	at := x.at.Truncate(time.Millisecond)
	if at.Before(st.lastAt) {
		at = st.lastAt
	}
	st.last, st.lastAt = st.last+1, at
	stored := ports.StoredEvent{Event: e, EventID: st.last, CreatedAt: at}
	st.events = append(st.events, stored)
	put(x, x.streams, e.ProjectID, st)
	id := x.next()
	put(x, x.outbox, id, ports.OutboxRow{ID: id, Shard: shardOf(e.ProjectID), Event: stored})
	return stored
}

// Head implements ports.Events.
func (s *Store) Head(ctx context.Context, project domain.ProjectID) (domain.Cursor, error) {
	var head domain.Cursor
	err := s.read(ctx, func() error {
		head = s.streams[project].cursor()
		return nil
	})
	return head, err
}

// After implements ports.Events.
func (s *Store) After(ctx context.Context, project domain.ProjectID, cursor domain.Cursor, limit int) (ports.EventPage, error) {
	var page ports.EventPage
	err := s.read(ctx, func() error {
		st := s.streams[project]
		page.Head = st.cursor()
		if page.Reset = st.check(cursor); page.Reset == "" {
			rest := st.events[st.from(cursor.EventID):]
			page.Events = slices.Clone(rest[:min(max(limit, 0), len(rest))])
		}
		return nil
	})
	return page, err
}

// check says whether a reader may go on from the cursor.
func (st stream) check(c domain.Cursor) ports.ResetReason {
	switch {
	case c.EventID < 0:
		return ports.ResetBad
	case c.EventID > st.last:
		return ports.ResetFuture
	case c.EventID == 0 && st.last == 0:
		return ""
	case c.EventID == 0: // the beginning has no event of its own: the first has to be there
		if len(st.events) == 0 || st.events[0].EventID != 1 {
			return ports.ResetExpired
		}
		return ""
	}
	i := st.from(c.EventID - 1)
	if i == len(st.events) || st.events[i].EventID != c.EventID {
		return ports.ResetExpired
	}
	if c.Tag != "" && c.Tag != st.events[i].Cursor().Tag {
		return ports.ResetTag
	}
	return ""
}

// Since implements ports.Events.
func (s *Store) Since(ctx context.Context, at time.Time, limit int) ([]ports.StoredEvent, error) {
	var found []ports.StoredEvent
	err := s.read(ctx, func() error {
		for _, st := range s.streams {
			i := sort.Search(len(st.events), func(i int) bool { return !st.events[i].CreatedAt.Before(at) })
			found = append(found, st.events[i:]...)
		}
		return nil
	})
	slices.SortFunc(found, func(a, b ports.StoredEvent) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), slices.Compare(a.ProjectID.ID[:], b.ProjectID.ID[:]), cmp.Compare(a.EventID, b.EventID))
	})
	return found[:min(max(limit, 0), len(found))], err
}

// Heads implements ports.Events.
func (s *Store) Heads(ctx context.Context, projects []domain.ProjectID) (map[domain.ProjectID]int64, error) {
	heads := map[domain.ProjectID]int64{}
	err := s.read(ctx, func() error {
		for _, p := range projects {
			if last := s.streams[p].last; last > 0 {
				heads[p] = last
			}
		}
		return nil
	})
	return heads, err
}
