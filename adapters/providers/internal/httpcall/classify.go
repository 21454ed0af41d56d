package httpcall

import (
	"net/http"
	"strconv"
	"time"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// Classify sorts an answer by its status; nil for 2xx. A status is no verdict
// about a job: only a refused create is.
func Classify(status int, header http.Header, now time.Time, create bool) *ports.ProviderError {
	e := &ports.ProviderError{Code: "http_" + strconv.Itoa(status), RetryAfter: RetryAfter(header, now)}
	switch {
	case status >= 200 && status < 300:
		return nil
	case status == http.StatusTooManyRequests:
		e.Class, e.NotSent = ports.ClassThrottled, create
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		e.Class = ports.ClassAuth
	case status == http.StatusServiceUnavailable:
		e.Class, e.NotSent = ports.ClassTransport, create
	case status < 400, status == http.StatusRequestTimeout, status == http.StatusTooEarly, status >= 500:
		e.Class = ports.ClassTransport
	case !create && (status == http.StatusNotFound || status == http.StatusGone):
		e.Class = ports.ClassNotFound
	case status == http.StatusPaymentRequired:
		e.Class, e.ErrorClass = ports.ClassRejected, string(domain.ClassQuota)
	default:
		e.Class, e.ErrorClass = ports.ClassRejected, string(domain.ClassInvalidInput)
	}
	return e
}

// Malformed is the failure of a 2xx answer that cannot be understood. On a create
// it leaves unknown whether the vendor has the job.
func Malformed(code string, err error) *ports.ProviderError {
	return &ports.ProviderError{Class: ports.ClassMalformed, Code: code, Err: err}
}

// Refused is our own refusal of a request that no vendor could take; nothing was
// sent.
func Refused(code string, err error) *ports.ProviderError {
	return &ports.ProviderError{Class: ports.ClassRejected, ErrorClass: string(domain.ClassInvalidInput), Code: code, Err: err}
}
