package wire

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/domain"
)

// Explanation is why an input is what it is, for the timeline of operators.
type Explanation struct {
	Kind domain.Kind
	// Class and Code are words: of ours, or the vendor's code.
	Class domain.ErrorClass
	Code  string
	// Message is the vendor's sentence; it is quoted, so that nobody takes it for
	// ours.
	Message string
	// Next is when it is tried again, nil when it is not.
	Next *time.Time
}

// Text is one line: the kind, behind a colon the words, the next try and the
// vendor's sentence where there are any. "submit_not_sent: throttled/http_429,
// again at 2026-12-01T15:40:00.000Z, "Request was throttled."".
func (e Explanation) Text() string {
	var parts []string
	if why := e.words(); why != "" {
		parts = append(parts, why)
	}
	if e.Next != nil {
		parts = append(parts, "again at "+FormatTime(*e.Next))
	}
	if e.Message != "" {
		parts = append(parts, strconv.Quote(e.Message))
	}
	if len(parts) == 0 {
		return string(e.Kind)
	}
	return string(e.Kind) + ": " + strings.Join(parts, ", ")
}

// words are the class and the code, once where one says the other.
func (e Explanation) words() string {
	class := string(e.Class)
	if class == "" || e.Code == "" || strings.HasPrefix(e.Code, class) {
		return cmp.Or(e.Code, class)
	}
	return class + "/" + e.Code
}

// NextTry is when a failure is tried again after the decision about it, nil for
// an input that is no failure or ends the tries.
func NextTry(kind domain.Kind, a domain.Attempt) *time.Time {
	switch kind {
	case domain.InputSubmitNotSent, domain.InputPollFailed, domain.InputLookupFailed, domain.InputSubmitUnknown:
		return a.Timer()
	default:
		return nil
	}
}

// OperationText says how a try of an operation went: its number, the word for
// what went wrong, and when the next one is due.
func OperationText(tries int, code string, next time.Time) string {
	if code == "" {
		code = "released"
	}
	return "try " + strconv.Itoa(tries) + ": " + code + ", again at " + FormatTime(next)
}
