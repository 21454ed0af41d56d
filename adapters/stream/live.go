package stream

import "github.com/aivedio/aivedio/domain"

// Live lists the projects that have a client here, in no order.
func (h *Hub) Live() []domain.ProjectID {
	h.mu.RLock()
	defer h.mu.RUnlock()
	live := make([]domain.ProjectID, 0, len(h.projects))
	for id, p := range h.projects {
		if p.clients > 0 {
			live = append(live, id)
		}
	}
	return live
}
