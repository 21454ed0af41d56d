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

// bearer is the key of a request, empty when it has none.
func bearer(r *http.Request) string {
	scheme, key, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(key)
}

// authorize fills the call with the caller and, where the path names one, the
// project. The order of its refusals tells nobody what exists: 401 before 403
// before 404.
func (s *Server) authorize(r *http.Request, c *call, scope ports.Scope) error {
	principal, err := s.cfg.Access.Authenticate(r.Context(), bearer(r))
	if err != nil {
		return err
	}
	if !principal.Can(scope) {
		return problemScope.saying("Use a key with the scope " + string(scope) + ".")
	}
	c.principal = principal
	text := r.PathValue("project_id")
	if text == "" {
		return nil
	}
	id, err := pathID(wire.PrefixProject, text)
	if err != nil {
		return err
	}
	c.project, err = s.cfg.Access.Project(r.Context(), principal, domain.ProjectID{ID: id})
	return err
}

// actor names the caller in the audit log: the id of the key, never the key.
func (c *call) actor() string { return wire.FormatID(wire.PrefixKey, c.principal.KeyID) }

// recheck asks again whether the caller of a live stream may go on. Thousands of
// streams ask every few seconds, and those of one key share its answer.
func (s *Server) recheck(key string, project ports.Project) func(context.Context) error {
	return func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, s.cfg.RequestTimeout) // the stream has no end of its own
		defer cancel()
		principal, err := s.cfg.Access.Authenticate(ctx, key)
		if err != nil {
			return err
		}
		if !principal.Can(ports.ScopeRead) || !principal.May(project) {
			return app.ErrUnauthenticated
		}
		return nil
	}
}

// pathID reads an id of the path. One that cannot exist is not found, with a
// sentence on its form.
func pathID(prefix, text string) (domain.ID, error) {
	id, err := wire.ParseID(prefix, text)
	if err != nil {
		return domain.ID{}, problemID.saying("The id in the path must have the form " + prefix + "_ and 26 characters.")
	}
	return id, nil
}

// taskID reads {task_id}.
func taskID(r *http.Request) (domain.TaskID, error) {
	id, err := pathID(wire.PrefixTask, r.PathValue("task_id"))
	return domain.TaskID{ID: id}, err
}

// isDenied reports an error of authentication, as opposed to one of the service.
func isDenied(err error) bool { return errors.Is(err, app.ErrUnauthenticated) }

// isAway reports an error of a store that does not answer.
func isAway(err error) bool {
	return errors.Is(err, ports.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded)
}
