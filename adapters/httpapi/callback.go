package httpapi

import (
	"context"
	"errors"
	"net/http"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// callback answers a vendor: 204 once the delivery is committed, a duplicate
// too (I1). What is refused is told without detail, and everything that leaves
// its commit in doubt is a 503, so that the vendor comes again.
func (s *Server) callback(w http.ResponseWriter, r *http.Request, c *call) error {
	if err := s.limits.take(r.PathValue("provider"), s.source(r), s.cfg.Now()); err != nil {
		return err
	}
	if !isJSON(r) {
		return problemMediaType
	}
	body, err := s.readBody(w, r, s.cfg.MaxCallback)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.cfg.CallbackTimeout)
	defer cancel()
	_, err = s.cfg.Receive.Deliver(ctx, app.DeliverCommand{
		Provider: r.PathValue("provider"), Token: r.PathValue("token"), Account: r.PathValue("account"),
		Header: r.Header, Body: body, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, TraceID: c.trace,
	})
	if err != nil {
		return s.undelivered(err, r, c)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// refused tells of a delivery that was not proven: anybody may send such, so each is
// a line for debugging and a figure, and a warning comes once in a while.
func (s *Server) refused(provider, reason string, c *call) {
	s.cfg.Logger.Debug("http: delivery refused", "provider", provider, "reason", reason, "trace_id", wire.TraceID(c.trace))
	if count, pass := s.warnings.take("refused "+provider, s.cfg.Now()); pass {
		s.cfg.Logger.Warn("http: deliveries refused", "provider", provider, "count", count, "last_reason", reason, "last_trace_id", wire.TraceID(c.trace))
	}
}

// undelivered maps an error that no table knows to 503: nothing is known to be
// stored. Refusals are logged here, since the sender learns no reason.
func (s *Server) undelivered(err error, r *http.Request, c *call) error {
	var refused *ports.VerifyError
	switch {
	case errors.As(err, &refused):
		s.refused(r.PathValue("provider"), refused.Reason, c)
		return problemDelivery
	case errors.Is(err, context.Canceled):
		return err
	}
	if _, known := problemOf(err); known {
		return err
	}
	s.cfg.Logger.Error("http: delivery not stored", "provider", r.PathValue("provider"), "trace_id", wire.TraceID(c.trace), "error", err)
	return problemUnavailable
}
