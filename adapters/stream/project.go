package stream

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// maxHeld bounds the frames that wait for a missing one; more only prove that a
// read is due, and the read brings them.
const maxHeld = 1024

// project puts the frames of one project in order and hands them to its clients.
type project struct {
	hub *Hub
	id  domain.ProjectID

	// Guarded by the hub: how many clients hold it, since when none does, and the
	// channel that closes when it is gone.
	clients  int
	idle     bool
	retiring chan struct{}

	mu   sync.Mutex
	subs map[*Subscriber]struct{}
	// known is set once a read has given the position. pos is the last event that
	// was offered to every client; all after it come in order.
	known bool
	pos   domain.Cursor
	held  map[int64]*frame
	// fillTimer runs while held frames wait; filling while a read is under way;
	// again when another has to follow it.
	fillTimer *time.Timer
	filling   bool
	again     bool
	// lost: a frame found no room, so only a read can tell.
	lost bool

	// watched is set while the notifier has confirmed the project; watching is
	// open while one try to get there runs.
	watched  bool
	watching chan struct{}
}

func newProject(h *Hub, id domain.ProjectID) *project {
	return &project{hub: h, id: id, subs: map[*Subscriber]struct{}{}, held: map[int64]*frame{}}
}

// add registers a client: from now on every frame is offered to it.
func (p *project) add(s *Subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.offeredFrom = p.pos.EventID
	p.subs[s] = struct{}{}
}

func (p *project) remove(s *Subscriber) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.subs, s)
}

func (p *project) each(f func(*Subscriber)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for s := range p.subs {
		f(s)
	}
}

// wanted reports whether the event could be news; it spares the encoding of
// repeated hints.
func (p *project) wanted(id int64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known && id <= p.pos.EventID {
		return false
	}
	return p.held[id] == nil
}

// offer takes a frame from a hint or from the delta query: the next one goes
// out, a seen one is dropped, one that came too early waits for those before it.
func (p *project) offer(f *frame) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.accept(f)
	p.settle()
}

// accept is called with mu held; settle follows the last accept.
func (p *project) accept(f *frame) {
	switch {
	case p.known && f.id() <= p.pos.EventID:
	case p.known && f.id() == p.pos.EventID+1:
		p.dispatch(f)
	case len(p.held) < maxHeld:
		p.held[f.id()] = f
	default:
		p.lost = true
	}
}

func (p *project) dispatch(f *frame) {
	p.pos = f.cursor
	for s := range p.subs {
		s.offer(f)
	}
}

// settle releases held frames whose turn has come and starts or stops the timer
// of a gap. mu is held.
func (p *project) settle() {
	if !p.known {
		return
	}
	for f := p.held[p.pos.EventID+1]; f != nil; f = p.held[p.pos.EventID+1] {
		delete(p.held, f.id())
		p.dispatch(f)
	}
	if p.lost {
		p.lost = false
		p.startFill()
	}
	switch {
	case len(p.held) == 0 && p.fillTimer != nil:
		p.fillTimer.Stop()
		p.fillTimer = nil
	case len(p.held) > 0 && p.fillTimer == nil && !p.filling:
		p.fillTimer = time.AfterFunc(p.hub.cfg.Hold, p.fill)
	}
}

// dropOld forgets held frames at or below the position. mu is held.
func (p *project) dropOld() {
	for id := range p.held {
		if id <= p.pos.EventID {
			delete(p.held, id)
		}
	}
}

// join makes a client live after a read that ended at the position read, with
// last being the frames of its last page. It reports false when something is
// missing between the read and what the client's buffer holds: read again.
func (p *project) join(s *Subscriber, read domain.Cursor, last []*frame) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if read.EventID < s.offeredFrom {
		p.startFill() // or the history went back, and the fill finds out
		return false
	}
	if !s.goLive(read) {
		return false
	}
	if !p.known {
		p.known, p.pos = true, read
		for other := range p.subs {
			other.offeredFrom = read.EventID
		}
		p.dropOld()
		p.settle()
		return true
	}
	for _, f := range last { // others may be waiting for what this read found
		p.accept(f)
	}
	p.settle()
	otherTag := read.EventID == p.pos.EventID && read.Tag != p.pos.Tag && read.Tag != "" && p.pos.Tag != ""
	if read.EventID > p.pos.EventID || otherTag {
		p.startFill()
	}
	return true
}

// behind starts a read when the head of the stream is not where the project
// stands.
func (p *project) behind(head int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.known && head != p.pos.EventID {
		p.startFill()
	}
}

// startFill is called with mu held.
func (p *project) startFill() {
	if p.filling {
		p.again = true
		return
	}
	p.filling = true
	if !p.hub.goes(p.fillLoop) {
		p.filling = false
	}
}

// fill is the end of the time that a gap may last.
func (p *project) fill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fillTimer = nil
	if len(p.held) > 0 {
		p.startFill()
	}
}

// fillLoop reads from the position to the head, once for all clients.
func (p *project) fillLoop() {
	for {
		err := p.fillOnce(p.hub.ctx)
		p.mu.Lock()
		if err != nil {
			p.filling, p.again = false, false
			if p.hub.ctx.Err() == nil && p.fillTimer == nil {
				p.fillTimer = time.AfterFunc(p.hub.cfg.DeltaUnhealthy, p.refill)
			}
			p.mu.Unlock()
			p.hub.fillFailed(p, err)
			return
		}
		if !p.again {
			p.filling = false
			p.settle()
			p.mu.Unlock()
			return
		}
		p.again = false
		p.mu.Unlock()
	}
}

// refill tries again after a read that failed, held frames or not.
func (p *project) refill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.fillTimer = nil
	if len(p.subs) > 0 {
		p.startFill()
	}
}

func (p *project) fillOnce(ctx context.Context) error {
	p.mu.Lock()
	from := p.pos
	// A held frame was committed before this read begins, so the read brings it:
	// what is left of these afterwards belongs to a history that is gone.
	waiting := make(map[int64]*frame, len(p.held))
	for id, f := range p.held {
		waiting[id] = f
	}
	p.mu.Unlock()
	for {
		p.hub.stats.reads.Add(1)
		page, err := p.hub.cfg.Events.After(ctx, p.id, from, p.hub.cfg.ReadBatch)
		if err != nil {
			return fmt.Errorf("fill the gap of a project: %w", err)
		}
		if page.Reset != "" {
			p.restart(resetNotice{page.Head, page.Reset})
			return nil
		}
		frames := newFrames(page.Events)
		p.mu.Lock()
		for _, f := range frames {
			p.accept(f)
			from = f.cursor
		}
		p.settle()
		if len(frames) < p.hub.cfg.ReadBatch {
			for id, f := range waiting {
				if p.held[id] == f {
					delete(p.held, id)
				}
			}
			p.settle()
			p.mu.Unlock()
			return nil
		}
		p.mu.Unlock()
	}
}

// restart follows a database that went back to another history.
func (p *project) restart(n resetNotice) {
	p.hub.stats.resets.Add(1)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pos = n.head
	clear(p.held)
	p.settle()
	for s := range p.subs {
		s.offeredFrom = n.head.EventID
		s.restart(n)
	}
}
