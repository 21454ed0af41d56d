package pgstore

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Head implements ports.Events.
func (s *Store) Head(ctx context.Context, project domain.ProjectID) (domain.Cursor, error) {
	head, err := s.head(ctx, project)
	return head, outward("head", err)
}

func (s *Store) head(ctx context.Context, project domain.ProjectID) (domain.Cursor, error) {
	row, err := s.queries().StreamHead(ctx, uid(project.ID))
	if errors.Is(err, pgx.ErrNoRows) {
		return domain.Cursor{}, nil
	}
	return headOf(row), err
}

// After implements ports.Events. The head is read first: events only come after
// it, so a cursor above it is from another history.
func (s *Store) After(ctx context.Context, project domain.ProjectID, cursor domain.Cursor, limit int) (ports.EventPage, error) {
	page, err := s.after(ctx, project, cursor, max(limit, 0))
	return page, outward("read events", err)
}

func (s *Store) after(ctx context.Context, project domain.ProjectID, cursor domain.Cursor, limit int) (ports.EventPage, error) {
	head, err := s.head(ctx, project)
	if err != nil {
		return ports.EventPage{}, err
	}
	page := ports.EventPage{Head: head}
	switch {
	case cursor.EventID < 0:
		page.Reset = ports.ResetBad
		return page, nil
	case cursor.EventID > head.EventID:
		page.Reset = ports.ResetFuture
		return page, nil
	case head.EventID == 0, cursor == head:
		return page, nil // the head proves itself, also when its event is past its retention
	}
	events, err := s.from(ctx, project, cursor.EventID, limit+1)
	if err != nil {
		return page, err
	}
	if page.Reset = check(events, cursor); page.Reset != "" {
		return page, nil
	}
	if cursor.EventID > 0 {
		events = events[1:]
	}
	page.Events = events[:min(limit, len(events))]
	if n := len(page.Events); n > 0 && page.Events[n-1].EventID > head.EventID {
		page.Head = page.Events[n-1].Cursor() // committed after the head was read
	}
	return page, nil
}

// check compares the first row with the cursor that it should be. The beginning has no
// row of its own: there the first event has to come, or some of what its reader has
// never seen is gone.
func check(events []ports.StoredEvent, cursor domain.Cursor) ports.ResetReason {
	switch {
	case len(events) == 0 || events[0].EventID != max(cursor.EventID, 1):
		return ports.ResetExpired
	case cursor.EventID == 0:
		return ""
	case cursor.Tag != "" && cursor.Tag != events[0].Cursor().Tag:
		return ports.ResetTag
	default:
		return ""
	}
}

// windows are how far back a read looks for its first row, before it looks
// everywhere: most readers are minutes behind, and whole days need not be opened
// for them.
var windows = []time.Duration{2 * time.Hour, 48 * time.Hour}

// from reads events from the number on. A window is good when its first row is
// the one that was asked for; else it may only have begun too late.
func (s *Store) from(ctx context.Context, project domain.ProjectID, id int64, limit int) ([]ports.StoredEvent, error) {
	params := dbgen.EventsFromParams{ProjectID: uid(project.ID), EventID: id, MaxRows: int32(limit)}
	first := max(id, 1)
	now := s.now()
	for _, window := range windows {
		params.Since = at(now.Add(-window))
		rows, err := s.queries().EventsFrom(ctx, &params)
		if err != nil {
			return nil, err
		}
		if len(rows) > 0 && rows[0].EventID == first {
			return eventsOf(rows)
		}
	}
	params.Since = at(time.Unix(0, 0))
	rows, err := s.queries().EventsFrom(ctx, &params)
	if err != nil {
		return nil, err
	}
	return eventsOf(rows)
}

// Since implements ports.Events.
func (s *Store) Since(ctx context.Context, since time.Time, limit int) ([]ports.StoredEvent, error) {
	rows, err := s.queries().EventsSince(ctx, at(since), int32(max(limit, 0)))
	if err != nil {
		return nil, outward("read events", err)
	}
	events, err := eventsOf(rows)
	return events, outward("read events", err)
}

// Heads implements ports.Events.
func (s *Store) Heads(ctx context.Context, projects []domain.ProjectID) (map[domain.ProjectID]int64, error) {
	rows, err := s.queries().StreamHeads(ctx, uids(projects, func(p domain.ProjectID) domain.ID { return p.ID }))
	if err != nil {
		return nil, outward("heads", err)
	}
	heads := make(map[domain.ProjectID]int64, len(rows))
	for _, r := range rows {
		heads[domain.ProjectID{ID: idOf(r.ProjectID)}] = r.LastEventID
	}
	return heads, nil
}
