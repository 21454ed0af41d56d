package ports

import (
	"context"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Reader gives snapshots. Each is one statement, so that its cursor and its rows
// belong together (I7).
type Reader interface {
	// Task returns a task of the project with its current attempt and the head of
	// the project's stream. ErrNotFound also for a task of another project.
	Task(ctx context.Context, project domain.ProjectID, task domain.TaskID) (TaskView, domain.Cursor, error)
	// Tasks lists a project's tasks, newest first.
	Tasks(ctx context.Context, params ListParams) (TaskPage, error)
	// FindTask returns a task by id alone, for operators. ErrNotFound.
	FindTask(ctx context.Context, task domain.TaskID) (TaskView, error)
	// Attempt returns an attempt with its task and input. ErrNotFound.
	Attempt(ctx context.Context, attempt domain.AttemptID) (Job, error)
	// Timeline returns all that was recorded about a task, oldest first.
	Timeline(ctx context.Context, project domain.ProjectID, task domain.TaskID) (Timeline, error)
	// Asset returns a published file of the project. ErrNotFound.
	Asset(ctx context.Context, project domain.ProjectID, asset domain.AssetID) (Asset, error)
}

// TaskView is a task as one reads it.
type TaskView struct {
	Task    domain.Task
	Attempt domain.Attempt
	// Metadata is the client's own JSON object, nil for none.
	Metadata []byte
}

// ListParams asks for a page of tasks.
type ListParams struct {
	ProjectID domain.ProjectID
	// Status filters by public status when set.
	Status domain.Status
	// After is the last task of the page before; zero for the first page.
	After domain.TaskID
	Limit int
}

// TaskPage is a page of tasks and the head of the stream at the same moment.
type TaskPage struct {
	Tasks  []TaskView
	Cursor domain.Cursor
	// Next is the After of the next page, zero at the end.
	Next domain.TaskID
}

// Timeline is the whole recorded history of a task.
type Timeline struct {
	Entries []TimelineEntry
	// Counters count what was not recorded one by one, by verdict and reason:
	// "unchanged", "ignored/throttled_progress".
	Counters map[string]int64
}

// TimelineEntry is one input that changed something or was refused, or one
// event, or one publication.
type TimelineEntry struct {
	At time.Time
	// Kind is "observation", "event", "operation", "ledger", "conflict" or "audit".
	Kind      string
	AttemptNo int
	Source    domain.Source
	// Status is what was claimed or became public; of a ledger entry or an
	// operation its type, of an audit the action.
	Status  string
	Stage   domain.Stage
	Verdict domain.Verdict
	// VersionBefore and VersionAfter are the task's; equal when nothing changed.
	VersionBefore int64
	VersionAfter  int64
	EventID       int64
	Progress      *int
	// Detail is for operators. Of an observation it begins with the kind of input,
	// and goes on behind a colon with the class and code of what went wrong, when it
	// is tried again, and the vendor's own sentence in quotes. Of an operation it says
	// how the newest try went.
	Detail string
}

// Events reads the project streams.
type Events interface {
	// Head is the cursor of the newest event, the zero Cursor of an empty stream.
	Head(ctx context.Context, project domain.ProjectID) (domain.Cursor, error)
	// After returns up to limit events that follow the cursor, oldest first. Reset
	// is set when the cursor's own event is not there with the same tag: the
	// reader must start from a snapshot. A cursor at 0 is always known.
	After(ctx context.Context, project domain.ProjectID, cursor domain.Cursor, limit int) (EventPage, error)
	// Since returns events of all projects stored at or after the time, oldest
	// first: how a gateway finds what the notifier lost.
	Since(ctx context.Context, at time.Time, limit int) ([]StoredEvent, error)
	// Heads returns the newest event number of each project that has one.
	Heads(ctx context.Context, projects []domain.ProjectID) (map[domain.ProjectID]int64, error)
}

// EventPage is a piece of a stream.
type EventPage struct {
	Events []StoredEvent
	// Reset names why the cursor cannot be used, empty when it can.
	Reset ResetReason
	// Head is the newest position at the same moment.
	Head domain.Cursor
}

// ResetReason says why a cursor is of no use.
type ResetReason string

// The reasons of a reset.
const (
	ResetExpired ResetReason = "expired"
	ResetFuture  ResetReason = "future"
	ResetTag     ResetReason = "tag_mismatch"
	ResetBad     ResetReason = "bad_cursor"
)
