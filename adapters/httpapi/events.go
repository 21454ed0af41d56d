package httpapi

import (
	"errors"
	"net/http"
	"strings"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// events hands a stream to the gateway. A caller without a right who asks for
// an event stream by name is told within the stream: a browser's EventSource
// cannot read a status.
func (s *Server) events(w http.ResponseWriter, r *http.Request, c *call) error {
	err := s.authorize(r, c, ports.ScopeRead)
	if isDenied(err) && strings.Contains(strings.Join(r.Header.Values("Accept"), ","), "text/event-stream") {
		return s.cfg.Events.ServeEvents(w, r, EventRequest{Denied: true})
	}
	if err != nil {
		return err
	}
	req := EventRequest{Project: c.project.ID, Auth: s.recheck(bearer(r), c.project)}
	if text := r.URL.Query().Get("task_id"); text != "" {
		id, err := wire.ParseID(wire.PrefixTask, text)
		if err != nil {
			return problemID.saying("The task_id must have the form tsk_ and 26 characters.")
		}
		req.Task = domain.TaskID{ID: id}
		view, _, err := s.cfg.Reader.Task(r.Context(), c.project.ID, req.Task)
		if err != nil {
			return err
		}
		req.TaskTerminal, req.TaskLastEventID = view.Task.Status().Terminal(), view.Task.LastEventID
	}
	return queryProblem(s.cfg.Events.ServeEvents(w, r, req))
}

// queryProblem says of the gateway's field faults that they are parameters.
func queryProblem(err error) error {
	var faults *app.FieldErrors
	if !errors.As(err, &faults) {
		return err
	}
	return problemQuery.with(faultsOf(faults)...)
}
