package stream

import (
	"sync"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Subscriber is one client of a project, whatever its transport. The project
// offers frames in the order of their numbers; the client's goroutine takes them.
// Its memory is bounded by Pending and Queue frames.
type Subscriber struct {
	// task filters when set.
	task domain.TaskID
	// pendingMax bounds the queue before the client is live, queueMax after.
	pendingMax, queueMax int
	conflated            func(n int)
	// wake holds one token while there is something to take.
	wake chan struct{}

	// offeredFrom is the position after which frames are offered to the client; it
	// has to read up to there. Guarded by the project.
	offeredFrom int64

	mu    sync.Mutex
	live  bool
	queue []*frame
	// through is the last position that was queued, filtered out or conflated.
	through domain.Cursor
	// overflow: frames were dropped before the client was live; read again.
	overflow bool
	reset    *resetNotice
	close    *Close
}

type resetNotice struct {
	head   domain.Cursor
	reason ports.ResetReason
}

// batch is what a client writes next: the reset, then the frames, then the close.
type batch struct {
	reset  *resetNotice
	frames []*frame
	// through is the position after all of it.
	through domain.Cursor
	close   *Close
}

func newSubscriber(c Config, task domain.TaskID, conflated func(int)) *Subscriber {
	return &Subscriber{task: task, pendingMax: c.Pending, queueMax: c.Queue, conflated: conflated, wake: make(chan struct{}, 1)}
}

// wants reports whether the client asked for events of the frame's task.
func (s *Subscriber) wants(f *frame) bool { return s.task.IsZero() || s.task == f.task }

// offer queues a frame without ever waiting for the client.
func (s *Subscriber) offer(f *frame) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if f.id() <= s.through.EventID || s.close != nil {
		return
	}
	if !s.wants(f) {
		s.through = f.cursor
		return
	}
	if !s.live {
		s.offerPending(f)
		return
	}
	if len(s.queue) >= s.queueMax {
		before := len(s.queue)
		s.queue = conflate(append(s.queue, f))
		s.conflated(before + 1 - len(s.queue))
		if len(s.queue) > s.queueMax {
			s.queue = nil
			slow := closeSlow
			s.close = &slow
			s.signal()
			return
		}
	} else {
		s.queue = append(s.queue, f)
	}
	s.through = f.cursor
	s.signal()
}

func (s *Subscriber) offerPending(f *frame) {
	s.through = f.cursor
	if s.overflow {
		return
	}
	if len(s.queue) >= s.pendingMax {
		s.queue, s.overflow = nil, true
		return
	}
	s.queue = append(s.queue, f)
}

// goLive ends the pending phase after a read that reached the position, unless
// the buffer overflowed meanwhile: then it starts anew and the caller reads
// again.
func (s *Subscriber) goLive(read domain.Cursor) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.overflow {
		s.overflow = false
		return false
	}
	first := 0
	for first < len(s.queue) && s.queue[first].id() <= read.EventID {
		first++
	}
	s.queue = s.queue[first:]
	if s.through.EventID <= read.EventID {
		s.through = read
	}
	s.live = true
	if len(s.queue) > 0 {
		s.signal()
	}
	return true
}

// restart tells the client that the stream went on from another history. A
// client that is not live yet reads again and finds out by its cursor.
func (s *Subscriber) restart(n resetNotice) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue, s.through = nil, n.head
	if !s.live {
		s.overflow = true
		return
	}
	s.reset = &n
	s.signal()
}

// end asks the client's goroutine to write what it has and close.
func (s *Subscriber) end(c Close) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.close == nil {
		s.close = &c
		s.signal()
	}
}

// waiting is how many frames the client has not taken yet.
func (s *Subscriber) waiting() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// take hands out all that waits.
func (s *Subscriber) take() batch {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := batch{reset: s.reset, frames: s.queue, through: s.through, close: s.close}
	s.reset, s.queue = nil, nil
	return b
}

// signal is called with mu held.
func (s *Subscriber) signal() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}
