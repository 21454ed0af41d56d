package app

import (
	"context"
	"errors"
	"fmt"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// TaskCommand is what every command about a task says.
type TaskCommand struct {
	// Project is the project as [Access.Project] returned it.
	Project ports.Project
	TaskID  domain.TaskID
	// Actor and Reason go to the audit log. Actor names the caller: the id of a key,
	// never the key.
	Actor  string
	Reason string
	// IdempotencyKey makes the command repeatable; empty for none. BodyHash goes
	// with it.
	IdempotencyKey string
	BodyHash       []byte
}

// maxMoves bounds how often a command is decided anew.
const maxMoves = 5

// commander is what the commands about tasks share.
type commander struct {
	Env
	transitions ports.Transitions
	reader      ports.Reader
	vendors     Vendors
}

// run reads the task, builds the item for its current attempt and applies it. The
// vendor's policy depends on the attempt, so the item names the attempt that was
// read; when a retry came in between, all is done again.
func (c commander) run(ctx context.Context, cmd TaskCommand, build func(ports.TaskView) (ports.Item, error)) (ports.TaskView, error) {
	if err := checkCommand(cmd); err != nil {
		return ports.TaskView{}, err
	}
	var refused error
	var read domain.AttemptID
	for range maxMoves {
		before, _, err := c.reader.Task(ctx, cmd.Project.ID, cmd.TaskID)
		if err != nil {
			return ports.TaskView{}, fmt.Errorf("read task: %w", err)
		}
		if refused != nil && before.Attempt.ID == read {
			return ports.TaskView{}, refused // nothing moved: it is the command
		}
		read = before.Attempt.ID
		res, err := c.try(ctx, cmd, before, build)
		switch {
		case err == nil:
			return c.view(ctx, before, res, cmd)
		case !errors.Is(err, domain.ErrInvalidTransition):
			return ports.TaskView{}, err
		}
		refused = err
	}
	return ports.TaskView{}, refused
}

func (c commander) try(ctx context.Context, cmd TaskCommand, before ports.TaskView, build func(ports.TaskView) (ports.Item, error)) (ports.Result, error) {
	item, err := build(before)
	if err != nil {
		return ports.Result{}, err
	}
	item.Ref = ports.Ref{TaskID: cmd.TaskID, ProjectID: cmd.Project.ID, AttemptID: before.Attempt.ID}
	res, err := applyOne(ctx, c.transitions, c.Bells, item)
	if err == nil && res.Decision.Verdict.Reason == domain.ReasonIdentityMismatch {
		err = fmt.Errorf("%w: the task has another attempt", domain.ErrInvalidTransition)
	}
	return res, err
}

// view is the task after the command. A replayed one is read anew: it may have
// gone on since.
func (c commander) view(ctx context.Context, before ports.TaskView, res ports.Result, cmd TaskCommand) (ports.TaskView, error) {
	if res.Replayed {
		view, _, err := c.reader.Task(ctx, cmd.Project.ID, cmd.TaskID)
		if err != nil {
			return ports.TaskView{}, fmt.Errorf("read task: %w", err)
		}
		return view, nil
	}
	after := ports.TaskView{Task: res.Decision.Task, Attempt: res.Decision.Attempt, Metadata: before.Metadata}
	if res.Decision.NewAttempt != nil {
		after.Attempt = *res.Decision.NewAttempt
	}
	if res.Event != nil {
		after.Task.LastEventID = res.Event.EventID
	}
	return after, nil
}

// applyOne applies a single item and returns its own error, if any.
func applyOne(ctx context.Context, t ports.Transitions, bells Bells, item ports.Item) (ports.Result, error) {
	results, err := t.Apply(ctx, []ports.Item{item})
	if err != nil {
		return ports.Result{}, fmt.Errorf("apply: %w", err)
	}
	if len(results) != 1 {
		return ports.Result{}, fmt.Errorf("%w: %d results for one item", ports.ErrUnavailable, len(results))
	}
	if results[0].Err != nil {
		return ports.Result{}, fmt.Errorf("apply: %w", results[0].Err)
	}
	bells.Committed(results)
	return results[0], nil
}

func checkCommand(cmd TaskCommand) error {
	faults := &FieldErrors{}
	checkIdempotencyKey(faults, cmd.IdempotencyKey)
	checkReason(faults, cmd.Reason)
	return faults.err()
}

func checkReason(faults *FieldErrors, reason string) {
	const longest = 1000
	faults.check(len(reason) <= longest && clean(reason), "reason", "invalid", fmt.Sprintf("use at most %d bytes of UTF-8", longest))
}

// audit names who did what.
func audit(env Env, actor, action, reason string) *ports.Audit {
	return &ports.Audit{ActionID: domain.ActionID{ID: env.NewID()}, Actor: actor, Action: action, Reason: reason}
}
