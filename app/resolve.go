package app

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// ResolveDeps are what [Resolve] works with; all are required.
type ResolveDeps struct {
	CommandDeps
	Desk ports.Desk
}

// Resolve carries out what a person decided about an attempt or a conflict. Every
// decision is audited.
type Resolve struct {
	commander
	desk ports.Desk
}

// NewResolve checks what it is given.
func NewResolve(deps ResolveDeps) (*Resolve, error) {
	c, err := deps.commander("resolve")
	if err != nil {
		return nil, err
	}
	if deps.Desk == nil {
		return nil, required("resolve", map[string]bool{"Desk": false})
	}
	return &Resolve{commander: c, desk: deps.Desk}, nil
}

// ResolveCommand is a person's decision about an attempt.
type ResolveCommand struct {
	// AttemptID names the attempt; CaseID may name it through an open case instead.
	AttemptID domain.AttemptID
	CaseID    int64
	Kind      domain.ResolutionKind
	// ProviderTaskID goes with created_with_id.
	ProviderTaskID string
	// Outputs go with adopt where the attempt itself holds none.
	Outputs []domain.OutputRef
	// Closing goes with close_cost: settled or refunded.
	Closing domain.Closing
	Actor   string
	// Reason is required: a decision without one cannot be understood later.
	Reason string
}

// Attempt applies the decision and returns the task. domain.ErrInvalidTransition:
// it does not fit the state. ports.ErrNotFound, ports.ErrUnavailable,
// *FieldErrors.
func (r *Resolve) Attempt(ctx context.Context, cmd ResolveCommand) (ports.TaskView, error) {
	if err := validateResolution(cmd); err != nil {
		return ports.TaskView{}, err
	}
	id := cmd.AttemptID
	if cmd.CaseID != 0 {
		found, err := r.desk.Case(ctx, cmd.CaseID)
		if err != nil {
			return ports.TaskView{}, fmt.Errorf("case: %w", err)
		}
		id = found.AttemptID
	}
	return r.resolve(ctx, id, cmd)
}

// ConflictCommand is a person's decision about a contradiction.
type ConflictCommand struct {
	ID int64
	As ConflictAnswer
	// Actor is who decided.
	Actor string
	// Reason is required.
	Reason string
}

// ConflictAnswer is what a person decides about a contradiction.
type ConflictAnswer string

// The answers.
const (
	// ConflictAccept takes the result that was refused.
	ConflictAccept ConflictAnswer = "accept"
	// ConflictRefund keeps what is settled and gives the credits back.
	ConflictRefund ConflictAnswer = "refund"
	// ConflictIgnore keeps what is settled.
	ConflictIgnore ConflictAnswer = "ignore"
)

// ConflictAnswers lists every answer.
func ConflictAnswers() []ConflictAnswer {
	return []ConflictAnswer{ConflictAccept, ConflictRefund, ConflictIgnore}
}

// stored is the answer as the row keeps it.
func (a ConflictAnswer) stored() string {
	return map[ConflictAnswer]string{ConflictAccept: "accepted", ConflictRefund: "refunded", ConflictIgnore: "ignored"}[a]
}

// Conflict answers a contradiction, closes it and the case that it opened.
// Accepting adopts the attempt with the outputs of the refused news, so only a
// refused success can be accepted; refunding needs an ended attempt whose credits
// are not back already: domain.ErrInvalidTransition otherwise. A crash between the
// two steps leaves the conflict open with its answer carried out: accepting it again
// is harmless, and of a second refund the ledger knows nothing, so that the
// conflict is then to be ignored.
func (r *Resolve) Conflict(ctx context.Context, cmd ConflictCommand) error {
	faults := &FieldErrors{}
	faults.check(slices.Contains(ConflictAnswers(), cmd.As), "resolution", "unknown", "use accept, refund or ignore")
	faults.check(cmd.Reason != "", "reason", "required", "say why")
	checkReason(faults, cmd.Reason)
	if err := faults.err(); err != nil {
		return err
	}
	row, err := r.desk.Conflict(ctx, cmd.ID)
	if err != nil {
		return fmt.Errorf("conflict: %w", err)
	}
	if row.ClosedAt != nil {
		return fmt.Errorf("conflict: %w", ports.ErrNotFound)
	}
	if err := r.answer(ctx, row, cmd); err != nil {
		return err
	}
	if err := r.desk.CloseConflict(ctx, cmd.ID, cmd.As.stored(), *audit(r.Env, cmd.Actor, "conflict."+cmd.As.stored(), cmd.Reason)); err != nil {
		return fmt.Errorf("close conflict: %w", err)
	}
	return nil
}

// answer carries the answer out at the attempt, where the conflict knows one.
func (r *Resolve) answer(ctx context.Context, row ports.ConflictRow, cmd ConflictCommand) error {
	do := ResolveCommand{Kind: domain.ResolveKeep, Actor: cmd.Actor, Reason: cmd.Reason}
	switch {
	case cmd.As == ConflictAccept && row.Got != domain.AttemptSucceeded:
		return fmt.Errorf("%w: only a refused success can be accepted", domain.ErrInvalidTransition)
	case cmd.As == ConflictAccept:
		do.Kind, do.Outputs = domain.ResolveAdopt, row.Outputs
	case cmd.As == ConflictRefund && row.AttemptID.IsZero():
		return fmt.Errorf("%w: the conflict names no attempt that has cost anything", domain.ErrInvalidTransition)
	case cmd.As == ConflictRefund:
		do.Kind = domain.ResolveRefund
	case row.AttemptID.IsZero():
		return nil
	}
	_, err := r.resolve(ctx, row.AttemptID, do)
	if cmd.As == ConflictIgnore && errors.Is(err, domain.ErrInvalidTransition) {
		return nil // the attempt goes on and has nothing to close: a payload or a name differed
	}
	return err
}

func (r *Resolve) resolve(ctx context.Context, id domain.AttemptID, cmd ResolveCommand) (ports.TaskView, error) {
	job, err := r.reader.Attempt(ctx, id)
	if err != nil {
		return ports.TaskView{}, fmt.Errorf("attempt: %w", err)
	}
	action := audit(r.Env, cmd.Actor, "attempt."+string(cmd.Kind), cmd.Reason)
	res, err := applyOne(ctx, r.transitions, r.Bells, ports.Item{
		Ref: ports.Ref{AttemptID: id},
		Input: domain.Input{
			Kind: domain.InputResolution, Policy: r.vendors.Policy(job.Attempt.Provider), Jitter: r.Jitter(),
			Resolution: &domain.Resolution{
				Kind: cmd.Kind, ActionID: action.ActionID, ProviderTaskID: cmd.ProviderTaskID,
				Outputs: cmd.Outputs, Closing: cmd.Closing,
			},
		},
		Audit: action,
	})
	if err != nil {
		return ports.TaskView{}, err
	}
	view, err := r.reader.FindTask(ctx, res.Decision.Task.ID)
	if err != nil {
		return ports.TaskView{}, fmt.Errorf("read task: %w", err)
	}
	return view, nil
}

func validateResolution(cmd ResolveCommand) error {
	faults := &FieldErrors{}
	faults.check(!cmd.AttemptID.IsZero() || cmd.CaseID != 0, "attempt_id", "required", "name the attempt or the case")
	faults.check(slices.Contains(domain.ResolutionKinds(), cmd.Kind), "kind", "unknown",
		"use created_with_id, not_created, abandon, adopt, close_cost, refund or keep")
	if cmd.Kind == domain.ResolveCreatedWithID {
		faults.check(cmd.ProviderTaskID != "" && len(cmd.ProviderTaskID) <= maxIdentity && clean(cmd.ProviderTaskID),
			"provider_task_id", "required", "give the vendor's id of the job")
	}
	if cmd.Kind == domain.ResolveCloseCost {
		faults.check(cmd.Closing == domain.ClosingSettled || cmd.Closing == domain.ClosingRefunded,
			"closing", "required", "use settled or refunded")
	}
	faults.check(cmd.Reason != "", "reason", "required", "say why")
	checkReason(faults, cmd.Reason)
	return faults.err()
}
