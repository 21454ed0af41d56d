package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// answerTimeout bounds a request with its answer, and the wait for the head of a
// stream or a file.
const answerTimeout = 30 * time.Second

// apiClient speaks to one server.
type apiClient struct {
	base    string
	project string
	key     string
	http    *http.Client
	timeout time.Duration
}

func newClient(base, project, key string) *apiClient {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.ResponseHeaderTimeout = answerTimeout
	return &apiClient{base: strings.TrimRight(base, "/"), project: project, key: key, http: &http.Client{Transport: transport}, timeout: answerTimeout}
}

// path is a path below the project.
func (c *apiClient) path(parts ...string) string {
	p := "/projects/" + url.PathEscape(c.project)
	for _, part := range parts {
		p += "/" + url.PathEscape(part)
	}
	return p
}

// request builds an authorised request.
func (c *apiClient) request(ctx context.Context, method, path string, body any) (*http.Request, error) {
	var r io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return nil, fmt.Errorf("encode request: %w", err)
		}
		r = bytes.NewReader(data)
	}
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, r)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.key)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	return req, nil
}

// call sends a request and decodes the answer. A problem document becomes a
// *problem.
func (c *apiClient) call(ctx context.Context, method, path string, body, out any) error {
	req, err := c.request(ctx, method, path, body)
	if err != nil {
		return err
	}
	return c.send(req, out)
}

func (c *apiClient) send(req *http.Request, out any) error {
	ctx, cancel := context.WithTimeout(req.Context(), c.timeout)
	defer cancel()
	resp, err := c.open(req.WithContext(ctx))
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		return c.disconnected(err)
	}
	if err := json.Unmarshal(data, out); err != nil {
		return fmt.Errorf("the answer of %s does not parse; is it the address of an aivedio server? (%w)", c.base, err)
	}
	return nil
}

// open sends a request and leaves the body to the caller, who may read for as long
// as it lasts. An error answer is the error that it tells.
func (c *apiClient) open(req *http.Request) (*http.Response, error) {
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, c.disconnected(err)
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		return nil, readProblem(resp)
	}
	return resp, nil
}

// disconnected says in one sentence why there was no answer.
func (c *apiClient) disconnected(err error) error {
	if errors.Is(err, context.Canceled) {
		return &exitError{code: exitInterrupted}
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		return &noAnswer{fmt.Sprintf("%s did not answer within %s", c.base, c.timeout), err}
	}
	return &noAnswer{fmt.Sprintf("no connection to %s: %s", c.base, cause(err)), err}
}

// noAnswer is a request that got no answer, told once and without the stutter of
// the layers below.
type noAnswer struct {
	text string
	err  error
}

func (e *noAnswer) Error() string { return e.text }
func (e *noAnswer) Unwrap() error { return e.err }
