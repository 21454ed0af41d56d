package httpapi

import (
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestSilentBody promises a body, sends a part of it and falls silent, on a real
// connection: the answer comes after BodyTimeout, and the connection ends.
func TestSilentBody(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	cfg := f.server.cfg
	cfg.BodyTimeout = 20 * time.Millisecond
	server := httptest.NewServer(must(New(cfg)).Handler())
	t.Cleanup(server.Close)
	for _, tt := range []struct{ name, path, key, framing, status, code string }{
		{"submit", f.tasks(), f.key, "Content-Length: 500", "400 Bad Request", "truncated_body"},
		{"submit in chunks", f.tasks(), f.key, "Transfer-Encoding: chunked", "400 Bad Request", "truncated_body"},
		{"callback", f.delivery("evt", "{}").path, "", "Content-Length: 500", "400 Bad Request", "truncated_body"},
		{"refused before the body", f.tasks(), "", "Content-Length: 500", "401 Unauthorized", "unauthenticated"},
		{"no such route", "/nothing", "", "Content-Length: 500", "404 Not Found", "no_such_route"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			conn, err := net.Dial("tcp", server.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			part := "6\r\n{\"a\":1\r\n"
			if strings.HasPrefix(tt.framing, "Content-Length") {
				part = `{"a":1`
			}
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n%s\r\n\r\n%s", tt.path, tt.key, tt.framing, part)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(10 * time.Second))
			answer, err := io.ReadAll(conn) // until the server closes
			if err != nil {
				t.Errorf("the connection stays open: %v", err)
			}
			if !strings.HasPrefix(string(answer), "HTTP/1.1 "+tt.status) || !strings.Contains(string(answer), tt.code) {
				t.Errorf("answer %q, want %s %s", answer, tt.status, tt.code)
			}
		})
	}
}
