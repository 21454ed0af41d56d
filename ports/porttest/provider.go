package porttest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ProviderFixture describes a vendor's adapter to the suite.
type ProviderFixture struct {
	// New returns an adapter that calls through the client.
	New func(client *http.Client) ports.Provider
	// Account is a complete account; with two secrets where the vendor has a
	// webhook. Its BaseURL is the suite's, BasePath what follows the host.
	Account  ports.Account
	BasePath string
	Model    string
	// Job is a query's answer about a job, in the vendor's shape. The id stands in
	// it once, as a JSON string; so does the status.
	Job func(id, status string) []byte
	// Words are the vendor's status words with their meaning.
	Words map[string]domain.Observed
	// Recorded are answers as the vendor gave them, all about the job RecordedID.
	Recorded   []ProviderShape
	RecordedID string
	// Event is a delivery about a job that has ended well, and Sign its headers.
	// Both are nil for a vendor without a webhook.
	Event func(id string) []byte
	Sign  func(secret ports.Secret, body []byte, at time.Time) http.Header
}

// ProviderShape is a recorded answer and what it means.
type ProviderShape struct {
	Name     string
	Body     []byte
	Status   domain.Observed
	Progress *int
	Outputs  []domain.OutputRef
	Class    domain.ErrorClass
	Code     string
	// Message is the vendor's sentence, cleaned.
	Message string
}

// providerNow is the moment at which the suite plays.
var providerNow = time.Date(2026, 9, 21, 14, 13, 20, 0, time.UTC)

const (
	suiteHost     = "http://vendor.test"
	suiteJob      = "job-1"
	suiteCallback = "https://aivedio.test/callbacks/vendor/token"
	foreignHost   = "elsewhere.test"
)

// Provider runs the conformance suite of [ports.Provider].
func Provider(t *testing.T, f ProviderFixture) {
	tests := []struct {
		name string
		run  func(*testing.T, ProviderFixture)
	}{
		{"Capabilities", providerCapabilities},
		{"SubmitRequest", providerSubmitRequest},
		{"SubmitAccepted", providerSubmitAccepted},
		{"SubmitIDAlone", providerSubmitIDAlone},
		{"SubmitErrors", providerSubmitErrors},
		{"SubmitBadAnswers", providerSubmitBadAnswers},
		{"SubmitConnection", providerSubmitConnection},
		{"QueryWords", providerQueryWords},
		{"QueryRecorded", providerQueryRecorded},
		{"QueryErrors", providerQueryErrors},
		{"QueryBadAnswers", providerQueryBadAnswers},
		{"QueryIdentity", providerQueryIdentity},
		{"QueryMutations", providerQueryMutations},
		{"Cancel", providerCancel},
		{"VerifyGenuine", providerVerifyGenuine},
		{"VerifyForged", providerVerifyForged},
		{"VerifyTime", providerVerifyTime},
		{"DecodeMutations", providerDecodeMutations},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			test.run(t, f)
		})
	}
}

// script is a transport that gives one answer and keeps the requests.
type script struct {
	mu       sync.Mutex
	status   int
	header   http.Header
	body     []byte
	requests []*http.Request
	bodies   []string
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var sent []byte
	if r.Body != nil {
		sent, _ = io.ReadAll(r.Body)
		r.Body.Close()
	}
	s.requests, s.bodies = append(s.requests, r), append(s.bodies, string(sent))
	header := s.header
	if header == nil {
		header = http.Header{}
	}
	return &http.Response{
		StatusCode: s.status, Header: header, Body: io.NopCloser(bytes.NewReader(s.body)),
		ContentLength: int64(len(s.body)), ProtoMajor: 1, ProtoMinor: 1, Request: r,
	}, nil
}

// scripted is an adapter in front of a script.
type scripted struct {
	ports.Provider
	*script
}

func (f ProviderFixture) vendor(status int, body []byte) scripted {
	s := &script{status: status, body: body}
	return scripted{f.New(&http.Client{Transport: s}), s}
}

func (f ProviderFixture) account() ports.Account {
	a := f.Account
	a.BaseURL = suiteHost + f.BasePath
	return a
}

func (f ProviderFixture) attempt(id string) domain.Attempt {
	return domain.Attempt{
		ID: domain.AttemptID{ID: domain.ID{7}}, No: 1, Model: f.Model, AccountID: f.Account.ID, BaseURL: suiteHost + f.BasePath,
		ClientRequestID: "client-1", ProviderTaskID: id, Status: domain.AttemptSubmitted,
	}
}

func (f ProviderFixture) submit() ports.SubmitRequest {
	return ports.SubmitRequest{
		Account: f.account(), Attempt: f.attempt(""), CallbackURL: suiteCallback,
		Input: ports.TaskInput{Prompt: "a red kite over the sea"},
	}
}

func (f ProviderFixture) query(id string) ports.QueryRequest {
	return ports.QueryRequest{Account: f.account(), Attempt: f.attempt(id)}
}

// word is a word of the vendor with the meaning.
func (f ProviderFixture) word(t *testing.T, meaning domain.Observed) string {
	t.Helper()
	best := ""
	for word, m := range f.Words {
		if m == meaning && (best == "" || word < best) {
			best = word
		}
	}
	if best == "" {
		t.Fatalf("the fixture has no word for %s", meaning)
	}
	return best
}

// fault is the error as a port error; nil for none.
func fault(t *testing.T, err error) *ports.ProviderError {
	t.Helper()
	if err == nil {
		return nil
	}
	var e *ports.ProviderError
	if !errors.As(err, &e) {
		t.Fatalf("the error is no *ports.ProviderError: %v", err)
	}
	if strings.Contains(e.Error(), "://") {
		t.Errorf("the error has a URL in it: %v", e)
	}
	checkMessage(t, e.Message)
	if len(e.Message) > 10 && strings.Contains(e.Error(), e.Message) {
		t.Errorf("the vendor's sentence would reach a log: %v", e)
	}
	return e
}

// checkMessage: what is kept of a vendor's sentence is short, one line and without
// addresses.
func checkMessage(t *testing.T, message string) {
	t.Helper()
	if len(message) > domain.MaxErrorMessage || !utf8.ValidString(message) || strings.ContainsAny(message, "\n\r\x00") || strings.Contains(message, "://") {
		t.Errorf("message %q", message)
	}
}

func providerCapabilities(t *testing.T, f ProviderFixture) {
	p := f.New(nil)
	c := p.Capabilities()
	if c.Name == "" || c != p.Capabilities() {
		t.Errorf("capabilities must have a name and never change: %+v", c)
	}
	if _, ok := p.(ports.Canceler); ok != c.Policy.CanCancel {
		t.Errorf("CanCancel %v, Canceler %v", c.Policy.CanCancel, ok)
	}
	if _, ok := p.(ports.Looker); ok != c.Policy.CanLookup {
		t.Errorf("CanLookup %v, Looker %v", c.Policy.CanLookup, ok)
	}
	if (c.Webhook == ports.WebhookNone) != (f.Event == nil) || (f.Event == nil) != (f.Sign == nil) {
		t.Errorf("webhook %q, but Event %v and Sign %v", c.Webhook, f.Event != nil, f.Sign != nil)
	}
}
