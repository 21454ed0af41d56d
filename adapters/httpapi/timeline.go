package httpapi

import (
	"net/http"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// timelineAnswer is all that was recorded about a task, oldest first.
type timelineAnswer struct {
	Entries []timelineEntry `json:"entries"`
	// Counters count what was not recorded one by one, by verdict and reason.
	Counters map[string]int64 `json:"counters"`
}

type timelineEntry struct {
	At            string              `json:"at"`
	Kind          string              `json:"kind"`
	AttemptNo     int                 `json:"attempt_no"`
	Source        *domain.Source      `json:"source"`
	Status        *string             `json:"status"`
	Stage         *domain.Stage       `json:"stage"`
	Verdict       *domain.VerdictKind `json:"verdict"`
	Reason        *domain.Reason      `json:"reason"`
	VersionBefore *int64              `json:"version_before"`
	VersionAfter  *int64              `json:"version_after"`
	EventID       *int64              `json:"event_id"`
	Progress      *int                `json:"progress"`
	Detail        *string             `json:"detail"`
}

func (s *Server) timeline(w http.ResponseWriter, r *http.Request, c *call) error {
	id, err := taskID(r)
	if err != nil {
		return err
	}
	line, err := s.cfg.Reader.Timeline(r.Context(), c.project.ID, id)
	if err != nil {
		return err
	}
	out := timelineAnswer{Entries: make([]timelineEntry, len(line.Entries)), Counters: line.Counters}
	if out.Counters == nil {
		out.Counters = map[string]int64{}
	}
	for i, e := range line.Entries {
		out.Entries[i] = entryOf(e)
	}
	return answer(w, http.StatusOK, out)
}

func entryOf(e ports.TimelineEntry) timelineEntry {
	return timelineEntry{
		At: wire.FormatTime(e.At), Kind: e.Kind, AttemptNo: e.AttemptNo,
		Source: present(e.Source), Status: present(e.Status), Stage: present(e.Stage),
		Verdict: present(e.Verdict.Kind), Reason: present(e.Verdict.Reason),
		VersionBefore: present(e.VersionBefore), VersionAfter: present(e.VersionAfter), EventID: present(e.EventID),
		Progress: e.Progress, Detail: present(e.Detail),
	}
}

// present is nil for the zero value: absent is null in JSON.
func present[T comparable](v T) *T {
	var zero T
	if v == zero {
		return nil
	}
	return &v
}
