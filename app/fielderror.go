package app

import "strings"

// FieldError is one fault of a command, fit for the client.
type FieldError struct {
	// Field is the path in the request, for instance "input.prompt".
	Field string
	// Code is a stable word: required, too_long, unknown, invalid, out_of_range.
	Code string
	// Detail is a sentence that says what to do.
	Detail string
}

// FieldErrors holds every fault of a command; nothing was stored.
type FieldErrors struct{ Fields []FieldError }

// Error lists the faults.
func (e *FieldErrors) Error() string {
	parts := make([]string, len(e.Fields))
	for i, f := range e.Fields {
		parts[i] = f.Field + ": " + f.Detail
	}
	return "invalid request: " + strings.Join(parts, "; ")
}

// check notes a fault when the condition does not hold.
func (e *FieldErrors) check(ok bool, field, code, detail string) {
	if !ok {
		e.Fields = append(e.Fields, FieldError{Field: field, Code: code, Detail: detail})
	}
}

// err is the error, nil without a fault.
func (e *FieldErrors) err() error {
	if len(e.Fields) == 0 {
		return nil
	}
	return e
}
