package httpapi

import (
	"errors"
	"net/http"
	"slices"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// caseView is something that a person has to decide.
type caseView struct {
	ID        int64           `json:"id"`
	Kind      domain.CaseKind `json:"kind"`
	TaskID    string          `json:"task_id"`
	AttemptID string          `json:"attempt_id"`
	Owner     *string         `json:"owner"`
	OpenedAt  string          `json:"opened_at"`
	ClosedAt  *string         `json:"closed_at"`
}

func caseOf(row ports.Case) caseView {
	v := caseView{
		ID: row.ID, Kind: row.Kind, TaskID: wire.TaskID(row.TaskID), AttemptID: wire.AttemptID(row.AttemptID),
		Owner: present(row.Owner), OpenedAt: wire.FormatTime(row.OpenedAt),
	}
	if row.ClosedAt != nil {
		v.ClosedAt = present(wire.FormatTime(*row.ClosedAt))
	}
	return v
}

func (s *Server) cases(w http.ResponseWriter, r *http.Request, _ *call) error {
	limit, err := limitOf(r, deskNormal, deskMost)
	if err != nil {
		return err
	}
	kind := domain.CaseKind(r.URL.Query().Get("kind"))
	if kind != "" && !slices.Contains(domain.CaseKinds(), kind) {
		return problemQuery.with(Fault{"kind", "unknown", oneOf(domain.CaseKinds())})
	}
	rows, err := s.cfg.Desk.Cases(r.Context(), kind, limit)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"cases": each(rows, caseOf)})
}

func (s *Server) oneCase(w http.ResponseWriter, r *http.Request, _ *call) error {
	id, err := rowID(r)
	if err != nil {
		return err
	}
	row, err := s.cfg.Desk.Case(r.Context(), id)
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"case": caseOf(row)})
}

// resolveCase carries out what a person found out; it answers with the task.
func (s *Server) resolveCase(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := rowID(r)
	if err != nil {
		return err
	}
	var body struct {
		Resolution     domain.ResolutionKind `json:"resolution"`
		ProviderTaskID string                `json:"provider_task_id"`
		Closing        domain.Closing        `json:"closing"`
		Reason         string                `json:"reason"`
	}
	if _, err := s.readJSON(w, r, &body, false); err != nil {
		return err
	}
	view, err := s.cfg.Resolve.Attempt(r.Context(), app.ResolveCommand{
		CaseID: id, Kind: body.Resolution, ProviderTaskID: body.ProviderTaskID, Closing: body.Closing,
		Actor: c.actor(), Reason: body.Reason,
	})
	if err != nil {
		return renamed(err, "kind", "resolution")
	}
	return answer(w, http.StatusOK, map[string]any{"task": wire.TaskOf(view)})
}

// renamed gives a fault the name that its field has in the body.
func renamed(err error, from, to string) error {
	var faults *app.FieldErrors
	if !errors.As(err, &faults) {
		return err
	}
	out := &app.FieldErrors{Fields: slices.Clone(faults.Fields)}
	for i := range out.Fields {
		if out.Fields[i].Field == from {
			out.Fields[i].Field = to
		}
	}
	return out
}
