package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// SubmitConfig bounds what a client may ask for.
type SubmitConfig struct {
	// MaxPrompt is the longest prompt in characters; 10 000 when zero.
	MaxPrompt int
	// MaxObject is the largest extra or metadata object in bytes; 16 KiB when zero.
	MaxObject int
	// MaxDuration is the longest video in seconds; 600 when zero.
	MaxDuration int
	// PlainImages also accepts http image URLs; meant for development.
	PlainImages bool
	// Credits is the price of an attempt per provider; DefaultCredits for others.
	Credits map[string]int64
	// DefaultCredits is the price where Credits has none; 1 when zero.
	DefaultCredits int64
	// IdempotencyFor is how long an Idempotency-Key counts; 24 h when zero.
	IdempotencyFor time.Duration
}

// WithDefaults returns a copy with every zero field set.
func (c SubmitConfig) WithDefaults() SubmitConfig {
	c.MaxPrompt = cmp.Or(c.MaxPrompt, 10_000)
	c.MaxObject = cmp.Or(c.MaxObject, 16<<10)
	c.MaxDuration = cmp.Or(c.MaxDuration, 600)
	c.DefaultCredits = cmp.Or(c.DefaultCredits, 1)
	c.IdempotencyFor = cmp.Or(c.IdempotencyFor, 24*time.Hour)
	return c
}

// Validate joins every fault.
func (c SubmitConfig) Validate() error {
	var errs []error
	if c.MaxPrompt < 0 || c.MaxObject < 0 || c.MaxDuration < 0 || c.IdempotencyFor < 0 {
		errs = append(errs, errors.New("submit: a limit is negative"))
	}
	if c.DefaultCredits < 0 {
		errs = append(errs, errors.New("submit: default_credits is negative"))
	}
	for name, credits := range c.Credits {
		if credits < 0 {
			errs = append(errs, fmt.Errorf("submit: credits of %s are negative", name))
		}
	}
	return errors.Join(errs...)
}

// price is what one attempt with the provider reserves.
func (c SubmitConfig) price(provider string) int64 {
	if credits, ok := c.Credits[provider]; ok {
		return credits
	}
	return c.DefaultCredits
}

// SubmitDeps are what [Submit] works with; all are required.
type SubmitDeps struct {
	Env
	Transitions ports.Transitions
	Vendors     Vendors
	Tokens      *CallbackTokens
}

// Submit takes new tasks. It stores and answers; the vendor is called later by
// the [Submitter].
type Submit struct {
	deps SubmitDeps
	cfg  SubmitConfig
}

// NewSubmit checks what it is given.
func NewSubmit(deps SubmitDeps, cfg SubmitConfig) (*Submit, error) {
	deps.Env, cfg = deps.Env.WithDefaults(), cfg.WithDefaults()
	err := errors.Join(deps.Env.Validate(), cfg.Validate(), required("submit", map[string]bool{
		"Transitions": deps.Transitions != nil, "Vendors": deps.Vendors.providers != nil, "Tokens": deps.Tokens != nil,
	}))
	if err != nil {
		return nil, err
	}
	return &Submit{deps: deps, cfg: cfg}, nil
}

// CreateCommand is a client's wish for a new task.
type CreateCommand struct {
	// Project is the project as [Access.Project] returned it: the caller's right
	// is proven already.
	Project ports.Project
	UserID  domain.UserID
	// Provider and Model name who is to do it.
	Provider string
	Model    string
	Input    ports.TaskInput
	// IdempotencyKey makes the command repeatable; empty for none. BodyHash is the
	// SHA-256 of the request body and goes with it.
	IdempotencyKey string
	BodyHash       []byte
	// TraceID ties the request together; drawn when zero.
	TraceID domain.TraceID
}

// Create stores the task with its first attempt and the reservation of its
// credits, and returns it after the commit. A *FieldErrors holds every fault of
// the command; ports.ErrIdempotencyMismatch, ports.ErrCredits, ports.ErrNotFound
// and ports.ErrUnavailable come from the store.
func (s *Submit) Create(ctx context.Context, cmd CreateCommand) (ports.CreateResult, error) {
	if err := s.validate(cmd); err != nil {
		return ports.CreateResult{}, err
	}
	params := s.params(cmd, s.deps.Now())
	res, err := s.deps.Transitions.Create(ctx, params)
	if err != nil {
		return ports.CreateResult{}, fmt.Errorf("create task: %w", err)
	}
	if !res.Replayed {
		s.deps.Bells.Submit.Ring()
		s.deps.Bells.Relay.Ring()
	}
	return res, nil
}

func (s *Submit) params(cmd CreateCommand, now time.Time) ports.CreateParams {
	if cmd.TraceID.IsZero() {
		cmd.TraceID = domain.TraceID{ID: s.deps.NewID()}
	}
	onLate := cmd.Project.OnLateSuccess
	if onLate == "" {
		onLate = domain.LateSuccessKeep
	}
	account := s.deps.Vendors.Accounts(cmd.Provider)[0]
	attempt, hash := newAttempt(attemptParams{
		id: domain.AttemptID{ID: s.deps.NewID()}, provider: cmd.Provider, model: cmd.Model,
		account: account, credits: s.cfg.price(cmd.Provider), tokens: s.deps.Tokens,
	})
	task := domain.Task{
		ID: domain.TaskID{ID: s.deps.NewID()}, TenantID: cmd.Project.TenantID, ProjectID: cmd.Project.ID, UserID: cmd.UserID,
		OnLateSuccess: onLate, TraceID: cmd.TraceID,
	}
	return ports.CreateParams{
		Task: task, Attempt: attempt, TokenHash: hash, Input: cmd.Input,
		Idempotency: idempotency(idempotencyParams{
			tenant: cmd.Project.TenantID, scope: "create:" + cmd.Project.ID.String(),
			key: cmd.IdempotencyKey, hash: cmd.BodyHash, expires: now.Add(s.cfg.IdempotencyFor),
		}),
	}
}

// attemptParams is what a new attempt is made from.
type attemptParams struct {
	id              domain.AttemptID
	provider, model string
	account         ports.Account
	credits         int64
	tokens          *CallbackTokens
}

// newAttempt names an attempt that nobody has submitted yet, and the hash of its
// callback token; its state is for the domain to set. The client request id is the attempt's own id: unique, known
// before the vendor is called, and free of meaning.
func newAttempt(p attemptParams) (domain.Attempt, []byte) {
	a := domain.Attempt{
		ID: p.id, Provider: p.provider, Model: p.model, AccountID: p.account.ID, BaseURL: p.account.BaseURL,
		ClientRequestID: p.id.String(), Credits: p.credits,
	}
	return a, TokenHash(p.tokens.Make(p.id))
}

// idempotencyParams is what an idempotency record is made from.
type idempotencyParams struct {
	tenant     domain.TenantID
	scope, key string
	hash       []byte
	expires    time.Time
}

// idempotency is nil without a key.
func idempotency(p idempotencyParams) *ports.Idempotency {
	if p.key == "" {
		return nil
	}
	return &ports.Idempotency{TenantID: p.tenant, Scope: p.scope, Key: p.key, BodyHash: p.hash, ExpiresAt: p.expires}
}
