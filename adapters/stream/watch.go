package stream

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// hints is the hub as the notifier sees it.
type hints struct{ hub *Hub }

var _ ports.NotifyHandler = hints{}

// Events takes hints; it encodes and queues, and waits for nobody.
func (n hints) Events(events []ports.StoredEvent) {
	n.hub.stats.hints.Add(int64(len(events)))
	n.hub.deliver(events, nil)
}

// Gap asks for a delta query soon.
func (n hints) Gap() {
	select {
	case n.hub.gap <- struct{}{}:
	default:
	}
}

// watch returns after the notifier has confirmed the project, or when it will
// not in time: then the client is served by the delta query, and the loop of Run
// goes on trying.
func (h *Hub) watch(ctx context.Context, p *project) {
	done := h.startWatch(p)
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	case <-h.ctx.Done():
	}
}

// startWatch joins the running try or starts one; nil when there is nothing to
// wait for. The try belongs to the hub, so a client that hangs up does not spoil
// it for the others.
func (h *Hub) startWatch(p *project) <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.watched {
		return nil
	}
	if p.watching != nil {
		return p.watching
	}
	listener := h.currentListener()
	if listener == nil {
		return nil
	}
	done := make(chan struct{})
	p.watching = done
	if !h.goes(func() { h.tryWatch(p, listener, done) }) {
		p.watching = nil
		return nil
	}
	return done
}

func (h *Hub) tryWatch(p *project, listener ports.Listener, done chan struct{}) {
	ctx, cancel := context.WithTimeout(h.ctx, h.cfg.WatchTimeout)
	err := listener.Watch(ctx, p.id)
	cancel()
	if err != nil && h.ctx.Err() == nil {
		h.stats.watchErrors.Add(1)
		h.cfg.Logger.Warn("stream: watch not confirmed, the delta query serves the project", "project", p.id.String(), "error", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.watched, p.watching = err == nil, nil
	close(done)
}

func (h *Hub) currentListener() ports.Listener {
	h.mu.RLock()
	defer h.mu.RUnlock()
	return h.listener
}

// listen starts the listener and tries until it has one.
func (h *Hub) listen() {
	for {
		listener, err := h.cfg.Notifier.Listen(h.ctx, hints{h})
		if err == nil {
			h.mu.Lock()
			h.listener = listener
			h.mu.Unlock()
			hints{h}.Gap()
			return
		}
		if h.ctx.Err() != nil {
			return
		}
		h.cfg.Logger.Warn("stream: no listener at the notifier, trying again", "error", err)
		select {
		case <-time.After(h.cfg.DeltaUnhealthy):
		case <-h.ctx.Done():
			return
		}
	}
}

// tend watches what is not watched yet and retires projects that have had no
// client for a whole round.
func (h *Hub) tend() {
	var retire, missing []*project
	h.mu.Lock()
	for _, p := range h.projects {
		switch {
		case p.clients > 0:
			missing = append(missing, p)
		case p.idle && p.retiring == nil:
			p.retiring = make(chan struct{})
			retire = append(retire, p)
		default:
			p.idle = true
		}
	}
	h.mu.Unlock()
	for _, p := range missing {
		h.startWatch(p)
	}
	for _, p := range retire {
		h.retire(p)
	}
}

// retire ends the watch before the project is forgotten, so that a client who
// comes back cannot have its new watch taken down by the old one's end.
func (h *Hub) retire(p *project) {
	p.mu.Lock()
	if p.fillTimer != nil {
		p.fillTimer.Stop()
		p.fillTimer = nil
	}
	watching := p.watching
	p.mu.Unlock()
	if watching != nil {
		<-watching
	}
	if listener := h.currentListener(); listener != nil {
		listener.Unwatch(p.id)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	delete(h.projects, p.id)
	close(p.retiring)
}
