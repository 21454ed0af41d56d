package ports

import (
	"context"
	"io"
	"net/http"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Provider speaks one vendor's API. It decides nothing: it turns bytes into
// observations and errors into classes. Optional powers are the interfaces
// Canceler, Looker and OutputOpener, found by assertion.
type Provider interface {
	// Capabilities is the vendor as data; constant.
	Capabilities() Capabilities
	// Submit calls the vendor's create, once: no retry inside. Errors are
	// *ProviderError; NotSent only when the vendor provably has nothing. Only the
	// submit role may hold this (I8).
	Submit(ctx context.Context, req SubmitRequest) (SubmitResult, error)
	// Query asks for the state of a job. Errors are *ProviderError.
	Query(ctx context.Context, req QueryRequest) (QueryResult, error)
	// Verify proves a delivery on its raw bytes before anything is parsed, and
	// reads its identity. Errors are *VerifyError.
	Verify(req VerifyRequest) (Delivery, error)
	// Decode reads a verified body: an Observation without identity of ours, or
	// foreign for events that are not about a job. It must not panic on any bytes.
	Decode(row InboxRow) (obs domain.Observation, foreign bool, err error)
}

// Canceler is a vendor whose jobs can be canceled.
type Canceler interface {
	// Cancel asks the vendor to stop. refused means that the vendor said no, or
	// too late; an error says nothing.
	Cancel(ctx context.Context, req QueryRequest) (refused bool, err error)
}

// Looker is a vendor that finds a job by our own id.
type Looker interface {
	// Lookup finds the job of a client request id. found is false when the vendor
	// does not know it.
	Lookup(ctx context.Context, req QueryRequest) (result QueryResult, found bool, err error)
}

// OutputOpener is a vendor whose outputs need more than a GET of their URL.
type OutputOpener interface {
	// OutputRequest builds the download request of an output, with credentials.
	OutputRequest(ctx context.Context, req QueryRequest, ref domain.OutputRef) (*http.Request, error)
}

// Capabilities is a vendor as data.
type Capabilities struct {
	Name string
	// Policy is what the state machine has to know.
	Policy domain.Policy
	// Webhook: none, per_task or per_account.
	Webhook WebhookKind
	// Trust is the best level that its deliveries reach.
	Trust domain.Trust
	// OutputLifetime is how long outputs can be fetched; 0 when not documented.
	OutputLifetime time.Duration
	// Intermediate: it also reports before the end.
	Intermediate bool
}

// WebhookKind says which callback URLs a vendor knows.
type WebhookKind string

// The kinds of webhook.
const (
	WebhookNone       WebhookKind = "none"
	WebhookPerTask    WebhookKind = "per_task"
	WebhookPerAccount WebhookKind = "per_account"
)

// Account is one set of credentials with a vendor, from the configuration.
type Account struct {
	// ID names it within the provider, for instance "main".
	ID      string
	BaseURL string
	APIKey  string
	// Secrets verify webhooks, the newest first; at least two may be live.
	Secrets []Secret
}

// Secret is one webhook secret.
type Secret struct {
	Version string
	Value   string
}

// SubmitRequest is one create.
type SubmitRequest struct {
	Account Account
	Attempt domain.Attempt
	Input   TaskInput
	// CallbackURL is where the vendor shall report; empty when it has no webhook
	// or knows one endpoint per account.
	CallbackURL string
}

// SubmitResult is the vendor's answer to a create.
type SubmitResult struct {
	ProviderTaskID string
	// Observation is the state that came with the answer, nil when it had none.
	Observation *domain.Observation
}

// QueryRequest names a job.
type QueryRequest struct {
	Account Account
	Attempt domain.Attempt
}

// QueryResult is the vendor's answer to a query.
type QueryResult struct {
	Observation domain.Observation
	// NextAfter is the vendor's wish for the next query, 0 when it has none.
	NextAfter time.Duration
}

// VerifyRequest is a delivery as it came.
type VerifyRequest struct {
	Header http.Header
	Body   []byte
	// Path and Query are those of the URL that we registered.
	Path  string
	Query string
	// Token is set when the URL carries an attempt's token that we know to be ours.
	Token    string
	Accounts []Account
	Now      time.Time
}

// Delivery is what a verified delivery says about itself.
type Delivery struct {
	AccountID  string
	Trust      domain.Trust
	KeyVersion string
	// Identity is the best name for deduplication: signed id or nonce, vendor event
	// id, task id with type, time and hash, or the hash alone.
	Identity           string
	ProviderEventID    string
	ProviderTaskID     string
	ClientRequestID    string
	ProviderOccurredAt *time.Time
}

// VerifyError says why a delivery is refused. Its text is for our log, never for
// the sender.
type VerifyError struct {
	// Reason is a stable word: missing_header, bad_timestamp, stale, future,
	// bad_signature, no_secret.
	Reason string
}

// Error names the reason.
func (e *VerifyError) Error() string { return "delivery refused: " + e.Reason }

// Providers finds vendors and their accounts.
type Providers interface {
	// Provider returns the adapter of the name.
	Provider(name string) (Provider, bool)
	// Accounts returns the accounts of a provider, the default one first.
	Accounts(name string) []Account
	// Names lists the configured providers in order.
	Names() []string
}

// Media keeps published files.
type Media interface {
	// Put stores the content under the key and returns its size and SHA-256. The
	// file is visible only when complete. A second Put replaces it.
	Put(ctx context.Context, key, contentType string, content io.Reader) (size int64, sha256 []byte, err error)
	// Open reads a file from the offset; length −1 means to the end. ErrNotFound.
	Open(ctx context.Context, key string, offset, length int64) (io.ReadCloser, error)
}

// Downloader fetches a vendor's output without being led to an inside address.
type Downloader interface {
	// Download starts a GET and hands out the body. It refuses addresses that are
	// not public unless the configuration allows them, follows few redirects and
	// bounds size and time. Errors are *ProviderError; ClassNotFound means that the
	// output is gone.
	Download(req *http.Request, maxBytes int64) (Download, error)
}

// Download is a running download; the caller closes Body.
type Download struct {
	Body        io.ReadCloser
	ContentType string
	// Size is −1 when the server does not say.
	Size int64
}

// Asset is one published file.
type Asset struct {
	ID          domain.AssetID
	TenantID    domain.TenantID
	ProjectID   domain.ProjectID
	TaskID      domain.TaskID
	AttemptID   domain.AttemptID
	Kind        string
	ContentType string
	// Key is its place in the Media store.
	Key       string
	Size      int64
	SHA256    []byte
	CreatedAt time.Time
}
