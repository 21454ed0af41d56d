package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// gate stands between the submit role and the vendor. It can hold creates, every
// other one on its way there and the rest on their way back, so that a kill finds
// calls whose fate nobody can know.
type gate struct {
	server *httptest.Server
	vendor *httputil.ReverseProxy

	mu      sync.Mutex
	room    int           // how many more creates are held
	freed   chan struct{} // closed by release
	changed chan struct{} // closed and replaced when a count changes
	counts  gateCounts
}

// gateCounts is what became of held creates.
type gateCounts struct {
	Held    int // so far
	Unsent  int // the caller died before the vendor was called
	Unheard int // the caller died after the vendor had accepted
}

func newGate(t *testing.T, vendor string) *gate {
	t.Helper()
	u, err := url.Parse(vendor)
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{freed: make(chan struct{}), changed: make(chan struct{})}
	g.vendor = &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(u)
			r.Out.Host = r.In.Host // outputs are then fetched through the gate as well
		},
		// A failing query of the vendor closes the connection: so does the gate.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	g.server = httptest.NewServer(g)
	t.Cleanup(func() {
		g.release()
		g.server.CloseClientConnections()
		g.server.Close()
	})
	return g
}

// URL is the vendor's address for the product.
func (g *gate) URL() string { return g.server.URL }

// hold makes the next n creates wait.
func (g *gate) hold(n int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room = n
}

// release lets them go, those whose caller is still there.
func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.room = 0
	select {
	case <-g.freed:
	default:
		close(g.freed)
	}
}

// until waits for the counts to satisfy enough; false when ctx ends first.
func (g *gate) until(ctx context.Context, enough func(gateCounts) bool) bool {
	for {
		g.mu.Lock()
		counts, changed := g.counts, g.changed
		g.mu.Unlock()
		if enough(counts) {
			return true
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false
		}
	}
}

func (g *gate) count(change func(*gateCounts)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	change(&g.counts)
	close(g.changed)
	g.changed = make(chan struct{})
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	create := r.Method == http.MethodPost && (strings.HasSuffix(r.URL.Path, "/predictions") || strings.HasSuffix(r.URL.Path, "/videos"))
	held, nth := g.take(create)
	if held { // only behind the body does the server notice that a caller has gone
		body, err := io.ReadAll(r.Body)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	switch {
	case !held:
		g.vendor.ServeHTTP(w, r)
	case nth%2 == 0:
		g.count(func(c *gateCounts) { c.Held++ })
		if !g.wait(r) {
			g.count(func(c *gateCounts) { c.Unsent++ })
			panic(http.ErrAbortHandler)
		}
		g.vendor.ServeHTTP(w, r)
	default:
		answer := httptest.NewRecorder()
		g.vendor.ServeHTTP(answer, r)
		g.count(func(c *gateCounts) { c.Held++ })
		if !g.wait(r) {
			g.count(func(c *gateCounts) { c.Unheard++ })
			panic(http.ErrAbortHandler)
		}
		for name, values := range answer.Header() {
			w.Header()[name] = values
		}
		w.WriteHeader(answer.Code)
		_, _ = w.Write(answer.Body.Bytes()) // a caller that is gone is the point
	}
}

func (g *gate) take(create bool) (held bool, nth int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !create || g.room == 0 {
		return false, 0
	}
	g.room--
	return true, g.room
}

// wait is false when the caller went away first.
func (g *gate) wait(r *http.Request) bool {
	select {
	case <-r.Context().Done():
		return false
	case <-g.freed:
		return r.Context().Err() == nil
	}
}

// sum returns the counts so far.
func (g *gate) sum() gateCounts {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.counts
}
