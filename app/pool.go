package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// pool bounds how many calls to the outside run at once. A round takes free
// slots, claims as much work and leaves it running, so that one slow vendor does
// not hold up the others.
type pool struct {
	slots chan struct{}
	wg    sync.WaitGroup
	// batch and linger have a round wait a little for more slots, so that a busy pool
	// does not claim its work row by row; zero for none.
	batch  int
	linger time.Duration

	mu   sync.Mutex
	errs []error
}

// maxPoolErrors bounds what is kept between two rounds.
const maxPoolErrors = 8

func newPool(n int) *pool { return &pool{slots: make(chan struct{}, n)} }

// places are the slots that one round holds. Not safe for concurrent use.
type places struct {
	pool *pool
	free int
}

// reserve waits for a free slot and takes all that are free; none when the context
// has ended. The caller defers end, so that whatever happens no slot is lost.
func (p *pool) reserve(ctx context.Context) *places {
	held := &places{pool: p}
	select {
	case p.slots <- struct{}{}:
		held.free++
	case <-ctx.Done():
		return held
	}
	held.takeFree()
	if held.free >= p.batch {
		return held
	}
	timer := time.NewTimer(p.linger)
	defer timer.Stop()
	for held.free < p.batch {
		select {
		case p.slots <- struct{}{}:
			held.free++
		case <-timer.C:
			return held
		case <-ctx.Done():
			return held
		}
	}
	return held
}

func (h *places) takeFree() {
	for {
		select {
		case h.pool.slots <- struct{}{}:
			h.free++
		default:
			return
		}
	}
}

// end gives back what the round did not use.
func (h *places) end() {
	h.pool.release(h.free)
	h.free = 0
}

// run does a job on one of the slots; at most free jobs. Its error, or panic, is
// for the next takeErr.
func (h *places) run(job func() error) {
	p := h.pool
	h.free--
	p.wg.Go(func() {
		defer p.release(1)
		defer func() {
			if r := recover(); r != nil {
				p.keep(fmt.Errorf("panic in a job: %v", r))
			}
		}()
		p.keep(job())
	})
}

func (p *pool) release(n int) {
	for range n {
		<-p.slots
	}
}

func (p *pool) keep(err error) {
	if err == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.errs) < maxPoolErrors {
		p.errs = append(p.errs, err)
	}
}

// takeErr returns what failed since the last call.
func (p *pool) takeErr() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	err := errors.Join(p.errs...)
	p.errs = nil
	return err
}

// drain returns when no job is running.
func (p *pool) drain() { p.wg.Wait() }
