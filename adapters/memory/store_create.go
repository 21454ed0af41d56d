package memory

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// requestKey is an idempotency key within its tenant and scope.
type requestKey struct {
	tenant     domain.TenantID
	scope, key string
}

// requestRow is what a known idempotency key led to.
type requestRow struct {
	bodyHash  []byte
	task      domain.TaskID
	expiresAt time.Time
}

// Create implements ports.Transitions.
func (s *Store) Create(ctx context.Context, params ports.CreateParams) (ports.CreateResult, error) {
	var result ports.CreateResult
	err := s.write(ctx, func(x *tx) error {
		known, replayed, err := x.request(params.Idempotency)
		if err != nil {
			return err
		}
		if !replayed {
			known = params.Task.ID
			if err := x.create(params); err != nil {
				return err
			}
		}
		task := s.tasks[known]
		result = ports.CreateResult{View: s.view(task), Cursor: s.streams[task.ProjectID].cursor(), Replayed: replayed}
		return nil
	})
	return result, err
}

func (x *tx) create(params ports.CreateParams) error {
	task := params.Task
	if p, ok := x.projects[task.ProjectID]; !ok || p.TenantID != task.TenantID {
		return fmt.Errorf("project: %w", ports.ErrNotFound)
	}
	if _, ok := x.tasks[task.ID]; ok {
		return fmt.Errorf("create: %w: the task exists", errData)
	}
	if err := checkText(params.Input.Prompt, params.Input.ImageURL, params.Input.AspectRatio, params.Input.Resolution); err != nil {
		return err
	}
	decision := domain.Create(task, params.Attempt, x.at)
	put(x, x.tasks, task.ID, taskRow{Task: decision.Task, input: copyInput(params.Input)})
	put(x, x.ofProject, task.ProjectID, append(x.ofProject[task.ProjectID], task.ID))
	decision.TaskChanged, decision.AttemptChanged = true, true
	event, err := x.apply(ports.Item{}, &decision, string(params.TokenHash))
	if err != nil {
		return err
	}
	x.rememberEvent(*event, 0)
	x.rememberRequest(params.Idempotency, task.ID)
	return nil
}

// request looks an idempotency key up. An expired one counts as unknown.
func (x *tx) request(id *ports.Idempotency) (domain.TaskID, bool, error) {
	if id == nil {
		return domain.TaskID{}, false, nil
	}
	row, ok := x.requests[requestKey{id.TenantID, id.Scope, id.Key}]
	if !ok || !x.at.Before(row.expiresAt) {
		return domain.TaskID{}, false, nil
	}
	if !bytes.Equal(row.bodyHash, id.BodyHash) {
		return domain.TaskID{}, false, ports.ErrIdempotencyMismatch
	}
	return row.task, true, nil
}

func (x *tx) rememberRequest(id *ports.Idempotency, task domain.TaskID) {
	if id == nil {
		return
	}
	row := requestRow{bodyHash: slices.Clone(id.BodyHash), task: task, expiresAt: id.ExpiresAt}
	put(x, x.requests, requestKey{id.TenantID, id.Scope, id.Key}, row)
}
