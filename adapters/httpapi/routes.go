package httpapi

import (
	"net/http"

	"github.com/aivedio/aivedio/ports"
)

// routes lists everything that this process serves. openapi.json says the same,
// and a test compares the two.
func (s *Server) routes() []route {
	var all []route
	if s.cfg.hasTasks() {
		all = append(all, s.taskRoutes()...)
	}
	if s.cfg.Events != nil {
		all = append(all, route{method: http.MethodGet, pattern: "/projects/{project_id}/events", untimed: true, handle: s.events})
	}
	if s.cfg.hasAssets() {
		all = append(all,
			route{method: http.MethodGet, pattern: "/projects/{project_id}/assets/{asset_id}", scope: ports.ScopeRead, handle: s.asset},
			route{method: http.MethodGet, pattern: "/projects/{project_id}/assets/{asset_id}/content", untimed: true, handle: s.assetContent},
		)
	}
	if s.cfg.hasDesk() {
		all = append(all, s.adminRoutes()...)
	}
	if s.cfg.Accounts != nil {
		all = append(all, s.accountRoutes()...)
	}
	all = append(all, s.callbackRoutes()...)
	all = append(all, s.healthRoutes()...)
	return append(all,
		route{method: http.MethodGet, pattern: "/metrics", handle: s.metrics},
		route{method: http.MethodGet, pattern: "/openapi.json", handle: document(openAPI)},
		route{method: http.MethodGet, pattern: "/asyncapi.json", handle: document(asyncAPI)},
	)
}

func (s *Server) taskRoutes() []route {
	const tasks = "/projects/{project_id}/tasks"
	return []route{
		{method: http.MethodPost, pattern: tasks, scope: ports.ScopeWrite, handle: s.submit},
		{method: http.MethodGet, pattern: tasks, scope: ports.ScopeRead, handle: s.list},
		{method: http.MethodGet, pattern: tasks + "/{task_id}", scope: ports.ScopeRead, handle: s.get},
		{method: http.MethodPost, pattern: tasks + "/{task_id}/cancel", scope: ports.ScopeWrite, handle: s.cancel},
		{method: http.MethodPost, pattern: tasks + "/{task_id}/retry", scope: ports.ScopeWrite, handle: s.retry},
		{method: http.MethodGet, pattern: tasks + "/{task_id}/timeline", scope: ports.ScopeOperator, handle: s.timeline},
	}
}

func (s *Server) callbackRoutes() []route {
	if s.cfg.Receive == nil {
		return nil
	}
	return []route{
		{method: http.MethodPost, pattern: "/callbacks/{provider}/{token}", handle: s.callback},
		{method: http.MethodPost, pattern: "/callbacks/{provider}/a/{account}", handle: s.callback},
	}
}

func (s *Server) healthRoutes() []route {
	return []route{
		{method: http.MethodGet, pattern: "/healthz", handle: s.healthy},
		{method: http.MethodGet, pattern: "/readyz", handle: s.ready},
	}
}

// adminRoutes are the desk. Its rows belong to every tenant, so that no scope which
// a tenant may have opens it.
func (s *Server) adminRoutes() []route {
	admin := func(method, pattern string, handle func(http.ResponseWriter, *http.Request, *call) error) route {
		return route{method: method, pattern: "/admin" + pattern, scope: ports.ScopePlatform, handle: handle}
	}
	return append([]route{
		admin(http.MethodGet, "/inbox", s.deadLetters),
		admin(http.MethodPost, "/inbox/requeue", s.requeueMany),
		admin(http.MethodGet, "/inbox/{id}", s.inboxRow),
		admin(http.MethodPost, "/inbox/{id}/requeue", s.requeue),
		admin(http.MethodGet, "/compensation", s.compensation),
		admin(http.MethodGet, "/conflicts", s.conflicts),
		admin(http.MethodGet, "/conflicts/{id}", s.conflict),
		admin(http.MethodPost, "/conflicts/{id}/resolve", s.resolveConflict),
		admin(http.MethodGet, "/cases", s.cases),
		admin(http.MethodGet, "/cases/{id}", s.oneCase),
		admin(http.MethodPost, "/cases/{id}/resolve", s.resolveCase),
		admin(http.MethodGet, "/durations", s.durations),
	}, s.outboxRoutes(admin)...)
}
