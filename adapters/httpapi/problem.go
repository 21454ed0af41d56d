package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"

	"github.com/aivedio/aivedio/app"
	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
	"github.com/aivedio/aivedio/ports"
)

// Problem is an RFC 9457 document. It is an error, so that a handler returns it
// like any other.
type Problem struct {
	// Type is "urn:aivedio:problem:" and the code.
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	// Detail is a sentence that says what to do; never text from a vendor, a
	// database or an internal error.
	Detail  string  `json:"detail"`
	Code    string  `json:"code"`
	TraceID string  `json:"trace_id"`
	Errors  []Fault `json:"errors"`
	// header lines that go along.
	header map[string]string
}

// Fault is a problem of one field.
type Fault struct {
	// Field is the path in the body, or the name of a parameter or header.
	Field  string `json:"field"`
	Code   string `json:"code"`
	Detail string `json:"detail"`
}

// Error names the code and the sentence.
func (p *Problem) Error() string { return p.Code + ": " + p.Detail }

func problem(status int, code, title, detail string) *Problem {
	return &Problem{Type: "urn:aivedio:problem:" + code, Title: title, Status: status, Detail: detail, Code: code, Errors: []Fault{}}
}

// with returns a copy with the faults of fields.
func (p *Problem) with(faults ...Fault) *Problem {
	c := *p
	c.Errors = faults
	return &c
}

// saying returns a copy with another sentence.
func (p *Problem) saying(detail string) *Problem {
	c := *p
	c.Detail = detail
	return &c
}

// sending returns a copy with a header line.
func (p *Problem) sending(name, value string) *Problem {
	c := *p
	c.header = map[string]string{name: value}
	return &c
}

// The problems that begin in this package.
var (
	problemMalformed   = problem(http.StatusBadRequest, "malformed_json", "The body is not valid JSON", "Send one JSON object, in UTF-8 and complete.")
	problemUnknown     = problem(http.StatusBadRequest, "unknown_field", "The body has an unknown field", "Remove the fields that are listed in errors, or correct their names.")
	problemTruncated   = problem(http.StatusBadRequest, "truncated_body", "The body ended early", "Send the whole body, with as many bytes as Content-Length says, in one go.")
	problemQuery       = problem(http.StatusBadRequest, "invalid_query", "A query parameter is not valid", "Correct the parameters that are listed in errors.")
	problemCursor      = problem(http.StatusBadRequest, "invalid_cursor", "The cursor is not valid", "Use the value of next from the page before as after, or leave after out for the first page.")
	problemFields      = problem(http.StatusUnprocessableEntity, "validation_failed", "The request is not valid", "Correct the fields that are listed in errors.")
	problemTooLarge    = problem(http.StatusRequestEntityTooLarge, "body_too_large", "The body is too large", "Send a smaller body.")
	problemMediaType   = problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "The content type is not supported", "Send application/json in UTF-8, without a Content-Encoding.")
	problemHeaders     = problem(http.StatusRequestHeaderFieldsTooLarge, "too_many_headers", "The request has too many header lines", "Send fewer header lines.")
	problemInsecure    = problem(http.StatusForbidden, "insecure_transport", "The request came without TLS", "Use https from the start; there is no redirect.")
	problemNoRoute     = problem(http.StatusNotFound, "no_such_route", "There is nothing at this address", "Look the address up in /openapi.json; it has no trailing slash and no empty segment.")
	problemMethod      = problem(http.StatusMethodNotAllowed, "method_not_allowed", "The method is not allowed here", "Use one of the methods in the Allow header.")
	problemAnonymous   = problem(http.StatusUnauthorized, "unauthenticated", "A valid API key is needed", `Send a live key as "Authorization: Bearer ak_…".`).sending("WWW-Authenticate", `Bearer realm="aivedio"`)
	problemScope       = problem(http.StatusForbidden, "scope_missing", "The API key may not do this", "Use a key with the scope that the route needs.")
	problemID          = problem(http.StatusNotFound, "not_found", "There is no such thing", "")
	problemNotFound    = problem(http.StatusNotFound, "not_found", "There is no such thing", "Check the id; things of other tenants and projects are not shown.")
	problemURLExpired  = problem(http.StatusForbidden, "url_expired", "The signed URL has expired", "Read the asset again for a fresh content_url.")
	problemURLInvalid  = problem(http.StatusForbidden, "url_invalid", "The signature of the URL is not valid", "Use content_url exactly as the asset shows it.")
	problemRange       = problem(http.StatusRequestedRangeNotSatisfiable, "range_not_satisfiable", "The range lies outside the file", "Ask for a range within the size that the asset shows.")
	problemInternal    = problem(http.StatusInternalServerError, "internal", "Something went wrong on our side", "Try again later; quote the trace_id when you report it.")
	problemUnavailable = problem(http.StatusServiceUnavailable, "unavailable", "The service cannot answer just now", "Repeat the request after the time in Retry-After.").sending("Retry-After", "2")
	problemOverloaded  = problem(http.StatusServiceUnavailable, "overloaded", "The service has too much to do", "Repeat the request after the time in Retry-After.").sending("Retry-After", "5")
	problemDelivery    = problem(http.StatusUnauthorized, "delivery_refused", "The delivery was not accepted", "Sign the body as it is sent, with the current secret and a fresh time, and send it again.")
	problemLimited     = problem(http.StatusTooManyRequests, "rate_limited", "Too much is sent", "Repeat the delivery after the time in Retry-After.")
	problemCallback    = problem(http.StatusNotFound, "unknown_callback", "There is no such callback address", "Use the callback URL exactly as it was registered.")
)

// translations is the one table from errors inside to problems outside. Order
// matters only where an error wraps two.
var translations = []struct {
	err     error
	problem *Problem
}{
	{domain.ErrTaskTerminal, problem(http.StatusConflict, "task_terminal", "The task has already ended", "Read the task: nothing is left to cancel. One that has failed or been canceled can be retried.")},
	{domain.ErrNotRetryable, problem(http.StatusConflict, "not_retryable", "The task cannot be retried", "Wait until the task has failed or been canceled, or submit a new one.")},
	{domain.ErrPossibleDuplicate, problem(http.StatusConflict, "possible_duplicate", "The vendor may have accepted the last attempt", "Wait until that is known, or repeat with accept_possible_duplicate set to true and risk a second bill.")},
	{domain.ErrInvalidTransition, problem(http.StatusConflict, "invalid_transition", "The command does not fit the state", "Read the task again and decide by its present state.")},
	{ports.ErrIdempotencyMismatch, problem(http.StatusUnprocessableEntity, "idempotency_mismatch", "The Idempotency-Key was used with another request", "Use a new key for a new request, or repeat the old one unchanged.")},
	{ports.ErrCredits, problem(http.StatusPaymentRequired, "insufficient_credits", "The balance does not cover the task", "Add credits to the tenant and try again.")},
	{app.ErrUnauthenticated, problemAnonymous},
	{app.ErrUnknownProvider, problemCallback},
	{app.ErrUnknownToken, problemCallback},
	{app.ErrOverloaded, problemOverloaded},
	{ports.ErrUnavailable, problemUnavailable},
	{context.DeadlineExceeded, problemUnavailable},
	{ports.ErrNotFound, problemNotFound},
}

// problemOf translates an error. known is false for one that is in no table: its
// text goes to the log and nowhere else.
func problemOf(err error) (p *Problem, known bool) {
	var own *Problem
	if errors.As(err, &own) {
		return own, true
	}
	var fields *app.FieldErrors
	if errors.As(err, &fields) {
		return problemFields.with(faultsOf(fields)...), true
	}
	var refused *ports.VerifyError
	if errors.As(err, &refused) {
		return problemDelivery, true
	}
	for _, t := range translations {
		if errors.Is(err, t.err) {
			return t.problem, true
		}
	}
	return problemInternal, false
}

func faultsOf(e *app.FieldErrors) []Fault {
	return each(e.Fields, func(f app.FieldError) Fault { return Fault{f.Field, f.Code, f.Detail} })
}

// write sends the document.
func (p *Problem) write(w http.ResponseWriter, trace domain.TraceID) error {
	doc := *p
	doc.TraceID = wire.TraceID(trace)
	body, err := json.Marshal(doc)
	if err != nil {
		return err
	}
	for name, value := range p.header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(p.Status)
	_, err = w.Write(body)
	return err
}
