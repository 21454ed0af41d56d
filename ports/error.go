package ports

import (
	"errors"
	"fmt"
	"time"
)

// Errors that adapters translate their own into. Callers ask with errors.Is.
var (
	// ErrNotFound: no such row, or a row of somebody else.
	ErrNotFound = errors.New("not found")
	// ErrUnavailable: the service behind the port does not answer; the same call
	// may pass later. A lost COMMIT is also this: nobody knows.
	ErrUnavailable = errors.New("unavailable")
	// ErrIdempotencyMismatch: the key was used with another body.
	ErrIdempotencyMismatch = errors.New("idempotency key was used with another request")
	// ErrLeaseLost: another process holds the lease now.
	ErrLeaseLost = errors.New("lease lost")
	// ErrCredits: the tenant's balance does not cover the reservation.
	ErrCredits = errors.New("not enough credits")
)

// ProviderClass sorts a failed call of a vendor (specification 12.8.4).
type ProviderClass string

// The classes of a failed call.
const (
	// ClassTransport: no usable answer: time-out, reset, 408, 425, 5xx.
	ClassTransport ProviderClass = "transport"
	// ClassThrottled: 429 or its equivalent in a body.
	ClassThrottled ProviderClass = "throttled"
	// ClassAuth: 401 or 403: the credential, not the task.
	ClassAuth ProviderClass = "auth"
	// ClassNotFound: 404 or 410 on a query.
	ClassNotFound ProviderClass = "not_found"
	// ClassMalformed: an answer that does not parse.
	ClassMalformed ProviderClass = "malformed"
	// ClassRejected: the vendor refused the request itself; on a submit this is
	// its verdict.
	ClassRejected ProviderClass = "rejected"
)

// ProviderError is the only error that a Provider returns for a call that was
// tried.
type ProviderError struct {
	Class ProviderClass
	// NotSent is set only when the vendor provably did not take the request: the
	// dial or TLS failed, or it answered 429 or 503 to a create.
	NotSent bool
	// RetryAfter is the vendor's wish, 0 when it has none.
	RetryAfter time.Duration
	// ErrorClass is set with ClassRejected; a domain.ErrorClass.
	ErrorClass string
	// Code is the vendor's code: for operators, never for the public.
	Code string
	// Message is the vendor's own sentence, cleaned as in domain.Observation: for
	// operators. Error leaves it out, so that it reaches no log.
	Message string
	// Shape goes with ClassMalformed: the outline of the answer, names of keys and
	// kinds of values, nothing of what it said. Empty when there was no body.
	Shape string
	Err   error
}

// Error names the class and the cause, without a body or a URL.
func (e *ProviderError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("provider call: %s %s", e.Class, e.Code)
	}
	return fmt.Sprintf("provider call: %s %s: %v", e.Class, e.Code, e.Err)
}

// Unwrap returns the cause.
func (e *ProviderError) Unwrap() error { return e.Err }
