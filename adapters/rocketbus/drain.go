package rocketbus

import (
	"sync"
	"time"
)

// settleTime lets the library record the result of the last call.
const settleTime = 50 * time.Millisecond

// quietTime is how long a drain waits for a call that does not come: a queue
// that moved to another consumer took what was pulled from it along.
const quietTime = time.Second

// drain knows what a consumer has pulled and not handled. The library's Shutdown
// closes the channels that carry it, and a pull that sends on a closed channel
// ends the process: so all that was pulled is handled first, and what a pull
// finds from then on is dropped before it is sent. Nothing of it is lost: its
// offset is never stored, since the pull does not go on.
type drain struct {
	progress chan struct{}
	stopped  chan struct{}

	mu      sync.Mutex
	closing bool
	drained bool
	waiting int // messages
	running int // calls
}

func newDrain() drain {
	return drain{progress: make(chan struct{}, 1), stopped: make(chan struct{})}
}

// pull notes messages on their way to a call, and reports false when they have
// to be dropped.
func (d *drain) pull(messages int) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closing {
		return false
	}
	d.waiting += messages
	return true
}

// begin notes a call. After the drain it returns false, but not before Shutdown:
// until then any result would acknowledge the batch or send it back.
func (d *drain) begin(messages int) bool {
	d.mu.Lock()
	if d.drained {
		d.mu.Unlock()
		<-d.stopped
		return false
	}
	defer d.mu.Unlock()
	d.waiting = max(0, d.waiting-messages)
	d.running++
	d.signal()
	return true
}

// end notes the end of a call.
func (d *drain) end() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running--
	d.signal()
}

// signal wakes wait; the caller holds mu.
func (d *drain) signal() {
	select {
	case d.progress <- struct{}{}:
	default:
	}
}

// wait drops what is pulled from now on and returns after the calls for what was
// pulled before.
func (d *drain) wait() {
	d.mu.Lock()
	d.closing = true
	d.mu.Unlock()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for !d.tryFinish(false) {
		select {
		case <-d.progress:
			quiet.Reset(quietTime)
		case <-quiet.C:
			d.tryFinish(true)
			quiet.Reset(quietTime)
		}
	}
	<-time.After(settleTime)
}

// tryFinish ends the drain when no call runs and nothing waits, or nothing has
// moved for long.
func (d *drain) tryFinish(quiet bool) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.drained = d.drained || d.running == 0 && (quiet || d.waiting == 0)
	return d.drained
}

// over ends the waiting of late calls, after Shutdown.
func (d *drain) over() { close(d.stopped) }
