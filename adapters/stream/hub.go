package stream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Hub is the gateway's side of all streams: which clients watch which project.
// All methods are safe for concurrent use. Run has to be running for events to
// arrive; ServeEvents works before, but then sees only what it reads.
type Hub struct {
	cfg   Config
	stats counters
	age   prometheus.Histogram
	// ctx ends with Run: the hard stop of everything.
	ctx  context.Context
	stop context.CancelFunc

	mu       sync.RWMutex
	projects map[domain.ProjectID]*project
	clients  int
	draining bool
	empty    chan struct{} // closed when draining and the last client has gone
	listener ports.Listener
	stopped  bool
	work     sync.WaitGroup

	// mark is the time of the newest event that a delta query has seen; only the
	// loop of Run uses it.
	mark  time.Time
	round int
	// gap asks the loop for a delta query soon.
	gap chan struct{}
}

// New returns a hub. The error joins every fault of the configuration.
func New(cfg Config) (*Hub, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	cfg.Events = boundedEvents{cfg.Events, cfg.ReadTimeout}
	h := &Hub{cfg: cfg, projects: map[domain.ProjectID]*project{}, empty: make(chan struct{}), gap: make(chan struct{}, 1), age: newAge()}
	h.ctx, h.stop = context.WithCancel(context.Background())
	return h, nil
}

// goes starts a goroutine that Run waits for; false after the stop.
func (h *Hub) goes(f func()) bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	if h.stopped {
		return false
	}
	h.work.Go(f)
	return true
}

// register adds a client to its project. ErrBusy: no room; errDraining.
func (h *Hub) register(ctx context.Context, id domain.ProjectID, s *Subscriber) (*project, error) {
	for {
		p, wait, err := h.admit(id)
		if err != nil {
			return nil, err
		}
		if wait == nil {
			p.add(s)
			if h.isDraining() { // the drain may have listed the clients before this one
				s.end(closeDraining)
			}
			return p, nil
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// admit counts a client in, or returns the channel to wait for while the
// project's last watch is being taken down.
func (h *Hub) admit(id domain.ProjectID) (*project, <-chan struct{}, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.draining || h.stopped {
		return nil, nil, errDraining
	}
	p := h.projects[id]
	if p != nil && p.retiring != nil {
		return nil, p.retiring, nil
	}
	if h.clients >= h.cfg.MaxConnections || (p != nil && p.clients >= h.cfg.MaxPerProject) {
		h.stats.refused.Add(1)
		return nil, nil, ErrBusy
	}
	if p == nil {
		p = newProject(h, id)
		h.projects[id] = p
	}
	p.clients++
	p.idle = false
	h.clients++
	return p, nil, nil
}

var errDraining = fmt.Errorf("%w: it is draining", ErrBusy)

func (h *Hub) unregister(p *project, s *Subscriber) {
	p.remove(s)
	h.mu.Lock()
	defer h.mu.Unlock()
	p.clients--
	h.clients--
	if h.draining && h.clients == 0 {
		close(h.empty)
	}
}

func (h *Hub) isDraining() bool {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.draining
}

func (h *Hub) project(id domain.ProjectID) *project {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.projects[id]
}

// Drain turns new clients away, tells each of the others to move at a moment of
// its own within the drain window (or the context's deadline, if that is
// sooner), and returns when all have gone or the context ends. Call it once,
// before Run's context is canceled.
func (h *Hub) Drain(ctx context.Context) error {
	h.mu.Lock()
	if h.draining {
		h.mu.Unlock()
		return nil
	}
	h.draining = true
	if h.clients == 0 {
		close(h.empty)
	}
	all := make([]*project, 0, len(h.projects))
	for _, p := range h.projects {
		all = append(all, p)
	}
	h.mu.Unlock()

	window := h.cfg.DrainWindow
	if end, ok := ctx.Deadline(); ok {
		window = max(0, min(window, time.Until(end)*8/10)) // the rest is for the last writes
	}
	for _, p := range all {
		p.each(func(s *Subscriber) {
			time.AfterFunc(h.cfg.between(0, window), func() { s.end(closeDraining) })
		})
	}
	select {
	case <-h.empty:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("drain: %d streams are left: %w", h.Stats().Connections, ctx.Err())
	}
}

// deliver offers events to the projects that have clients here.
func (h *Hub) deliver(events []ports.StoredEvent, found func()) {
	for _, e := range events {
		p := h.project(e.ProjectID)
		if p == nil || !p.wanted(e.EventID) {
			continue
		}
		if found != nil {
			found()
		}
		p.offer(newFrame(e))
	}
}

// readFailed counts a read for one client. It is a line for debugging only: in an
// outage each client brings one at each of its visits, and the delta query warns.
func (h *Hub) readFailed(project domain.ProjectID, err error) {
	h.stats.readErrors.Add(1)
	h.cfg.Logger.Debug("stream: a client's read failed", "project", project.String(), "error", err)
}

// fillFailed is the one place that logs a failed shared read; it is tried again.
func (h *Hub) fillFailed(p *project, err error) {
	if h.ctx.Err() != nil {
		return
	}
	h.stats.readErrors.Add(1)
	h.cfg.Logger.Warn("stream: shared read failed, it will be tried again", "project", p.id.String(), "error", err)
}
