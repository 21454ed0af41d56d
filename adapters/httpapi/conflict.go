package httpapi

import (
	"net/http"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// conflictView is a contradiction. Outputs are counted, not shown: they are the
// vendor's URLs.
type conflictView struct {
	ID         int64                `json:"id"`
	Kind       domain.Reason        `json:"kind"`
	TaskID     string               `json:"task_id"`
	AttemptID  string               `json:"attempt_id"`
	Have       domain.AttemptStatus `json:"have"`
	Got        domain.AttemptStatus `json:"got"`
	Outputs    int                  `json:"outputs"`
	OpenedAt   string               `json:"opened_at"`
	ClosedAt   *string              `json:"closed_at"`
	Resolution *string              `json:"resolution"`
}

func conflictOf(row ports.ConflictRow) conflictView {
	v := conflictView{
		ID: row.ID, Kind: row.Kind, TaskID: wire.TaskID(row.TaskID), AttemptID: wire.AttemptID(row.AttemptID),
		Have: row.Have, Got: row.Got, Outputs: len(row.Outputs), OpenedAt: wire.FormatTime(row.OpenedAt), Resolution: present(row.Resolution),
	}
	if row.ClosedAt != nil {
		v.ClosedAt = present(wire.FormatTime(*row.ClosedAt))
	}
	return v
}

func (s *Server) conflicts(w http.ResponseWriter, r *http.Request, _ *call) error {
	limit, err := limitOf(r, deskNormal, deskMost)
	if err != nil {
		return err
	}
	rows, err := s.cfg.Desk.Conflicts(r.Context(), limit)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"conflicts": each(rows, conflictOf)})
}

func (s *Server) conflict(w http.ResponseWriter, r *http.Request, _ *call) error {
	id, err := rowID(r)
	if err != nil {
		return err
	}
	row, err := s.cfg.Desk.Conflict(r.Context(), id)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"conflict": conflictOf(row)})
}

// resolveConflict accepts the contradicting result, or keeps the first verdict with
// or without its price.
func (s *Server) resolveConflict(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := rowID(r)
	if err != nil {
		return err
	}
	var body struct {
		Resolution app.ConflictAnswer `json:"resolution"`
		Reason     string             `json:"reason"`
	}
	if _, err := s.readJSON(w, r, &body, false); err != nil {
		return err
	}
	err = s.cfg.Resolve.Conflict(r.Context(), app.ConflictCommand{
		ID: id, As: body.Resolution, Actor: c.actor(), Reason: body.Reason,
	})
	if err != nil {
		return err
	}
	row, err := s.cfg.Desk.Conflict(r.Context(), id)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"conflict": conflictOf(row)})
}
