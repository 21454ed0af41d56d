package pgstore_test

import (
	"errors"
	"io"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between the store and the server and can swallow the answer to a
// COMMIT, closing the connection instead.
type proxy struct {
	url         string
	loseCommits atomic.Int64
}

func newProxy(t *testing.T, target string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	p, server := &proxy{}, u.Host
	u.Host = listener.Addr().String()
	p.url = u.String()
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			wg.Go(func() { p.serve(client, server) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); wg.Wait() })
	return p
}

func (p *proxy) serve(client net.Conn, address string) {
	defer client.Close()
	server, err := net.Dial("tcp", address)
	if err != nil {
		return
	}
	defer server.Close()
	var swallow atomic.Bool
	var wg sync.WaitGroup
	wg.Go(func() {
		defer server.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := client.Read(buf)
			if strings.Contains(string(buf[:n]), "\x0bCOMMIT\x00") && p.loseCommits.CompareAndSwap(1, 0) {
				swallow.Store(true)
			}
			if _, werr := server.Write(buf[:n]); err != nil || werr != nil {
				return
			}
		}
	})
	buf := make([]byte, 64<<10)
	for {
		n, err := server.Read(buf)
		if swallow.Load() || err != nil && !errors.Is(err, io.EOF) {
			break
		}
		if _, werr := client.Write(buf[:n]); err != nil || werr != nil {
			break
		}
	}
	client.Close()
	wg.Wait()
}
