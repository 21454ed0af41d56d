package e2e

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/e2e/launch"
)

// balancer hands each connection to the next process that takes it. A process
// that is down costs a refused dial; when all are down the client's connection
// ends, as it does at a real one.
type balancer struct {
	ln       net.Listener
	backends []*launch.Process
	next     atomic.Uint32
	dialed   atomic.Int64
	refused  atomic.Int64

	mu     sync.Mutex
	closed bool
	open   map[net.Conn]bool
	wg     sync.WaitGroup
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := &balancer{ln: ln, open: map[net.Conn]bool{}}
	t.Cleanup(b.close)
	return b
}

// serve begins to accept; until then connections wait in the listener.
func (b *balancer) serve(backends []*launch.Process) {
	b.backends = backends
	b.wg.Go(func() {
		for {
			client, err := b.ln.Accept()
			if err != nil {
				return // closed
			}
			b.wg.Go(func() { b.carry(client) })
		}
	})
}

// URL is the base address.
func (b *balancer) URL() string { return "http://" + b.ln.Addr().String() }

// carry copies both ways until either side ends.
func (b *balancer) carry(client net.Conn) {
	defer client.Close() //nolint:errcheck // the other side's end is no fault
	backend, err := b.dial()
	if err != nil || !b.track(client, backend) {
		return
	}
	defer b.forget(client, backend)
	var once sync.Once
	end := func() { once.Do(func() { _ = client.Close(); _ = backend.Close() }) }
	var wg sync.WaitGroup
	for _, way := range [][2]net.Conn{{client, backend}, {backend, client}} {
		wg.Go(func() {
			defer end()
			_, _ = io.Copy(way[0], way[1]) // ends with either side
		})
	}
	wg.Wait()
}

// dial asks each process once. A process that was restarted has another port.
func (b *balancer) dial() (net.Conn, error) {
	for range b.backends {
		p := b.backends[int(b.next.Add(1))%len(b.backends)]
		addr, ok := strings.CutPrefix(p.URL(), "http://")
		if !ok {
			continue
		}
		conn, err := net.DialTimeout("tcp", addr, 2*time.Second)
		if err == nil {
			b.dialed.Add(1)
			return conn, nil
		}
		b.refused.Add(1)
	}
	return nil, errors.New("no process takes connections")
}

func (b *balancer) track(conns ...net.Conn) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		if b.closed {
			_ = c.Close() // nobody uses it yet
			continue
		}
		b.open[c] = true
	}
	return !b.closed
}

func (b *balancer) forget(conns ...net.Conn) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range conns {
		delete(b.open, c)
	}
}

func (b *balancer) close() {
	b.mu.Lock()
	b.closed = true
	_ = b.ln.Close() // ends serve
	for c := range b.open {
		_ = c.Close() // ends carry
	}
	b.mu.Unlock()
	b.wg.Wait()
}
