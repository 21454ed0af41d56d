package httpcall

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"sync/atomic"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// DefaultTimeout bounds a whole call when the client has no limit of its own.
const DefaultTimeout = 30 * time.Second

// Sizes above which an answer is not read: an error's body is only looked at for
// a code.
const (
	MaxAnswer = 4 << 20
	maxError  = 256 << 10
)

// Caller makes calls. Safe for concurrent use.
type Caller struct {
	client *http.Client
	now    func() time.Time
}

// New returns a caller. It copies the client, nil meaning a plain one, and
// switches redirects off: following one would send a create twice and the
// credentials somewhere else. now is nil for the wall clock; it only reads dates
// in Retry-After.
func New(client *http.Client, now func() time.Time) *Caller {
	own := http.Client{}
	if client != nil {
		own = *client
	}
	if own.Timeout == 0 {
		own.Timeout = DefaultTimeout
	}
	if shared, ok := http.DefaultTransport.(*http.Transport); ok && own.Transport == nil {
		// Two kept connections per host, and a hundred in all, are too few for a poller:
		// every call beyond them would begin with a handshake.
		transport := shared.Clone()
		transport.MaxIdleConns, transport.MaxIdleConnsPerHost = 0, 256
		own.Transport = transport
	}
	own.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if now == nil {
		now = time.Now
	}
	return &Caller{client: &own, now: now}
}

// Request is one call.
type Request struct {
	Method string
	URL    string
	// Bearer is the credential.
	Bearer string
	// Body is JSON, nil for none.
	Body []byte
	// Create marks the call that costs money.
	Create bool
}

// Answer is what came back, whatever the status.
type Answer struct {
	Status int
	Header http.Header
	Body   []byte
	// ReceivedAt is our clock when the answer was complete.
	ReceivedAt time.Time
}

// Do makes the call. The answer is nil only when there was none; with an answer
// that is no 2xx the error tells its class as [Classify] sees it, and the caller
// may know better from the body.
func (c *Caller) Do(ctx context.Context, r Request) (*Answer, *ports.ProviderError) {
	if err := ctx.Err(); err != nil {
		return nil, &ports.ProviderError{Class: ports.ClassTransport, NotSent: true, Code: "not_called", Err: err}
	}
	// A transport that honours the trace says when a connection is handed out:
	// before that, nothing can have been sent.
	var asked, connected atomic.Bool
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GetConn: func(string) { asked.Store(true) },
		GotConn: func(httptrace.GotConnInfo) { connected.Store(true) },
	})
	req, err := request(ctx, r)
	if err != nil {
		return nil, &ports.ProviderError{Class: ports.ClassTransport, NotSent: true, Code: "bad_request_url", Err: plain(err)}
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, &ports.ProviderError{
			Class: ports.ClassTransport, NotSent: asked.Load() && !connected.Load(), Code: "no_answer", Err: plain(err),
		}
	}
	defer resp.Body.Close()
	limit := int64(MaxAnswer + 1)
	if resp.StatusCode >= 300 {
		limit = maxError
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, limit))
	now := c.now()
	answer := &Answer{Status: resp.StatusCode, Header: resp.Header, Body: body, ReceivedAt: now}
	failure := Classify(resp.StatusCode, resp.Header, now, r.Create)
	switch {
	case failure != nil:
		// The status alone decides; what could be read of the body may add a code.
		return answer, failure
	case err != nil:
		return nil, &ports.ProviderError{Class: ports.ClassTransport, Code: "cut_answer", Err: plain(err)}
	case len(body) > MaxAnswer:
		return nil, Malformed("answer_too_large", fmt.Errorf("more than %d bytes", MaxAnswer))
	}
	return answer, nil
}

func request(ctx context.Context, r Request) (*http.Request, error) {
	var body io.Reader
	if r.Body != nil {
		body = bytes.NewReader(r.Body)
	}
	req, err := http.NewRequestWithContext(ctx, r.Method, r.URL, body)
	if err != nil {
		return nil, err
	}
	if req.URL.Host == "" {
		return nil, errors.New("no host in the base URL")
	}
	if r.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.Bearer != "" {
		req.Header.Set("Authorization", "Bearer "+r.Bearer)
	}
	req.Header.Set("Accept", "application/json")
	req.Header.Set("User-Agent", "aivedio")
	return req, nil
}

// plain drops the URL that net/http puts into its errors.
func plain(err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		return wrapped.Err
	}
	return err
}
