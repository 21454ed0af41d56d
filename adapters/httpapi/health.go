package httpapi

import (
	"context"
	_ "embed" // the two documents
	"fmt"
	"net/http"

	"github.com/aivedio/aivedio/ports"
)

//go:embed openapi.json
var openAPI []byte

//go:embed asyncapi.json
var asyncAPI []byte

// document serves a document that is part of the program.
func document(body []byte) func(http.ResponseWriter, *http.Request, *call) error {
	return func(w http.ResponseWriter, _ *http.Request, _ *call) error {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "public, max-age=300")
		_, _ = w.Write(body) // the client may have gone
		return nil
	}
}

// healthy says that the process answers.
func (s *Server) healthy(w http.ResponseWriter, _ *http.Request, _ *call) error {
	return answer(w, http.StatusOK, map[string]string{"status": "ok"})
}

// ready says whether the process should get requests; what it lacks is in the
// log.
func (s *Server) ready(w http.ResponseWriter, r *http.Request, _ *call) error {
	if s.cfg.Ready != nil {
		ctx, cancel := context.WithTimeout(r.Context(), s.cfg.ReadyTimeout)
		defer cancel()
		if err := s.cfg.Ready(ctx); err != nil {
			return fmt.Errorf("%w: not ready: %w", ports.ErrUnavailable, err)
		}
	}
	return answer(w, http.StatusOK, map[string]string{"status": "ready"})
}

func (s *Server) metrics(w http.ResponseWriter, r *http.Request, _ *call) error {
	s.cfg.Metrics.handler().ServeHTTP(w, r)
	return nil
}
