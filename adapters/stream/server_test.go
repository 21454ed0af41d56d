package stream

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// pipeListener hands out one end of a pipe.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l pipeListener) Close() error   { close(l.done); return nil }
func (l pipeListener) Addr() net.Addr { return &net.UnixAddr{} }

// TestServerTimeouts outlives the time-outs of the server that carries it, with a
// stream and with a long-poll, and leaves the connection fit for another request.
func TestServerTimeouts(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, nil)
		l := pipeListener{make(chan net.Conn), make(chan struct{})}
		server := &http.Server{
			ReadTimeout: time.Second, WriteTimeout: time.Second, IdleTimeout: time.Hour,
			Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if err := b.hub.ServeEvents(w, r, StreamRequest{Project: testProject}); err != nil {
					t.Errorf("ServeEvents: %v", err)
				}
			}),
		}
		served := make(chan error, 1)
		go func() { served <- server.Serve(l) }()
		near, far := net.Pipe()
		l.conns <- far
		in := bufio.NewReader(near)
		ask := func(accept, query string) {
			if _, err := fmt.Fprintf(near, "GET /events%s HTTP/1.1\r\nHost: x\r\nAccept: %s\r\n\r\n", query, accept); err != nil {
				t.Fatal(err)
			}
		}

		ask("application/json", "?wait=30s")
		time.Sleep(20 * time.Second)
		b.commit(taskA)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("long-poll: %v", err)
		}
		body, err := bufio.NewReader(resp.Body).ReadString('\n')
		if err != nil || !strings.Contains(body, `"event_id":1`) {
			t.Fatalf("long-poll: %q, %v", body, err)
		}

		ask("text/event-stream", "?after=1")
		resp, err = http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("stream: %v", err)
		}
		timer := time.AfterFunc(5*time.Minute, func() { b.commit(taskA) })
		defer timer.Stop()
		lines := bufio.NewScanner(resp.Body)
		pings := 0
		for lines.Scan() && !strings.Contains(lines.Text(), `"event_id":2`) {
			if strings.HasPrefix(lines.Text(), ": ping") {
				pings++
			}
		}
		if pings < 12 || !strings.Contains(lines.Text(), `"event_id":2`) {
			t.Errorf("the stream ended after %d heartbeats: %v", pings, lines.Err())
		}
		_ = near.Close()
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	})
}
