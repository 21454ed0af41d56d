package app_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// vendor is a fake of one AI vendor, and the set of providers that holds it. Its
// webhooks are JSON objects; a body with "bad signature" is refused.
type vendor struct {
	mu sync.Mutex
	// caps may be changed before use.
	caps     ports.Capabilities
	names    []string
	accounts []ports.Account

	// onSubmit answers a create; nil accepts it. creates counts them per attempt,
	// and jobs holds what the vendor has really started.
	onSubmit func(req ports.SubmitRequest) (ports.SubmitResult, error)
	creates  map[domain.AttemptID]int
	urls     map[domain.AttemptID]string
	jobs     map[string]string // client request id → provider task id
	// notSent counts creates that the vendor turned away.
	notSent map[domain.AttemptID]int

	// onQuery answers a query; nil says running.
	onQuery func(req ports.QueryRequest) (ports.QueryResult, error)
	queries int

	onCancel func(req ports.QueryRequest) (bool, error)
	cancels  int
}

func newVendor() *vendor {
	return &vendor{
		caps: ports.Capabilities{
			Name: "acme", Webhook: ports.WebhookPerTask, Trust: domain.TrustAuthentic, Intermediate: true,
			Policy: domain.Policy{CanCancel: true},
		},
		names:    []string{"acme"},
		accounts: []ports.Account{{ID: "main", BaseURL: "https://api.acme.example", APIKey: "k"}, {ID: "spare"}},
		creates:  map[domain.AttemptID]int{}, urls: map[domain.AttemptID]string{}, jobs: map[string]string{},
		notSent: map[domain.AttemptID]int{},
	}
}

var (
	_ ports.Providers = (*vendor)(nil)
	_ ports.Provider  = (*vendor)(nil)
	_ ports.Canceler  = (*vendor)(nil)
	_ ports.Looker    = lookingVendor{}
)

func (v *vendor) Provider(name string) (ports.Provider, bool) {
	if !slices.Contains(v.names, name) {
		return nil, false
	}
	if v.caps.Policy.CanLookup {
		return lookingVendor{v}, true
	}
	return v, true
}

func (v *vendor) Accounts(name string) []ports.Account {
	if !slices.Contains(v.names, name) {
		return nil
	}
	return v.accounts
}

// queryCount is how often the vendor was asked.
func (v *vendor) queryCount() int {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.queries
}

func (v *vendor) Names() []string                  { return v.names }
func (v *vendor) Capabilities() ports.Capabilities { return v.caps }

func (v *vendor) Submit(ctx context.Context, req ports.SubmitRequest) (ports.SubmitResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.creates[req.Attempt.ID]++
	v.urls[req.Attempt.ID] = req.CallbackURL
	if v.onSubmit != nil {
		return v.onSubmit(req)
	}
	return ports.SubmitResult{ProviderTaskID: v.start(req.Attempt.ClientRequestID)}, nil
}

// start begins a job, or returns the one that the request id began before.
func (v *vendor) start(clientRequestID string) string {
	if id, ok := v.jobs[clientRequestID]; ok {
		return id
	}
	id := fmt.Sprintf("job-%d", len(v.jobs)+1)
	v.jobs[clientRequestID] = id
	return id
}

func (v *vendor) Query(ctx context.Context, req ports.QueryRequest) (ports.QueryResult, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.queries++
	if v.onQuery != nil {
		return v.onQuery(req)
	}
	return ports.QueryResult{Observation: domain.Observation{Provider: "acme", ProviderTaskID: req.Attempt.ProviderTaskID, Status: domain.ObservedRunning}}, nil
}

func (v *vendor) Cancel(ctx context.Context, req ports.QueryRequest) (bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.cancels++
	if v.onCancel != nil {
		return v.onCancel(req)
	}
	return false, nil
}

// news is the body of a webhook.
type news struct {
	Event    string `json:"event"`
	Job      string `json:"job"`
	Status   string `json:"status"`
	Seq      *int64 `json:"seq"`
	Progress *int   `json:"progress"`
	Output   string `json:"output"`
	// Trust overrides the vendor's level.
	Trust string `json:"trust"`
}

func (v *vendor) Verify(req ports.VerifyRequest) (ports.Delivery, error) {
	if strings.Contains(string(req.Body), "bad signature") {
		return ports.Delivery{}, &ports.VerifyError{Reason: "bad_signature"}
	}
	if strings.Contains(string(req.Body), "panic in verify") {
		panic("adapter")
	}
	var n news
	_ = json.Unmarshal(req.Body, &n)
	trust := v.caps.Trust
	if n.Trust != "" {
		trust = domain.Trust(n.Trust)
	}
	return ports.Delivery{
		AccountID: req.Accounts[0].ID, Trust: trust, KeyVersion: "1",
		Identity: n.Event, ProviderEventID: n.Event, ProviderTaskID: n.Job,
	}, nil
}

func (v *vendor) Decode(row ports.InboxRow) (domain.Observation, bool, error) {
	if strings.Contains(string(row.Payload), "panic in decode") {
		panic("adapter")
	}
	var n news
	if err := json.Unmarshal(row.Payload, &n); err != nil {
		return domain.Observation{}, false, err
	}
	if n.Status == "foreign" {
		return domain.Observation{}, true, nil
	}
	obs := domain.Observation{
		Provider: "acme", ProviderTaskID: n.Job, Status: domain.Observed(n.Status), ProviderSequence: n.Seq,
		SequenceKind: domain.SequenceCounter, Progress: n.Progress,
	}
	if n.Output != "" {
		obs.Outputs = []domain.OutputRef{{Kind: "video", Ref: n.Output, URL: n.Output}}
	}
	return obs, false, nil
}

// lookingVendor also finds jobs by our request id.
type lookingVendor struct{ *vendor }

func (v lookingVendor) Lookup(ctx context.Context, req ports.QueryRequest) (ports.QueryResult, bool, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	id, ok := v.jobs[req.Attempt.ClientRequestID]
	if !ok {
		return ports.QueryResult{}, false, nil
	}
	return ports.QueryResult{Observation: domain.Observation{Provider: "acme", ProviderTaskID: id, Status: domain.ObservedQueued}}, true, nil
}

// lost is an answer that never came.
func lost() error {
	return &ports.ProviderError{Class: ports.ClassTransport, Err: errors.New("reset")}
}

// succeeded is a query's answer with one output.
func succeeded(req ports.QueryRequest) (ports.QueryResult, error) {
	return ports.QueryResult{Observation: domain.Observation{
		Provider: "acme", ProviderTaskID: req.Attempt.ProviderTaskID, Status: domain.ObservedSucceeded,
		Outputs: []domain.OutputRef{{Kind: "video", Ref: "out", URL: "https://cdn.acme.example/out.mp4"}},
	}, NextAfter: time.Second}, nil
}
