package httpapi

import (
	"net/http"

	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// durationView is how long jobs of a model take.
type durationView struct {
	Provider   string  `json:"provider"`
	Model      string  `json:"model"`
	P50Seconds float64 `json:"p50_seconds"`
	P95Seconds float64 `json:"p95_seconds"`
	Samples    int     `json:"samples"`
	UpdatedAt  string  `json:"updated_at"`
}

func durationOf(d ports.ModelDuration) durationView {
	return durationView{
		Provider: d.Provider, Model: d.Model, P50Seconds: d.P50.Seconds(), P95Seconds: d.P95.Seconds(),
		Samples: d.Samples, UpdatedAt: wire.FormatTime(d.UpdatedAt),
	}
}

// durations lists what is learned of the models.
func (s *Server) durations(w http.ResponseWriter, r *http.Request, _ *call) error {
	list, err := s.cfg.Durations.Durations(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"durations": each(list, durationOf)})
}
