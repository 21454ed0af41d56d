package httpapi

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// Server holds the routes of a process.
type Server struct {
	cfg       Config
	limits    limits
	warnings  throttle
	all       http.Handler
	callbacks http.Handler
}

// New returns the routes of the parts that cfg names. The error joins every
// fault of the configuration.
func New(cfg Config) (*Server, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, limits: limits{newLimiter(cfg.CallbackRate, cfg.CallbackBurst), newLimiter(cfg.ProviderRate, cfg.ProviderBurst)}}
	s.all = s.handler(s.routes())
	s.callbacks = s.handler(append(s.callbackRoutes(), s.healthRoutes()...))
	return s, nil
}

// Handler serves every route.
func (s *Server) Handler() http.Handler { return s.all }

// Callbacks serves the callback addresses and health alone, for a listener of
// their own.
func (s *Server) Callbacks() http.Handler { return s.callbacks }

// route is one operation. pattern is that of ServeMux without the method.
type route struct {
	method, pattern string
	// scope is what the caller's key must have; empty for open routes, whose
	// handler proves the caller otherwise or needs no proof.
	scope ports.Scope
	// untimed routes last as long as the client likes.
	untimed bool
	handle  func(w http.ResponseWriter, r *http.Request, c *call) error
}

// call is what is known of a request beside its bytes.
type call struct {
	trace     domain.TraceID
	principal app.Principal
	// project is set where the path names one.
	project ports.Project
	// route is the pattern, for metrics.
	route   string
	untimed bool
}

// handler builds a mux in the shell that all routes share.
func (s *Server) handler(routes []route) http.Handler {
	mux := http.NewServeMux()
	for _, rt := range routes {
		mux.HandleFunc(rt.method+" "+rt.pattern, func(w http.ResponseWriter, r *http.Request) {
			c := callOf(r.Context())
			c.route, c.untimed = rt.pattern, rt.untimed
			if !rt.untimed {
				ctx, cancel := context.WithTimeout(r.Context(), s.cfg.RequestTimeout)
				defer cancel()
				r = r.WithContext(ctx)
			}
			if err := s.authorized(w, r, c, rt); err != nil {
				s.fail(w, r, c, err)
			}
		})
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { s.shell(w, r, mux) })
}

// authorized proves the caller's right before the handler runs.
func (s *Server) authorized(w http.ResponseWriter, r *http.Request, c *call, rt route) error {
	if rt.scope != "" {
		if err := s.authorize(r, c, rt.scope); err != nil {
			return err
		}
	}
	return rt.handle(w, r, c)
}

// shell gives a request its trace, refuses what no route may see, and turns
// panics and strange addresses into problems.
func (s *Server) shell(w http.ResponseWriter, r *http.Request, mux *http.ServeMux) {
	began := s.cfg.Now()
	c := &call{trace: traceOf(r), route: "none"}
	out := &response{ResponseWriter: w}
	out.Header().Set("X-Trace-Id", wire.TraceID(c.trace))
	out.Header().Set("X-Content-Type-Options", "nosniff")
	defer func() { s.cfg.Metrics.request(c, r.Method, out.status, s.cfg.Now().Sub(began)) }()
	defer s.recovered(out, r, c)
	s.bodyDeadline(out, r) // also for a request that is refused before its body is read
	s.answerDeadline(out)
	r = r.WithContext(context.WithValue(r.Context(), callKey{}, c))
	if err := s.guard(r); err != nil {
		s.fail(out, r, c, err)
		return
	}
	// ServeMux would answer an unclean path with a redirect, and a vendor that
	// follows one loses its body.
	if escaped := r.URL.EscapedPath(); escaped != path.Clean("/"+escaped) || strings.Contains(r.URL.Path, "\x00") {
		s.fail(out, r, c, problemNoRoute)
		return
	}
	if h, pattern := mux.Handler(r); pattern == "" {
		s.fail(out, r, c, s.unrouted(h, r))
		return
	}
	mux.ServeHTTP(out, r)
}

// answerGrace is the time that an answer has to be taken after the request's own.
const answerGrace = 10 * time.Second

// answerDeadline ends an answer that its client does not take. Streams and files set
// their own, before each write.
func (s *Server) answerDeadline(w http.ResponseWriter) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.cfg.RequestTimeout + answerGrace)) // not every writer has deadlines
}

// unrouted finds out whether the address, only the method, or only the process is
// wrong.
func (s *Server) unrouted(h http.Handler, r *http.Request) *Problem {
	probe := &probe{header: http.Header{}}
	h.ServeHTTP(probe, r)
	if probe.status == http.StatusMethodNotAllowed {
		return problemMethod.sending("Allow", probe.header.Get("Allow"))
	}
	if role := s.missingRole(r.URL.Path); role != "" {
		return problemNoRoute.saying("This process does not serve such addresses: send the request to one with the role " + role + ".")
	}
	return problemNoRoute
}

// missingRole is the role that serves the addresses around a path, if this process
// does not play it.
func (s *Server) missingRole(path string) string {
	first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	switch {
	case first == "callbacks" && s.cfg.Receive == nil:
		return "callback"
	case first == "projects" && strings.HasSuffix(path, "/events") && s.cfg.Events == nil:
		return "gateway"
	case (first == "projects" || first == "admin") && !s.cfg.hasTasks():
		return "api"
	}
	return ""
}

// probe takes an answer without sending it.
type probe struct {
	header http.Header
	status int
}

func (p *probe) Header() http.Header         { return p.header }
func (p *probe) Write(b []byte) (int, error) { return len(b), nil }
func (p *probe) WriteHeader(status int)      { p.status = status }

// guard refuses requests before anything of them is read.
func (s *Server) guard(r *http.Request) error {
	lines := 0
	for _, values := range r.Header {
		lines += len(values)
	}
	if lines > s.cfg.MaxHeaders {
		return problemHeaders.saying("Send at most " + strconv.Itoa(s.cfg.MaxHeaders) + " header lines.")
	}
	if s.insecure(r) {
		return problemInsecure
	}
	return nil
}

// insecure reports a request that reached a trusted proxy without TLS. A redirect
// would only train the sender to send its secrets in the clear again.
func (s *Server) insecure(r *http.Request) bool {
	lines := r.Header.Values("X-Forwarded-Proto")
	if len(lines) == 0 {
		return false
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil || !s.trusted(from.Addr().Unmap()) {
		return false
	}
	for _, proto := range strings.Split(strings.Join(lines, ","), ",") {
		if strings.EqualFold(strings.TrimSpace(proto), "http") {
			return true
		}
	}
	return false
}

// recovered answers a panic as an unknown error.
func (s *Server) recovered(w *response, r *http.Request, c *call) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler { //nolint:errorlint // the server compares it so, too
		panic(cause)
	}
	s.cfg.Logger.Error("http: panic", "route", c.route, "trace_id", wire.TraceID(c.trace), "panic", fmt.Sprint(cause), "stack", string(debug.Stack()))
	if w.status == 0 {
		s.fail(w, r, c, problemInternal)
	}
}

// fail writes the problem of an error. What no table knows is logged and stays
// here.
//
// A client that hung up gets one, too: it may have closed only its own side, and
// without an answer net/http would send a 200, which acknowledges what may not be
// stored.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, c *call, err error) {
	if errors.Is(err, context.Canceled) && errors.Is(r.Context().Err(), context.Canceled) {
		if out, ok := w.(*response); ok {
			w = out.ResponseWriter // it counts as hung up, not as a fault of ours
		}
		_ = problemUnavailable.write(w, c.trace) // hardly anybody reads it
		return
	}
	p, known := problemOf(err)
	s.log(r, c, err, p, known)
	if err := p.write(w, c.trace); err != nil {
		s.cfg.Logger.Debug("http: answer not sent", "route", c.route, "error", err)
	}
}

// log tells of errors that an operator has to know. A problem that a handler chose
// itself is told by that handler, and an overload by the metrics: a line for each
// refused request would only add to it.
func (s *Server) log(r *http.Request, c *call, err error, p *Problem, known bool) {
	var chosen *Problem
	if errors.As(err, &chosen) || errors.Is(err, app.ErrOverloaded) || p.Status < http.StatusInternalServerError {
		return
	}
	level, count := slog.LevelError, 1
	if known { // an outage fails every request
		var pass bool
		if count, pass = s.warnings.take(p.Code+" "+c.route, s.cfg.Now()); !pass {
			return
		}
		level = slog.LevelWarn
	}
	s.cfg.Logger.Log(r.Context(), level, "http: request failed", "route", c.route, "method", r.Method, "status", p.Status,
		"count", count, "trace_id", wire.TraceID(c.trace), "error", err)
}

type callKey struct{}

// callOf is the call that the shell put into the context.
func callOf(ctx context.Context) *call {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return &call{route: "none"}
	}
	return c
}

// traceOf takes the trace of a W3C traceparent header, or draws one.
func traceOf(r *http.Request) domain.TraceID {
	parts := strings.Split(r.Header.Get("Traceparent"), "-")
	if len(parts) >= 4 && len(parts[0]) == 2 && parts[0] != "ff" && len(parts[1]) == 32 {
		if raw, err := hex.DecodeString(parts[1]); err == nil {
			if id := domain.ID(raw); !id.IsZero() {
				return domain.TraceID{ID: id}
			}
		}
	}
	return domain.TraceID{ID: wire.NewID()}
}

// response remembers the status of an answer.
type response struct {
	http.ResponseWriter
	status int
}

// WriteHeader notes the first status.
func (w *response) WriteHeader(status int) {
	if w.status == 0 && status >= 200 {
		w.status = status
	}
	w.ResponseWriter.WriteHeader(status)
}

// Write implies 200.
func (w *response) Write(b []byte) (int, error) {
	if w.status == 0 {
		w.status = http.StatusOK
	}
	return w.ResponseWriter.Write(b)
}

// Unwrap lets http.ResponseController reach deadlines and Flush.
func (w *response) Unwrap() http.ResponseWriter { return w.ResponseWriter }
