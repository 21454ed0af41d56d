package httpapi

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// events hands a stream to the gateway. A caller who has no right, or whose right
// cannot be proven just now, and who asks for an event stream by name is told within
// the stream: a browser's EventSource cannot read a status.
func (s *Server) events(w http.ResponseWriter, r *http.Request, c *call) error {
	req, err := s.eventRequest(r, c)
	if err != nil && strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/event-stream") {
		req = EventRequest{Denied: isDenied(err), Unavailable: isAway(err)}
		if req.Unavailable {
			s.log(r, c, err, problemUnavailable, true)
		}
		if req.Denied || req.Unavailable {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	return queryProblem(s.cfg.Events.ServeEvents(w, r, req))
}

// eventRequest proves the caller and looks at the task that a stream is limited to,
// in bounded time: the stream itself has no end.
func (s *Server) eventRequest(r *http.Request, c *call) (EventRequest, error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
	defer cancel()
	if err := s.authorize(r.WithContext(ctx), c, ports.ScopeRead); err != nil {
		return EventRequest{}, err
	}
	s.cfg.Watched(c.project.ID)
	req := EventRequest{Project: c.project.ID, Auth: s.recheck(bearer(r), c.project)}
	if text := r.URL.Query().Get("task_id"); text != "" {
		id, err := wire.ParseID(wire.PrefixTask, text)
		if err != nil {
			return EventRequest{}, problemID.saying("The task_id must have the form tsk_ and 26 characters.")
		}
		req.Task = domain.TaskID{ID: id}
		view, _, err := s.cfg.Reader.Task(ctx, c.project.ID, req.Task)
		if err != nil {
			return EventRequest{}, err
		}
		req.TaskTerminal, req.TaskLastEventID = view.Task.Status().Terminal(), view.Task.LastEventID
	}
	return req, nil
}

// queryProblem says of the gateway's field faults that they are parameters.
func queryProblem(err error) error {
	var faults *app.FieldErrors
	if !errors.As(err, &faults) {
		return err
	}
	return problemQuery.with(faultsOf(faults)...)
}
