package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
)

// target says which server and project a command talks to.
type target struct {
	URL     string `help:"Address of the server." env:"AIVEDIO_URL" placeholder:"URL"`
	Project string `help:"Project id." env:"AIVEDIO_PROJECT" placeholder:"prj_…"`
	APIKey  string `name:"api-key" help:"API key." env:"AIVEDIO_API_KEY" placeholder:"ak_…"`
	Data    string `help:"Folder of a running dev, whose address and key are used where none are given." env:"AIVEDIO_DATA" placeholder:"DIR" type:"path"`
}

// devFile is what `dev` writes and every client command reads.
type devFile struct {
	URL     string `json:"url"`
	Project string `json:"project"`
	APIKey  string `json:"key"`
	// Database lets doctor and key look at the same data; the file is for its
	// owner's eyes only.
	Database string `json:"database"`
	PID      int    `json:"pid"`
}

const devFileName = "dev.json"

// defaultDataDir is where `dev` keeps its data when no folder is named: the
// user's data folder, so that a second shell finds it from any directory.
func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "aivedio", "dev")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "aivedio-dev")
	}
	return filepath.Join(home, ".local", "share", "aivedio", "dev")
}

// apiClient speaks to one server.
type apiClient struct {
	base    string
	project string
	key     string
	http    *http.Client
}

// client completes the target from the file of a running dev.
func (t target) client() (*apiClient, error) {
	if t.URL == "" || t.Project == "" || t.APIKey == "" {
		f, err := readDevFile(t.Data)
		if err != nil {
			return nil, fmt.Errorf("no server is named: set AIVEDIO_URL, AIVEDIO_PROJECT and AIVEDIO_API_KEY, or start `aivedio dev` (%w)", err)
		}
		t.URL, t.Project, t.APIKey = either(t.URL, f.URL), either(t.Project, f.Project), either(t.APIKey, f.APIKey)
	}
	if _, err := url.ParseRequestURI(t.URL); err != nil {
		return nil, fmt.Errorf("the address %q is not a URL", t.URL)
	}
	return &apiClient{base: strings.TrimRight(t.URL, "/"), project: t.Project, key: t.APIKey, http: &http.Client{}}, nil
}

// readDevFile reads what a running dev left in its folder; the default one when
// dir is empty.
func readDevFile(dir string) (devFile, error) {
	var f devFile
	data, err := os.ReadFile(filepath.Join(either(dir, defaultDataDir()), devFileName))
	if err != nil {
		return f, err
	}
	return f, json.Unmarshal(data, &f)
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

// problem is the error document of the API.
type problem struct {
	Title   string `json:"title"`
	Status  int    `json:"status"`
	Detail  string `json:"detail"`
	Code    string `json:"code"`
	TraceID string `json:"trace_id"`
	Errors  []struct {
		Field  string `json:"field"`
		Detail string `json:"detail"`
	} `json:"errors"`
}

// Error is the sentence that a person needs, with the field faults.
func (p *problem) Error() string {
	var b strings.Builder
	b.WriteString(p.Detail)
	if p.Detail == "" {
		b.WriteString(p.Title)
	}
	for _, f := range p.Errors {
		fmt.Fprintf(&b, "\n  %s: %s", f.Field, f.Detail)
	}
	fmt.Fprintf(&b, " (%s", p.Code)
	if p.TraceID != "" {
		fmt.Fprintf(&b, ", %s", p.TraceID)
	}
	return b.String() + ")"
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
	resp, err := c.http.Do(req)
	if err != nil {
		return fmt.Errorf("no connection to %s: %w", c.base, errors.Unwrap(err))
	}
	defer resp.Body.Close()
	if resp.StatusCode >= 400 {
		return readProblem(resp)
	}
	if out == nil || resp.StatusCode == http.StatusNoContent {
		return nil
	}
	if err := json.NewDecoder(resp.Body).Decode(out); err != nil {
		return fmt.Errorf("the server's answer does not parse: %w", err)
	}
	return nil
}

// readProblem reads an error answer, whatever its form.
func readProblem(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return fmt.Errorf("the server answered %s and no more: %w", resp.Status, err)
	}
	p := problem{Status: resp.StatusCode, Title: resp.Status}
	if err := json.Unmarshal(data, &p); err != nil || p.Code == "" {
		return fmt.Errorf("the server answered %s", resp.Status)
	}
	return &p
}
