package app

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// ErrOverloaded refuses work because the queue is full; the same call may pass
// later.
var ErrOverloaded = errors.New("overloaded")

// batcher commits concurrent calls together. A call that finds a free flusher goes
// at once and alone; while all flushers are busy, calls gather and the next free one
// takes them together. So batches grow with the load and an idle system adds no
// latency.
//
// Flushers exist only while there is something to flush. A caller that goes away
// never cancels a flush: others may stand in the same batch.
type batcher[In, Out any] struct {
	flush    func(ctx context.Context, batch []In) ([]Out, error)
	flushers int
	size     int
	depth    int
	timeout  time.Duration
	// patience, when set, refuses calls that would wait longer, going by what the last
	// flushes took, and all calls while the oldest one has: a queue that its flushers
	// do not keep up with is full before its depth says so. It needs now.
	patience time.Duration
	now      func() time.Time
	// linger, when set, is how long a flusher with a small batch waits for more: for
	// calls that nobody waits for, where a shared transaction is worth it.
	linger time.Duration
	// between, when set, is how long a flusher that goes on lets a small batch grow. A
	// call that finds a free flusher still goes at once.
	between time.Duration

	mu      sync.Mutex
	queue   []*call[In, Out]
	running int
	// flushTime is what flushes take of late; 0 without a patience.
	flushTime time.Duration
	// idle is closed by the last flusher, for those who wait.
	idle chan struct{}
}

// call is one caller's part of a batch.
type call[In, Out any] struct {
	in   In
	out  Out
	err  error
	done chan struct{}
	// since is when the call began to wait; zero without a patience.
	since time.Time
}

// do stores in with whatever else is waiting and returns its own result after
// the flush. ErrOverloaded: nothing was stored. The end of ctx only ends the
// wait.
func (b *batcher[In, Out]) do(ctx context.Context, in In) (Out, error) {
	c, err := b.enqueue(in)
	if err != nil {
		var none Out
		return none, err
	}
	select {
	case <-c.done:
		return c.out, c.err
	case <-ctx.Done():
		var none Out
		return none, ctx.Err()
	}
}

// full reports whether a call would be refused now: a look before the work that a
// refusal makes useless.
func (b *batcher[In, Out]) full() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.refuses(b.clock())
}

// clock is the time where a patience needs it.
func (b *batcher[In, Out]) clock() time.Time {
	if b.patience == 0 {
		return time.Time{}
	}
	return b.now()
}

// refuses needs the lock.
func (b *batcher[In, Out]) refuses(now time.Time) bool {
	if len(b.queue) == 0 {
		return false
	}
	return len(b.queue) >= b.depth || b.patience > 0 && (now.Sub(b.queue[0].since) > b.patience || b.wait() > b.patience)
}

// wait is how long a call would wait behind the queue, in full batches over all
// flushers.
func (b *batcher[In, Out]) wait() time.Duration {
	return time.Duration(float64(len(b.queue)) / float64(b.size*b.flushers) * float64(b.flushTime))
}

// learn moves flushTime a quarter of the way towards what a flush took.
func (b *batcher[In, Out]) learn(took time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.flushTime == 0 {
		b.flushTime = took
	}
	b.flushTime += (took - b.flushTime) / 4
}

func (b *batcher[In, Out]) enqueue(in In) (*call[In, Out], error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	now := b.clock()
	if b.refuses(now) {
		return nil, ErrOverloaded
	}
	c := &call[In, Out]{in: in, done: make(chan struct{}), since: now}
	b.queue = append(b.queue, c)
	if b.running < b.flushers {
		b.running++
		go b.work()
	}
	return c, nil
}

// work flushes until nothing waits.
func (b *batcher[In, Out]) work() {
	for wait := b.linger; ; wait = max(b.linger, b.between) {
		b.gather(wait)
		batch := b.take()
		if len(batch) == 0 {
			return
		}
		b.settle(batch)
	}
}

// gather lets a batch grow, where that is wanted.
func (b *batcher[In, Out]) gather(wait time.Duration) {
	if wait == 0 {
		return
	}
	b.mu.Lock()
	n := len(b.queue)
	b.mu.Unlock()
	if n > 0 && n < b.size {
		pause(context.Background(), wait, nil)
	}
}

// take cuts the next batch; with nothing left the flusher signs off under the
// same lock, so that no call is left without one.
func (b *batcher[In, Out]) take() []*call[In, Out] {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := min(len(b.queue), b.size)
	if n == 0 {
		b.queue = nil
		if b.running--; b.running == 0 && b.idle != nil {
			close(b.idle)
			b.idle = nil
		}
		return nil
	}
	batch := b.queue[:n:n]
	b.queue = b.queue[n:]
	return batch
}

func (b *batcher[In, Out]) settle(batch []*call[In, Out]) {
	ins := make([]In, len(batch))
	for i, c := range batch {
		ins[i] = c.in
	}
	began := b.clock()
	outs, err := b.guarded(ins)
	if b.patience > 0 {
		b.learn(b.now().Sub(began))
	}
	if err == nil && len(outs) != len(ins) {
		err = fmt.Errorf("%w: %d results for %d rows", ports.ErrUnavailable, len(outs), len(ins))
	}
	for i, c := range batch {
		if c.err = err; err == nil {
			c.out = outs[i]
		}
		close(c.done)
	}
}

// guarded flushes under a time limit of its own. A panic means that nobody knows
// what was stored.
func (b *batcher[In, Out]) guarded(ins []In) (outs []Out, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), b.timeout)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: panic in a flush: %v", ports.ErrUnavailable, p)
		}
	}()
	return b.flush(ctx, ins)
}

// drain returns when no flush is running or when the context ends.
func (b *batcher[In, Out]) drain(ctx context.Context) error {
	b.mu.Lock()
	if b.running == 0 {
		b.mu.Unlock()
		return nil
	}
	if b.idle == nil {
		b.idle = make(chan struct{})
	}
	idle := b.idle
	b.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
