package domain

import (
	"errors"
	"slices"
)

// Errors of commands. An observation never returns one: it gets a verdict.
var (
	// ErrTaskTerminal refuses a command that needs a task still going on.
	ErrTaskTerminal = errors.New("the task has already ended")
	// ErrNotRetryable refuses a retry of a task that has not ended.
	ErrNotRetryable = errors.New("only a failed or canceled task can be retried")
	// ErrPossibleDuplicate refuses a retry while it is unknown whether the vendor
	// accepted the last attempt, unless the caller accepts a second bill.
	ErrPossibleDuplicate = errors.New("the vendor may have accepted the last attempt")
	// ErrInvalidTransition refuses a command that does not fit the state.
	ErrInvalidTransition = errors.New("the command does not fit the state")
	// ErrInvalidInput reports an input that misses what its kind needs: a fault
	// of the caller.
	ErrInvalidInput = errors.New("incomplete input")
)

// ErrorClass sorts why an attempt failed (specification 12.8.4).
type ErrorClass string

// The error classes.
const (
	ClassModerationInput  ErrorClass = "moderation_input"
	ClassModerationOutput ErrorClass = "moderation_output"
	ClassInvalidInput     ErrorClass = "invalid_input"
	ClassQuota            ErrorClass = "quota_exceeded"
	ClassUnavailable      ErrorClass = "provider_unavailable"
	ClassProvider         ErrorClass = "provider_error"
	ClassOutputMissing    ErrorClass = "output_missing"
	ClassOutputExpired    ErrorClass = "output_expired"
	ClassExpired          ErrorClass = "expired"
	ClassMedia            ErrorClass = "media_error"
	ClassCanceled         ErrorClass = "canceled"
	ClassNotCreated       ErrorClass = "not_created"
	ClassAbandoned        ErrorClass = "abandoned"
)

// ErrorClasses lists every error class.
func ErrorClasses() []ErrorClass {
	return []ErrorClass{ClassModerationInput, ClassModerationOutput, ClassInvalidInput, ClassQuota, ClassUnavailable, ClassProvider, ClassOutputMissing, ClassOutputExpired, ClassExpired, ClassMedia, ClassCanceled, ClassNotCreated, ClassAbandoned}
}

// or is the class if it is on the list. Any other word may be a vendor's and would
// become a public code (I15).
func (c ErrorClass) or(fallback ErrorClass) ErrorClass {
	if slices.Contains(ErrorClasses(), c) {
		return c
	}
	return fallback
}

// Retryable reports whether a new attempt with the same input may succeed.
func (c ErrorClass) Retryable() bool {
	switch c {
	case ClassModerationInput, ClassInvalidInput:
		return false
	default:
		return true
	}
}

// PublicError is all that the public learns about a failure: a stable code,
// never the vendor's text (I15).
type PublicError struct {
	Code      ErrorClass
	Retryable bool
	TraceID   TraceID
}
