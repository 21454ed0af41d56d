package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// pool bounds how many calls to the outside run at once. A round takes free
// slots, claims as much work and leaves it running, so that one slow vendor does
// not hold up the others.
type pool struct {
	slots chan struct{}
	wg    sync.WaitGroup

	mu   sync.Mutex
	errs []error
}

// maxPoolErrors bounds what is kept between two rounds.
const maxPoolErrors = 8

func newPool(n int) *pool { return &pool{slots: make(chan struct{}, n)} }

// reserve waits for a free slot and takes all that are free. It returns how many;
// 0 when the context has ended.
func (p *pool) reserve(ctx context.Context) int {
	select {
	case p.slots <- struct{}{}:
	case <-ctx.Done():
		return 0
	}
	n := 1
	for {
		select {
		case p.slots <- struct{}{}:
			n++
		default:
			return n
		}
	}
}

// release gives unused slots back.
func (p *pool) release(n int) {
	for range n {
		<-p.slots
	}
}

// run does a job on a reserved slot. Its error, or panic, is for the next takeErr.
func (p *pool) run(job func() error) {
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
