package httpapi

import (
	"net/http"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// outboxRoutes are the desk of what waits for the bus. The path's value is not
// called project_id: it is of any tenant, and the desk's scope is checked instead.
func (s *Server) outboxRoutes(admin func(method, pattern string, handle func(http.ResponseWriter, *http.Request, *call) error) route) []route {
	return []route{
		admin(http.MethodGet, "/outbox", s.outbox),
		admin(http.MethodPost, "/outbox/{project}/unpark", s.unpark),
	}
}

// outboxView is what waits for the bus.
type outboxView struct {
	Rows       int64        `json:"rows"`
	OldestAt   *string      `json:"oldest_at"`
	AgeSeconds float64      `json:"oldest_age_seconds"`
	Projects   int          `json:"parked_projects"`
	Parked     []parkedView `json:"parked"`
}

// parkedView is a project whose rows the bus refuses.
type parkedView struct {
	ProjectID string `json:"project_id"`
	ErrorCode string `json:"error_code"`
	Refusals  int    `json:"refusals"`
	Since     string `json:"since"`
	Rows      int64  `json:"rows"`
}

func parkedOf(p ports.ParkedProject) parkedView {
	return parkedView{ProjectID: wire.ProjectID(p.ProjectID), ErrorCode: p.ErrorCode, Refusals: p.Refusals, Since: wire.FormatTime(p.Since), Rows: p.Rows}
}

func (s *Server) outbox(w http.ResponseWriter, r *http.Request, _ *call) error {
	limit, err := limitOf(r, deskNormal, deskMost)
	if err != nil {
		return err
	}
	backlog, err := s.cfg.Outbox.Backlog(r.Context())
	if err != nil {
		return err
	}
	parked, err := s.cfg.Outbox.Parked(r.Context(), limit)
	if err != nil {
		return err
	}
	view := outboxView{Rows: backlog.Rows, Projects: backlog.Parked, Parked: each(parked, parkedOf)}
	if at := backlog.OldestAt; at != nil {
		view.OldestAt = present(wire.FormatTime(*at))
		view.AgeSeconds = max(0, s.cfg.Now().Sub(*at).Seconds())
	}
	return answer(w, http.StatusOK, map[string]any{"outbox": view})
}

// unpark has a parked project's rows sent again; the answer describes the project as
// it was. A dry run only looks.
func (s *Server) unpark(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := pathID(wire.PrefixProject, r.PathValue("project"))
	if err != nil {
		return err
	}
	var body struct {
		Reason string `json:"reason"`
		DryRun bool   `json:"dry_run"`
	}
	if _, err := s.readJSON(w, r, &body, false); err != nil {
		return err
	}
	if err := checkReason(body.Reason); err != nil {
		return err
	}
	project := domain.ProjectID{ID: id}
	parked, err := s.cfg.Outbox.ParkedProject(r.Context(), project)
	if err == nil && !body.DryRun {
		err = s.cfg.Outbox.Unpark(r.Context(), project, ports.Audit{
			ActionID: domain.ActionID{ID: wire.NewID()}, Actor: c.actor(), Action: "outbox.unpark", Reason: body.Reason,
		})
	}
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"parked": parkedOf(parked), "dry_run": body.DryRun})
}
