package e2e

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"
)

// tap stands between the vendor and the callbacks. It remembers every answer, and
// it can keep deliveries back: the vendor then believes that they arrived, as
// behind a queue of somebody else's.
type tap struct {
	server *httptest.Server
	target string
	client *http.Client

	mu      sync.Mutex
	log     []exchange
	keeping bool
	kept    []delivery
}

// exchange is one delivery to the callbacks and its answer.
type exchange struct {
	id           string // Webhook-Id
	hash         [sha256.Size]byte
	status       int // 0 without an answer
	retryAfter   string
	began, ended time.Time
}

// acknowledged reports that the sender was told that the delivery is stored.
func (e exchange) acknowledged() bool { return e.status >= 200 && e.status < 300 }

// delivery is a request that can be sent again.
type delivery struct {
	path   string
	header http.Header
	body   []byte
}

func newTap(t *testing.T, target string) *tap {
	t.Helper()
	// No idle connections: the balancer hands each connection to a process.
	p := &tap{target: target, client: &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}}
	p.server = httptest.NewServer(p)
	t.Cleanup(func() {
		p.server.CloseClientConnections()
		p.server.Close()
	})
	return p
}

// URL is the callbacks' address for the vendor.
func (p *tap) URL() string { return p.server.URL }

// ServeHTTP implements http.Handler.
func (p *tap) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	d := delivery{path: r.URL.RequestURI(), header: r.Header.Clone(), body: body}
	if p.keep(d) {
		w.WriteHeader(http.StatusOK)
		return
	}
	e := p.send(d)
	if e.status == 0 {
		panic(http.ErrAbortHandler)
	}
	if e.retryAfter != "" {
		w.Header().Set("Retry-After", e.retryAfter)
	}
	w.WriteHeader(e.status)
}

func (p *tap) keep(d delivery) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.keeping {
		p.kept = append(p.kept, d)
	}
	return p.keeping
}

// send brings a delivery to the callbacks, whatever its sender does meanwhile.
func (p *tap) send(d delivery) exchange {
	e := exchange{id: d.header.Get("Webhook-Id"), hash: sha256.Sum256(d.body), began: time.Now()}
	req, err := http.NewRequest(http.MethodPost, p.target+d.path, bytes.NewReader(d.body))
	if err != nil {
		panic(err) // the path was one already
	}
	req.Header = d.header.Clone()
	resp, err := p.client.Do(req)
	if err == nil {
		e.status, e.retryAfter = resp.StatusCode, resp.Header.Get("Retry-After")
		_ = resp.Body.Close() // the status is the answer
	}
	e.ended = time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.log = append(p.log, e)
	return e
}

// keepBack keeps deliveries from now on.
func (p *tap) keepBack() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keeping = true
}

// letGo lets deliveries pass again and returns those that were kept.
func (p *tap) letGo() []delivery {
	p.mu.Lock()
	defer p.mu.Unlock()
	kept := p.kept
	p.keeping, p.kept = false, nil
	return kept
}

// exchanges are those so far, in the order of their ends.
func (p *tap) exchanges() []exchange {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log[:len(p.log):len(p.log)]
}

// refused counts the deliveries that got a 503 so far.
func (p *tap) refused() int {
	n := 0
	for _, e := range p.exchanges() {
		if e.status == http.StatusServiceUnavailable {
			n++
		}
	}
	return n
}

// between are the exchanges that began and ended within a time.
func (p *tap) between(from, to time.Time) []exchange {
	var within []exchange
	for _, e := range p.exchanges() {
		if e.began.After(from) && e.ended.Before(to) {
			within = append(within, e)
		}
	}
	return within
}
