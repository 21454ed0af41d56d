package load

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Run sends deliveries over several connections at once.
type Run struct {
	// Addr is host:port of the receiver.
	Addr string
	// Conns is the number of connections; each has one request under way at most.
	Conns int
	// Rate is deliveries per second over all connections; 0 sends each as soon as
	// the answer before it has come. A late one is made up for, so that a receiver
	// that was away meets the backlog as vendors would build it.
	Rate float64
	// Timeout bounds one exchange; 15 s when zero.
	Timeout time.Duration
	// Next gives connection number n its next delivery; nil ends the connection.
	Next func(n int) *Delivery
	// Done reports an exchange of connection number n.
	Done func(n int, r Result)
}

// Result is what became of one exchange.
type Result struct {
	Delivery *Delivery
	// Due is when it was to be sent; with a Rate of 0 when it was.
	Due time.Time
	// Status of the answer; 0 when none came.
	Status int
	// RetryAfter: the answer says when to come again.
	RetryAfter bool
	// Took is from the first byte sent to the end of the answer. With a Rate, a
	// receiver that is late delays what is due next: what a client of its own would
	// have waited is the time from Due, Waited.
	Took time.Duration
	// Waited is from Due to the end of the answer.
	Waited time.Duration
	// Err says why no answer came.
	Err error
}

// Acknowledged reports a 2xx: the receiver says that it has stored the delivery.
func (r Result) Acknowledged() bool { return r.Status >= 200 && r.Status < 300 }

// Do sends until the context ends or every connection got nil from Next.
// Exchanges that have begun are finished. Next and Done are called by several
// goroutines, though never at once for the same n.
func (r Run) Do(ctx context.Context) {
	r.Timeout = cmp.Or(r.Timeout, 15*time.Second)
	p := &pace{began: time.Now(), rate: r.Rate}
	var wg sync.WaitGroup
	for n := range r.Conns {
		wg.Go(func() { r.one(ctx, n, p) })
	}
	wg.Wait()
}

func (r Run) one(ctx context.Context, n int, p *pace) {
	c := conn{addr: r.Addr, timeout: r.Timeout, buf: make([]byte, 8<<10)}
	defer c.close()
	for {
		due, ok := p.wait(ctx)
		if !ok {
			return
		}
		d := r.Next(n)
		if d == nil {
			return
		}
		began := time.Now()
		if due.IsZero() {
			due = began
		}
		a, err := c.send(ctx, d.request)
		r.Done(n, Result{Delivery: d, Due: due, Status: a.status, RetryAfter: a.retryAfter, Took: time.Since(began), Waited: time.Since(due), Err: err})
	}
}

// pace hands out the moments at which deliveries are due.
type pace struct {
	began time.Time
	rate  float64
	slots atomic.Int64
}

// wait returns when the next slot is due, and when that was; the zero time without
// a rate, false at the end of the context.
func (p *pace) wait(ctx context.Context) (time.Time, bool) {
	if p.rate <= 0 {
		return time.Time{}, ctx.Err() == nil
	}
	slot := p.slots.Add(1) - 1
	due := p.began.Add(time.Duration(float64(slot) / p.rate * float64(time.Second)))
	left := time.Until(due)
	if left <= 0 {
		return due, ctx.Err() == nil
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
		return due, true
	case <-ctx.Done():
		return due, false
	}
}
