package httpapi

import (
	"net/http"

	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// choreView is what a periodic chore did, on all nodes together.
type choreView struct {
	Name       string  `json:"name"`
	LastAt     string  `json:"last_at"`
	LastRows   int     `json:"last_rows"`
	LastTookMS int64   `json:"last_took_ms"`
	FailedAt   *string `json:"failed_at"`
	Runs       int     `json:"runs"`
	Rows       int     `json:"rows"`
	Errors     int     `json:"errors"`
}

func choreOf(r ports.SweepRun) choreView {
	v := choreView{
		Name: r.Chore, LastAt: wire.FormatTime(r.LastAt), LastRows: r.LastRows, LastTookMS: r.LastTook.Milliseconds(),
		Runs: r.Runs, Rows: r.Rows, Errors: r.Errors,
	}
	if r.FailedAt != nil {
		v.FailedAt = present(wire.FormatTime(*r.FailedAt))
	}
	return v
}

// waitingView is what waits for a chore or for a person.
type waitingView struct {
	Queue string `json:"queue"`
	Rows  int    `json:"rows"`
	// More: there are more rows than were counted.
	More   bool    `json:"more"`
	Oldest *string `json:"oldest"`
}

func waitingOf(w ports.Waiting) waitingView {
	v := waitingView{Queue: w.Name, Rows: w.Rows, More: w.Rows >= ports.WaitingMost}
	if w.Oldest != nil {
		v.Oldest = present(wire.FormatTime(*w.Oldest))
	}
	return v
}

// compensationView is the state of everything that mends by itself.
type compensationView struct {
	Chores             []choreView   `json:"chores"`
	Waiting            []waitingView `json:"waiting"`
	PartitionDaysAhead int           `json:"partition_days_ahead"`
}

// compensation shows when each chore ran last, what it took and what waits.
func (s *Server) compensation(w http.ResponseWriter, r *http.Request, _ *call) error {
	runs, err := s.cfg.Sweeps.Sweeps(r.Context())
	if err != nil {
		return err
	}
	waiting, err := s.cfg.Sweeps.Waiting(r.Context(), s.cfg.Now())
	if err != nil {
		return err
	}
	days, err := s.cfg.Sweeps.PartitionDaysAhead(r.Context())
	if err != nil {
		return err
	}
	return answer(w, http.StatusOK, map[string]any{"compensation": compensationView{
		Chores: each(runs, choreOf), Waiting: each(waiting, waitingOf), PartitionDaysAhead: days,
	}})
}
