package app

import (
	"context"
	"fmt"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// RetryDeps are what [Retry] works with; all are required.
type RetryDeps struct {
	CommandDeps
	Tokens *CallbackTokens
	// Submit gives the price of the new attempt.
	Submit SubmitConfig
}

// Retry opens a new attempt of a task that has ended. It is the only way to a
// second create of the same task.
type Retry struct {
	commander
	tokens *CallbackTokens
	prices SubmitConfig
}

// NewRetry checks what it is given.
func NewRetry(deps RetryDeps) (*Retry, error) {
	c, err := deps.commander("retry")
	if err != nil {
		return nil, err
	}
	if deps.Tokens == nil {
		return nil, required("retry", map[string]bool{"Tokens": false})
	}
	return &Retry{commander: c, tokens: deps.Tokens, prices: deps.Submit.WithDefaults()}, nil
}

// RetryCommand asks for a new attempt.
type RetryCommand struct {
	TaskCommand
	// AcceptPossibleDuplicate lets the retry pass while nobody knows whether the
	// vendor accepted the last attempt: it may be made, and billed, twice.
	AcceptPossibleDuplicate bool
}

// Request opens a new attempt with the same vendor, model and input, on the
// vendor's default account, and returns the task. domain.ErrNotRetryable,
// domain.ErrPossibleDuplicate, ports.ErrCredits, ports.ErrNotFound,
// ports.ErrIdempotencyMismatch, ports.ErrUnavailable, *FieldErrors.
func (r *Retry) Request(ctx context.Context, cmd RetryCommand) (ports.TaskView, error) {
	return r.run(ctx, cmd.TaskCommand, func(view ports.TaskView) (ports.Item, error) {
		accounts := r.vendors.Accounts(view.Attempt.Provider)
		if len(accounts) == 0 {
			return ports.Item{}, fmt.Errorf("%w: the provider of the task is not configured any more", domain.ErrNotRetryable)
		}
		attempt, hash := newAttempt(attemptParams{
			id: domain.AttemptID{ID: r.NewID()}, provider: view.Attempt.Provider, model: view.Attempt.Model,
			account: accounts[0], credits: r.prices.price(view.Attempt.Provider), tokens: r.tokens,
		})
		return ports.Item{
			Input: domain.Input{
				Kind: domain.InputRetryRequested, Policy: r.vendors.Policy(view.Attempt.Provider), Jitter: r.Jitter(),
				AcceptPossibleDuplicate: cmd.AcceptPossibleDuplicate, NewAttempt: &attempt,
			},
			Idempotency: r.idempotency("retry", cmd.TaskCommand),
			Audit:       audit(r.Env, cmd.Actor, "task.retry", cmd.Reason),
			TokenHash:   hash,
		}, nil
	})
}
