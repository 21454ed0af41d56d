package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Apply implements ports.Transitions.
func (s *Store) Apply(ctx context.Context, items []ports.Item) ([]ports.Result, error) {
	var results []ports.Result
	err := s.write(ctx, func(x *tx) error {
		results = x.applyAll(items)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return results, nil
}

func (x *tx) applyAll(items []ports.Item) []ports.Result {
	results := make([]ports.Result, len(items))
	for i, item := range items {
		savepoint := x.savepoint()
		results[i] = x.applyOne(item)
		if results[i].Err != nil {
			x.rollback(savepoint)
		}
	}
	return results
}

// applyOne decides and writes one item. A panic of the decision is the item's
// own fault: others go on.
func (x *tx) applyOne(item ports.Item) (result ports.Result) {
	defer func() {
		if r := recover(); r != nil {
			result = ports.Result{Err: fmt.Errorf("apply: panic: %v", r)}
		}
	}()
	if known, replayed, err := x.request(item.Idempotency); err != nil {
		return ports.Result{Err: err}
	} else if replayed {
		return x.replay(known)
	}
	attempt, reason, err := x.resolve(item.Ref)
	if err != nil {
		return ports.Result{Err: err}
	}
	if err := x.finishOperation(item.Operation); err != nil {
		return ports.Result{Err: err}
	}
	if reason != "" {
		return x.refuse(item, attempt, reason)
	}
	if item.Input.Kind == domain.InputResolution && item.Audit == nil {
		return ports.Result{Err: fmt.Errorf("%w: a resolution needs an audit", domain.ErrInvalidInput)}
	}
	task := x.tasks[attempt.TaskID]
	decision, err := domain.Apply(task.Task, attempt.Attempt, item.Input, x.at)
	if err != nil {
		return ports.Result{Err: err}
	}
	event, err := x.apply(item, &decision, attempt.tokenHash)
	if err != nil {
		return ports.Result{Err: err}
	}
	x.record(item, task.Version, decision, event)
	x.rememberRequest(item.Idempotency, task.ID)
	return ports.Result{Decision: decision, Event: event}
}

// replay answers a known command with the task as it is now.
func (x *tx) replay(id domain.TaskID) ports.Result {
	task := x.tasks[id]
	return ports.Result{Replayed: true, Decision: domain.Decision{
		Verdict: domain.Verdict{Kind: domain.VerdictUnchanged},
		Task:    task.Task, Attempt: x.attempt(task.CurrentAttemptID).Attempt,
	}}
}

// refuse is the verdict on an input whose attempt is not known for sure. A
// contradiction is put on the timeline of the attempt that was named first.
func (x *tx) refuse(item ports.Item, attempt attemptRow, reason domain.Reason) ports.Result {
	decision := domain.Decision{Verdict: domain.Verdict{Kind: domain.VerdictIgnored, Reason: reason}}
	if reason == domain.ReasonIdentityMismatch {
		decision.Task, decision.Attempt = x.tasks[attempt.TaskID].Task, attempt.Attempt
		x.record(item, decision.Task.Version, decision, nil)
	}
	return ports.Result{Decision: decision}
}

// apply writes a decision and everything that follows from it, the event last.
// It completes decision.Task with the event's number.
func (x *tx) apply(item ports.Item, decision *domain.Decision, tokenHash string) (*ports.StoredEvent, error) {
	d := decision
	if d.AttemptChanged {
		if err := x.putAttempt(attemptRow{Attempt: d.Attempt, tokenHash: tokenHash}); err != nil {
			return nil, err
		}
	}
	if d.NewAttempt != nil {
		if err := x.putAttempt(attemptRow{Attempt: *d.NewAttempt, tokenHash: string(item.TokenHash)}); err != nil {
			return nil, err
		}
	}
	for _, entry := range d.Ledger {
		if err := x.book(entry); err != nil {
			return nil, err
		}
	}
	for _, op := range d.Operations {
		x.startOperation(op)
	}
	x.noteConflict(d)
	x.moveCases(d)
	if item.Asset != nil && item.Input.Kind == domain.InputMediaReady && d.Verdict.Kind == domain.VerdictApplied {
		asset := *item.Asset
		asset.SHA256 = slices.Clone(asset.SHA256)
		put(x, x.assets, asset.ID, asset)
	}
	if !d.TaskChanged {
		return nil, nil
	}
	var event *ports.StoredEvent
	if d.Event != nil {
		stored := x.appendEvent(*d.Event)
		event, d.Task.LastEventID = &stored, stored.EventID
	}
	put(x, x.tasks, d.Task.ID, taskRow{Task: d.Task, input: x.tasks[d.Task.ID].input})
	return event, nil
}
