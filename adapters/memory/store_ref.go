package memory

import (
	"fmt"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// resolve finds the attempt that a Ref names. The reason is empty when it is
// found, identity_mismatch (with one of the attempts meant) or orphan otherwise.
// ErrNotFound is for our own ids, which cannot be early or foreign.
func (s *Store) resolve(ref ports.Ref) (attemptRow, domain.Reason, error) {
	named, err := s.ownWord(ref)
	if err != nil {
		return attemptRow{}, "", err
	}
	named = append(named, s.vendorsWord(ref)...)
	if len(named) == 0 {
		return attemptRow{}, domain.ReasonOrphan, nil
	}
	first := s.attempt(named[0])
	for _, id := range named[1:] {
		if id != first.ID {
			return first, domain.ReasonIdentityMismatch, nil
		}
	}
	return first, "", nil
}

// ownWord lists the attempts that our own ids name.
func (s *Store) ownWord(ref ports.Ref) ([]domain.AttemptID, error) {
	var named []domain.AttemptID
	if !ref.AttemptID.IsZero() {
		a, ok := s.attempts[ref.AttemptID]
		if !ok || !s.owns(ref.ProjectID, a.TaskID) {
			return nil, fmt.Errorf("attempt: %w", ports.ErrNotFound)
		}
		named = append(named, a.ID)
		if a.TaskID == ref.TaskID {
			return named, nil // the task is named to own the attempt, current or not
		}
	}
	if !ref.TaskID.IsZero() {
		t, ok := s.tasks[ref.TaskID]
		if !ok || !s.owns(ref.ProjectID, t.ID) {
			return nil, fmt.Errorf("task: %w", ports.ErrNotFound)
		}
		named = append(named, t.CurrentAttemptID)
	}
	return named, nil
}

// owns reports whether the project, when given, holds the task.
func (s *Store) owns(project domain.ProjectID, task domain.TaskID) bool {
	return project.IsZero() || s.tasks[task].ProjectID == project
}

// vendorsWord lists the attempts that a vendor's names lead to. An unknown name
// says nothing: a delivery may be faster than the answer to the submit.
func (s *Store) vendorsWord(ref ports.Ref) []domain.AttemptID {
	var named []domain.AttemptID
	if id, ok := s.byToken[string(ref.TokenHash)]; ok && len(ref.TokenHash) > 0 {
		named = append(named, id)
	}
	if id, ok := s.byProvider[providerKey{ref.Provider, ref.AccountID, ref.ProviderTaskID}]; ok {
		named = append(named, id)
	}
	if id, ok := s.byClient[clientKey{ref.Provider, ref.ClientRequestID}]; ok {
		named = append(named, id)
	}
	return named
}
