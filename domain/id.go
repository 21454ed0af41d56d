package domain

import "fmt"

// ID is a UUID in its binary form. The domain compares identifiers and never
// makes one. The zero ID means "none".
type ID [16]byte

// IsZero reports whether the identifier is absent.
func (id ID) IsZero() bool { return id == ID{} }

// String returns the canonical 36-character form of a UUID.
func (id ID) String() string {
	return fmt.Sprintf("%x-%x-%x-%x-%x", id[0:4], id[4:6], id[6:8], id[8:10], id[10:16])
}

// The kinds of identifier. Each is a type of its own, so that the compiler
// refuses an attempt where a task is meant.
type (
	// TaskID names one generation task.
	TaskID struct{ ID }
	// AttemptID names one try at a task with one vendor.
	AttemptID struct{ ID }
	// ProjectID names a project: the unit of event order and of access.
	ProjectID struct{ ID }
	// TenantID names a customer of the platform.
	TenantID struct{ ID }
	// UserID names the person or service that a task belongs to.
	UserID struct{ ID }
	// AssetID names a published media file.
	AssetID struct{ ID }
	// TraceID ties everything that one request caused together.
	TraceID struct{ ID }
	// OperationID names one piece of follow-up work.
	OperationID struct{ ID }
	// ActionID names one audited command of an operator.
	ActionID struct{ ID }
)
