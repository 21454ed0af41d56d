package pgstore

import (
	"github.com/aivedio/aivedio/adapters/pgstore/internal/dbgen"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func taskOf(r dbgen.GenerationTask) domain.Task {
	t := domain.Task{
		ID: domain.TaskID{ID: idOf(r.ID)}, TenantID: domain.TenantID{ID: idOf(r.TenantID)},
		ProjectID: domain.ProjectID{ID: idOf(r.ProjectID)}, UserID: domain.UserID{ID: idOf(r.UserID)},
		Phase: domain.Phase(r.Phase), Cancel: domain.Cancel(r.Cancel), UnknownSince: timePtr(r.UnknownSince),
		Stage: domain.Stage(r.Stage), Progress: percentPtr(r.Progress), Version: r.Version, LastEventID: r.LastEventID,
		CurrentAttemptID: domain.AttemptID{ID: idOf(r.CurrentAttemptID)}, AttemptCount: int(r.AttemptCount),
		OnLateSuccess: domain.LateSuccess(r.OnLateSuccess), AssetID: domain.AssetID{ID: idOf(r.AssetID)},
		TraceID: domain.TraceID{ID: idOf(r.TraceID)}, CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt),
		TerminalAt: timePtr(r.TerminalAt),
	}
	if r.ErrorCode != nil {
		t.Error = &domain.PublicError{
			Code: domain.ErrorClass(*r.ErrorCode), Retryable: r.ErrorRetryable != nil && *r.ErrorRetryable,
			TraceID: domain.TraceID{ID: idOf(r.ErrorTraceID)},
		}
	}
	return t
}

func attemptOf(r dbgen.TaskAttempt) (domain.Attempt, error) {
	outputs, err := outputsOf(r.Outputs)
	if err != nil {
		return domain.Attempt{}, err
	}
	return domain.Attempt{
		ID: domain.AttemptID{ID: idOf(r.ID)}, TaskID: domain.TaskID{ID: idOf(r.TaskID)}, No: int(r.AttemptNo),
		Provider: r.Provider, Model: r.Model, AccountID: r.AccountID, BaseURL: r.BaseUrl,
		ClientRequestID: r.ClientRequestID, ProviderTaskID: text(r.ProviderTaskID),
		Status: domain.AttemptStatus(r.Status), LastSequence: r.LastProviderSeq, LastProviderAt: timePtr(r.LastProviderAt),
		Progress: percentPtr(r.Progress), ProgressAt: timePtr(r.ProgressAt),
		DeferredProgress: percentPtr(r.DeferredProgress), DeferredUntil: timePtr(r.DeferredUntil),
		Outputs: outputs, ErrorClass: domain.ErrorClass(text(r.ErrorClass)), ErrorCode: text(r.ErrorCode),
		SubmitLease: idOf(r.SubmitLease), SubmitLeaseUntil: timePtr(r.SubmitLeaseUntil), NextSubmitAt: timePtr(r.NextSubmitAt),
		SubmitCount: int(r.SubmitCount), SubmittedAt: timePtr(r.SubmittedAt),
		PollLease: idOf(r.PollLease), PollLeaseUntil: timePtr(r.PollLeaseUntil), NextPollAt: timePtr(r.NextPollAt),
		PollCount: int(r.PollCount), PollFailures: int(r.PollFailures), PollHintAt: timePtr(r.PollHintAt),
		LastQueryAt: timePtr(r.LastQueryAt), AdoptedBy: domain.ActionID{ID: idOf(r.AdoptedBy)},
		NextReconcileAt: timePtr(r.NextReconcileAt), ReconcileCount: int(r.ReconcileCount),
		Overdue: r.Overdue, Conflicted: r.Conflicted, Credits: r.Credits, Closing: domain.Closing(r.Closing),
		CreatedAt: timeOf(r.CreatedAt), UpdatedAt: timeOf(r.UpdatedAt), TerminalAt: timePtr(r.TerminalAt),
	}, nil
}

func inputOf(r dbgen.TaskInput) ports.TaskInput {
	return ports.TaskInput{
		Prompt: r.Prompt, ImageURL: r.ImageUrl, DurationSeconds: int(r.DurationSeconds), AspectRatio: r.AspectRatio,
		Resolution: r.Resolution, Seed: r.Seed, Extra: r.Extra, Metadata: r.Metadata,
	}
}

func viewOf(t dbgen.GenerationTask, a dbgen.TaskAttempt, metadata []byte) (ports.TaskView, error) {
	attempt, err := attemptOf(a)
	if err != nil {
		return ports.TaskView{}, err
	}
	return ports.TaskView{Task: taskOf(t), Attempt: attempt, Metadata: metadata}, nil
}

func jobOf(t dbgen.GenerationTask, a dbgen.TaskAttempt, i dbgen.TaskInput) (ports.Job, error) {
	attempt, err := attemptOf(a)
	if err != nil {
		return ports.Job{}, err
	}
	return ports.Job{Task: taskOf(t), Attempt: attempt, Input: inputOf(i)}, nil
}

// headOf is the cursor of a stream's newest event.
func headOf(s dbgen.ProjectStream) domain.Cursor {
	if s.LastEventID == 0 || s.LastTaskVersion == nil {
		return domain.Cursor{EventID: s.LastEventID}
	}
	return domain.CursorOf(s.LastEventID, domain.TaskID{ID: idOf(s.LastTaskID)}, *s.LastTaskVersion, timeOf(s.LastAt))
}
