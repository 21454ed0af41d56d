package stream

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ServeEvents serves the events of a project: a JSON long-poll to a client that
// asks for application/json, Server-Sent Events to every other. It returns when
// the stream is over. The error is not nil only when nothing has been written:
// *app.FieldErrors for the query, and for a long-poll app.ErrOverloaded,
// ports.ErrUnavailable, or app.ErrUnauthenticated when it is denied: a stream says
// these itself.
//
// The caller has authorised the request. A stream is bound to one goroutine and
// to Queue frames of memory; a client that takes nothing within WriteTimeout is
// cut.
func (h *Hub) ServeEvents(w http.ResponseWriter, r *http.Request, req StreamRequest) error {
	q, err := parseQuery(r.Header, r.URL.Query(), h.cfg.Wait)
	if err != nil {
		return err
	}
	switch {
	case req.Denied:
		return h.turnAway(w, r, closeDenied, app.ErrUnauthenticated)
	case req.Unavailable:
		return h.turnAway(w, r, closeUnavailable, ports.ErrUnavailable)
	}
	if r.Method == http.MethodHead { // there is no body to wait for
		streamHeaders(w.Header())
		w.WriteHeader(http.StatusOK)
		return nil
	}
	if wantsJSON(r.Header) {
		return h.servePoll(w, r, req, q)
	}
	over, err := h.nothingLeft(r.Context(), req, q)
	if err != nil {
		h.readFailed(req.Project, err)
		return h.turnAway(w, r, closeUnavailable, ports.ErrUnavailable)
	}
	if over {
		w.WriteHeader(http.StatusNoContent)
		return nil
	}
	h.serveSSE(w, r, req, q)
	return nil
}

// turnAway tells a client that is not served why, in the words of its transport: the
// error to a long-poll, the ending to a stream.
func (h *Hub) turnAway(w http.ResponseWriter, r *http.Request, c Close, err error) error {
	if wantsJSON(r.Header) {
		return err
	}
	out := newSSE(h.cfg, w, StreamRequest{})
	defer out.stop()
	if err := out.end(c, domain.Cursor{}); err != nil {
		h.cfg.Logger.Debug("stream: connection cut", "error", err)
	}
	return nil
}

// serveSSE says everything in the stream, since a browser's EventSource neither
// reads headers nor comes back after another status.
func (h *Hub) serveSSE(w http.ResponseWriter, r *http.Request, req StreamRequest, q query) {
	out := newSSE(h.cfg, w, req)
	defer out.stop()
	err := h.follow(r.Context(), req, q, out)
	switch {
	case errors.Is(err, errDraining):
		err = out.end(closeDraining, q.cursor)
	case errors.Is(err, ErrBusy):
		err = out.end(closeFull, q.cursor)
	}
	if err != nil && r.Context().Err() == nil {
		h.stats.writeErrors.Add(1)
		h.cfg.Logger.Debug("stream: connection cut", "error", err)
	}
}

// nothingLeft reports a reconnect to a stream that has told all: 204 is the only
// answer that stops a browser's EventSource.
func (h *Hub) nothingLeft(ctx context.Context, req StreamRequest, q query) (bool, error) {
	if q.kind != cursorGiven || !req.overAt(q.cursor) {
		return false, nil
	}
	page, err := h.cfg.Events.After(ctx, req.Project, q.cursor, 1)
	if err != nil {
		return false, fmt.Errorf("check the cursor of a finished task: %w", err)
	}
	return page.Reset == "", nil
}
