package httpapi

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aivedio/aivedio/adapters/memory"
	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// vendorText must never reach a client.
const vendorText = "VENDOR-SECRET-TEXT"

// acme is a vendor whose signature is an HMAC of the body.
type acme struct{}

var _ ports.Provider = acme{}

func (acme) Capabilities() ports.Capabilities {
	return ports.Capabilities{Name: "acme", Webhook: ports.WebhookPerTask, Trust: domain.TrustAuthentic}
}

func (acme) Submit(context.Context, ports.SubmitRequest) (ports.SubmitResult, error) {
	return ports.SubmitResult{}, errors.New("not called here")
}

func (acme) Query(context.Context, ports.QueryRequest) (ports.QueryResult, error) {
	return ports.QueryResult{}, errors.New("not called here")
}

func (acme) Verify(req ports.VerifyRequest) (ports.Delivery, error) {
	switch {
	case req.Header.Get("Acme-Time") == "old":
		return ports.Delivery{}, &ports.VerifyError{Reason: "stale"}
	case req.Header.Get("Acme-Signature") != acmeSignature(req.Body):
		return ports.Delivery{}, &ports.VerifyError{Reason: "bad_signature"}
	}
	return ports.Delivery{AccountID: "main", Trust: domain.TrustAuthentic, KeyVersion: "v1", Identity: req.Header.Get("Acme-Id")}, nil
}

func (acme) Decode(ports.InboxRow) (domain.Observation, bool, error) {
	return domain.Observation{}, true, nil
}

func acmeSignature(body []byte) string {
	mac := hmac.New(sha256.New, []byte("acme secret"))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

type acmeOnly struct{}

func (acmeOnly) Provider(name string) (ports.Provider, bool) { return acme{}, name == "acme" }
func (acmeOnly) Names() []string                             { return []string{"acme"} }
func (acmeOnly) Accounts(name string) []ports.Account {
	if name != "acme" {
		return nil
	}
	return []ports.Account{{ID: "main"}}
}

// shakyStore is the memory store with faults and an asset.
type shakyStore struct {
	*memory.Store
	// fault, when set, is what every call that a test makes fail returns.
	fault atomic.Pointer[error]
	asset ports.Asset
}

func (s *shakyStore) err() error {
	if p := s.fault.Load(); p != nil {
		return *p
	}
	return nil
}

func (s *shakyStore) fail(err error) { s.fault.Store(&err) }
func (s *shakyStore) heal()          { s.fault.Store(nil) }

func (s *shakyStore) KeyByHash(ctx context.Context, hash []byte) (ports.APIKey, error) {
	if err := s.err(); errors.Is(err, ports.ErrUnavailable) {
		return ports.APIKey{}, err
	}
	return s.Store.KeyByHash(ctx, hash)
}

func (s *shakyStore) Create(ctx context.Context, p ports.CreateParams) (ports.CreateResult, error) {
	if err := s.err(); err != nil {
		return ports.CreateResult{}, err
	}
	return s.Store.Create(ctx, p)
}

func (s *shakyStore) Task(ctx context.Context, p domain.ProjectID, t domain.TaskID) (ports.TaskView, domain.Cursor, error) {
	if err := s.err(); err != nil {
		return ports.TaskView{}, domain.Cursor{}, err
	}
	return s.Store.Task(ctx, p, t)
}

func (s *shakyStore) Receive(ctx context.Context, rows []ports.InboxRow) ([]ports.ReceiveResult, error) {
	if err := s.err(); err != nil {
		return nil, err
	}
	return s.Store.Receive(ctx, rows)
}

func (s *shakyStore) Asset(_ context.Context, p domain.ProjectID, a domain.AssetID) (ports.Asset, error) {
	if p != s.asset.ProjectID || a != s.asset.ID {
		return ports.Asset{}, ports.ErrNotFound
	}
	return s.asset, nil
}

// files is a media store of one file.
type files struct{ content []byte }

func (f files) Put(context.Context, string, string, io.Reader) (int64, []byte, error) {
	return 0, nil, errors.New("not called here")
}

func (f files) Open(_ context.Context, key string, offset, _ int64) (io.ReadCloser, error) {
	if key != "a/video.mp4" {
		return nil, ports.ErrNotFound
	}
	return io.NopCloser(bytes.NewReader(f.content[offset:])), nil
}

// fixture is a server over the memory store, with two tenants.
type fixture struct {
	t       *testing.T
	store   *shakyStore
	server  *Server
	handler http.Handler
	tokens  *app.CallbackTokens
	access  *app.Access
	now     time.Time
	log     *bytes.Buffer
	streams []EventRequest

	project, foreign       string
	projectID              domain.ProjectID
	tenantID               domain.TenantID
	key, reader, operator  string
	foreignKey, onlyForOne string
	// platform may work on the desk; foreignOperator is all that another tenant may be.
	platform, foreignOperator string
	keyID                     domain.ID
}

var testKey = []byte("0123456789abcdef0123456789abcdef")

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{t: t, now: time.Date(2026, 12, 1, 10, 0, 0, 0, time.UTC), log: &bytes.Buffer{}}
	f.store = &shakyStore{Store: memory.NewStore(func() time.Time { return f.now })}
	f.tokens = must(app.NewCallbackTokens(testKey))
	cfg := f.config(f.store)
	f.access = cfg.Access
	f.tenants()
	f.server = must(New(cfg))
	f.handler = f.server.Handler()
	sum := sha256.Sum256([]byte("0123456789"))
	f.store.asset = ports.Asset{
		ID: domain.AssetID{ID: wire.NewID()}, ProjectID: f.projectID, TaskID: domain.TaskID{ID: wire.NewID()}, Kind: "video",
		ContentType: "video/mp4", Key: "a/video.mp4", Size: 10, SHA256: sum[:], CreatedAt: f.now,
	}
	return f
}

// config is that of a server over a store.
func (f *fixture) config(store ports.Store) Config {
	env := app.Env{Now: func() time.Time { return f.now }, NewID: wire.NewID, Logger: slog.New(slog.DiscardHandler)}
	vendors := app.NewVendors(acmeOnly{})
	commands := app.CommandDeps{Env: env, Transitions: store, Reader: store, Vendors: vendors}
	access := must(app.NewAccess(app.AccessDeps{Env: env, Access: store}, app.AccessConfig{CacheFor: time.Nanosecond}))
	metrics := NewMetrics()
	env.Metrics = metrics
	return Config{
		Access:  access,
		Submit:  must(app.NewSubmit(app.SubmitDeps{Env: env, Transitions: store, Vendors: vendors, Tokens: f.tokens}, app.SubmitConfig{})),
		Cancel:  must(app.NewCancel(commands)),
		Retry:   must(app.NewRetry(app.RetryDeps{CommandDeps: commands, Tokens: f.tokens})),
		Requeue: must(app.NewRequeue(app.RequeueDeps{Env: env, DeadLetters: store})),
		Accounts: must(app.NewAccounts(app.AccountsDeps{
			Env: env, Health: store, Vendors: app.NewVendors(acmeOnly{}), Queries: app.QuotaConfig{Account: app.Rate{PerSecond: 2.5, Burst: 5}},
		})),
		Resolve: must(app.NewResolve(app.ResolveDeps{CommandDeps: commands, Desk: store})),
		Receive: must(app.NewReceive(app.ReceiveDeps{Env: env, Inbox: store, Vendors: vendors, Tokens: f.tokens}, app.ReceiveConfig{})),
		Reader:  store, Inbox: store, Desk: store, Sweeps: store, Outbox: store, Durations: store, Media: files{[]byte("0123456789")},
		Events: EventsFunc(func(w http.ResponseWriter, _ *http.Request, req EventRequest) error {
			f.streams = append(f.streams, req)
			w.WriteHeader(http.StatusOK)
			return nil
		}),
		SigningKeys: [][]byte{testKey}, TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")},
		Now: func() time.Time { return f.now }, Logger: slog.New(slog.NewTextHandler(f.log, nil)), Metrics: metrics,
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// tenants makes two tenants with a project each, and keys of every kind.
func (f *fixture) tenants() {
	ctx := context.Background()
	tenant := must(f.store.CreateTenant(ctx, ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: "one", Credits: 100, CreatedAt: f.now}))
	other := must(f.store.CreateTenant(ctx, ports.Tenant{ID: domain.TenantID{ID: wire.NewID()}, Name: "two", Credits: 100, CreatedAt: f.now}))
	project := func(t ports.Tenant, name string) ports.Project {
		return must(f.store.CreateProject(ctx, ports.Project{ID: domain.ProjectID{ID: wire.NewID()}, TenantID: t.ID, Name: name, CreatedAt: f.now}))
	}
	mine, theirs, second := project(tenant, "main"), project(other, "main"), project(tenant, "second")
	f.tenantID = tenant.ID
	f.projectID, f.project, f.foreign = mine.ID, wire.ProjectID(mine.ID), wire.ProjectID(theirs.ID)
	key := func(t ports.Tenant, only domain.ProjectID, scopes ...ports.Scope) string {
		raw, k, err := f.access.CreateKey(ctx, app.KeyCommand{TenantID: t.ID, ProjectID: only, Name: "k", Scopes: scopes})
		if err != nil {
			f.t.Fatal(err)
		}
		f.keyID = k.ID
		return raw
	}
	f.reader, f.operator = key(tenant, domain.ProjectID{}, ports.ScopeRead), key(tenant, domain.ProjectID{}, ports.ScopeOperator)
	f.foreignKey, f.onlyForOne = key(other, domain.ProjectID{}, ports.ScopeWrite), key(tenant, second.ID, ports.ScopeWrite)
	f.platform = key(other, domain.ProjectID{}, ports.ScopePlatform)
	f.foreignOperator = key(other, domain.ProjectID{}, ports.ScopeRead, ports.ScopeWrite, ports.ScopeOperator)
	f.key = key(tenant, domain.ProjectID{}, ports.ScopeWrite)
}

// request is what a test sends.
type request struct {
	method, path, key, body string
	header                  map[string]string
	remote                  string
}

func (f *fixture) do(q request) *httptest.ResponseRecorder {
	var body io.Reader
	if q.body != "" {
		body = strings.NewReader(q.body)
	}
	if q.method == "" {
		q.method = http.MethodGet
	}
	r := httptest.NewRequest(q.method, q.path, body)
	if q.key != "" {
		r.Header.Set("Authorization", "Bearer "+q.key)
	}
	if q.body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	if q.remote != "" {
		r.RemoteAddr = q.remote
	}
	for name, value := range q.header {
		if value == "" {
			r.Header.Del(name)
			continue
		}
		r.Header.Set(name, value)
	}
	w := httptest.NewRecorder()
	f.handler.ServeHTTP(w, r)
	return w
}

func (f *fixture) tasks(more ...string) string {
	return "/projects/" + f.project + "/tasks" + strings.Join(more, "")
}

const goodSubmit = `{"provider":"acme","model":"m/1","input":{"prompt":"a red kite"},"metadata":{"shot":7}}`

// submitted makes a task and returns its id.
func (f *fixture) submitted() string {
	f.t.Helper()
	w := f.do(request{method: http.MethodPost, path: f.tasks(), key: f.key, body: goodSubmit})
	if w.Code != http.StatusCreated {
		f.t.Fatalf("submit: %d %s", w.Code, w.Body)
	}
	return decoded[taskAnswer](f.t, w).Task.ID
}

func decoded[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil {
		t.Fatalf("%d %s: %v", w.Code, w.Body, err)
	}
	return v
}

// wantProblem checks the document of a refusal: its code, its sentence, and that
// nothing from inside got out.
func wantProblem(t *testing.T, w *httptest.ResponseRecorder, status int, code string) Problem {
	t.Helper()
	if got := w.Header().Get("Content-Type"); got != "application/problem+json" {
		t.Fatalf("%d %s: content type %q, want a problem", w.Code, w.Body, got)
	}
	p := decoded[Problem](t, w)
	if w.Code != status || p.Status != status || p.Code != code {
		t.Errorf("%d %q (%s), want %d %q", w.Code, p.Code, w.Body, status, code)
	}
	if len(strings.Fields(p.Detail)) < 3 || p.Title == "" || p.Type != "urn:aivedio:problem:"+code || !strings.HasPrefix(p.TraceID, "trc_") || p.Errors == nil {
		t.Errorf("incomplete problem %s", w.Body)
	}
	if status >= 500 && status != http.StatusServiceUnavailable {
		t.Errorf("status %d", status)
	}
	if status == http.StatusServiceUnavailable && w.Header().Get("Retry-After") == "" {
		t.Error("503 without Retry-After")
	}
	for _, leak := range []string{vendorText, "json:", "goroutine", "adapters/", "memory", "sql", "unmarshal", "bad_signature"} {
		if strings.Contains(w.Body.String(), leak) {
			t.Errorf("%s leaks %q", w.Body, leak)
		}
	}
	return p
}

// faultFields are the fields that a problem names.
func faultFields(p Problem) string {
	var names []string
	for _, fault := range p.Errors {
		names = append(names, fault.Field)
		if fault.Code == "" || fault.Detail == "" {
			names = append(names, fmt.Sprintf("!%v", fault))
		}
	}
	return strings.Join(names, ",")
}
