package memory

import (
	"context"
	"fmt"
	"slices"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Task implements ports.Reader.
func (s *Store) Task(ctx context.Context, project domain.ProjectID, task domain.TaskID) (ports.TaskView, domain.Cursor, error) {
	var view ports.TaskView
	var head domain.Cursor
	err := s.read(ctx, func() error {
		t, ok := s.tasks[task]
		if !ok || t.ProjectID != project {
			return fmt.Errorf("task: %w", ports.ErrNotFound)
		}
		view, head = s.view(t), s.streams[project].cursor()
		return nil
	})
	return view, head, err
}

// Tasks implements ports.Reader.
func (s *Store) Tasks(ctx context.Context, params ports.ListParams) (ports.TaskPage, error) {
	var page ports.TaskPage
	err := s.read(ctx, func() error {
		page.Cursor = s.streams[params.ProjectID].cursor()
		ids := s.ofProject[params.ProjectID]
		end := len(ids)
		if !params.After.IsZero() {
			if end = slices.Index(ids, params.After); end < 0 {
				return fmt.Errorf("the task to continue after: %w", ports.ErrNotFound)
			}
		}
		for _, id := range slices.Backward(ids[:end]) {
			t := s.tasks[id]
			if params.Status != "" && t.Status() != params.Status {
				continue
			}
			if len(page.Tasks) == params.Limit {
				page.Next = page.Tasks[len(page.Tasks)-1].Task.ID
				return nil
			}
			page.Tasks = append(page.Tasks, s.view(t))
		}
		return nil
	})
	return page, err
}

// FindTask implements ports.Reader.
func (s *Store) FindTask(ctx context.Context, task domain.TaskID) (ports.TaskView, error) {
	var view ports.TaskView
	err := s.read(ctx, func() error {
		t, ok := s.tasks[task]
		if !ok {
			return fmt.Errorf("task: %w", ports.ErrNotFound)
		}
		view = s.view(t)
		return nil
	})
	return view, err
}

// Attempt implements ports.Reader.
func (s *Store) Attempt(ctx context.Context, attempt domain.AttemptID) (ports.Job, error) {
	var job ports.Job
	err := s.read(ctx, func() error {
		if _, ok := s.attempts[attempt]; !ok {
			return fmt.Errorf("attempt: %w", ports.ErrNotFound)
		}
		job = s.job(attempt)
		return nil
	})
	return job, err
}

// Asset implements ports.Reader.
func (s *Store) Asset(ctx context.Context, project domain.ProjectID, asset domain.AssetID) (ports.Asset, error) {
	var found ports.Asset
	err := s.read(ctx, func() error {
		a, ok := s.assets[asset]
		if !ok || a.ProjectID != project {
			return fmt.Errorf("asset: %w", ports.ErrNotFound)
		}
		found = a
		found.SHA256 = slices.Clone(a.SHA256)
		return nil
	})
	return found, err
}
