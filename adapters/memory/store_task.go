package memory

import (
	"fmt"
	"slices"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// taskRow is a task with what the client sent along.
type taskRow struct {
	domain.Task
	input ports.TaskInput
}

// attemptRow is an attempt with the hash of its callback token.
type attemptRow struct {
	domain.Attempt
	tokenHash string
}

// providerKey is UNIQUE(provider, account_id, provider_task_id).
type providerKey struct{ provider, account, id string }

type clientKey struct{ provider, id string }

// putAttempt writes an attempt and all that is looked up by.
func (x *tx) putAttempt(a attemptRow) error {
	if err := checkText(a.ProviderTaskID, a.ClientRequestID, a.ErrorCode, a.Provider, a.AccountID); err != nil {
		return err
	}
	for _, o := range a.Outputs {
		if err := checkText(o.Kind, o.Ref, o.URL); err != nil {
			return err
		}
	}
	if a.ProviderTaskID != "" {
		key := providerKey{a.Provider, a.AccountID, a.ProviderTaskID}
		if other, ok := x.byProvider[key]; ok && other != a.ID {
			return fmt.Errorf("%w: another attempt has this vendor id", errData)
		}
		put(x, x.byProvider, key, a.ID)
	}
	if a.ClientRequestID != "" {
		put(x, x.byClient, clientKey{a.Provider, a.ClientRequestID}, a.ID)
	}
	if a.tokenHash != "" {
		put(x, x.byToken, a.tokenHash, a.ID)
	}
	a.Outputs = slices.Clone(a.Outputs)
	put(x, x.attempts, a.ID, a)
	if a.Timer() != nil || a.DeferredUntil != nil || canBeOverdue(a.Attempt) {
		put(x, x.waiting, a.ID, struct{}{})
	} else {
		remove(x, x.waiting, a.ID)
	}
	return nil
}

// attempt reads an attempt without sharing memory.
func (s *Store) attempt(id domain.AttemptID) attemptRow {
	a := s.attempts[id]
	a.Outputs = slices.Clone(a.Outputs)
	return a
}

// view reads a task with its current attempt.
func (s *Store) view(t taskRow) ports.TaskView {
	return ports.TaskView{
		Task:     t.Task,
		Attempt:  s.attempt(t.CurrentAttemptID).Attempt,
		Metadata: slices.Clone(t.input.Metadata),
	}
}

// job reads an attempt with its task and input.
func (s *Store) job(id domain.AttemptID) ports.Job {
	a := s.attempt(id)
	t := s.tasks[a.TaskID]
	return ports.Job{Task: t.Task, Attempt: a.Attempt, Input: copyInput(t.input)}
}

func copyInput(in ports.TaskInput) ports.TaskInput {
	in.Extra, in.Metadata = slices.Clone(in.Extra), slices.Clone(in.Metadata)
	return in
}
