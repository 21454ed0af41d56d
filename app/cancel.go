package app

import (
	"context"
	"errors"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// CommandDeps are what the commands about tasks work with; all are required.
type CommandDeps struct {
	Env
	Transitions ports.Transitions
	Reader      ports.Reader
	Vendors     Vendors
}

func (d CommandDeps) commander(use string) (commander, error) {
	err := errors.Join(d.Env.Validate(), required(use, map[string]bool{
		"Transitions": d.Transitions != nil, "Reader": d.Reader != nil, "Vendors": d.Vendors.providers != nil,
	}))
	if err != nil {
		return commander{}, err
	}
	return commander{Env: d.Env.WithDefaults(), transitions: d.Transitions, reader: d.Reader, vendors: d.Vendors}, nil
}

// commandIdempotencyFor is how long the key of a command counts.
const commandIdempotencyFor = 24 * time.Hour

// Cancel records a user's wish to stop a task. The vendor is asked later by the
// [CancelSender].
type Cancel struct{ commander }

// NewCancel checks what it is given.
func NewCancel(deps CommandDeps) (*Cancel, error) {
	c, err := deps.commander("cancel")
	if err != nil {
		return nil, err
	}
	return &Cancel{c}, nil
}

// Request asks for the cancellation and returns the task as it is then: canceled
// at once when nothing was submitted, else cancel_requested. Repeating it is
// harmless. domain.ErrTaskTerminal: too late. ports.ErrNotFound,
// ports.ErrIdempotencyMismatch, ports.ErrUnavailable, *FieldErrors.
func (c *Cancel) Request(ctx context.Context, cmd TaskCommand) (ports.TaskView, error) {
	return c.run(ctx, cmd, func(view ports.TaskView) (ports.Item, error) {
		return ports.Item{
			Input: domain.Input{
				Kind: domain.InputCancelRequested, Policy: c.vendors.Policy(view.Attempt.Provider), Jitter: c.Jitter(),
			},
			Idempotency: c.idempotency("cancel", cmd),
			Audit:       audit(c.Env, cmd.Actor, "task.cancel", cmd.Reason),
		}, nil
	})
}

func (c commander) idempotency(verb string, cmd TaskCommand) *ports.Idempotency {
	return idempotency(idempotencyParams{
		tenant: cmd.Project.TenantID, scope: verb + ":" + cmd.TaskID.String(),
		key: cmd.IdempotencyKey, hash: cmd.BodyHash, expires: c.Now().Add(commandIdempotencyFor),
	})
}
