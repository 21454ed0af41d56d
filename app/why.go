package app

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

// why is what operators learn about a call that failed. Neither part is public.
type why struct {
	// code is the class of the failure, with the vendor's or the adapter's code
	// behind a slash.
	code string
	// message is the vendor's own sentence.
	message string
}

// Reasons of our own for which no vendor was asked.
var (
	whyNotConfigured = why{code: "not_configured"}
	whyNotCalled     = why{code: "not_called"}
	whyShut          = why{code: "account_shut"}
	whyLeaseExpired  = why{code: "lease_expired"}
	whyNoID          = why{code: string(ports.ClassMalformed) + "/no_id"}
	whyNoJob         = why{code: string(ports.ClassNotFound)}
)

// whyOf reads the reason from the error of a call.
func whyOf(err error) why {
	pe := providerError(err)
	code := pe.Code
	if errors.Is(err, context.DeadlineExceeded) {
		code = "time_out"
	}
	w := why{code: string(pe.Class), message: sentence(pe.Message)}
	if code != "" {
		w.code += "/" + storable(code)
	}
	return w
}

// tell adds the reason to an input.
func (w why) tell(in *domain.Input) {
	in.ErrorCode, in.ErrorMessage = cmp.Or(in.ErrorCode, w.code), w.message
}

// sentence makes sure of what adapters promise about a vendor's text: nothing that
// the store would refuse, and not too much.
func sentence(s string) string {
	if len(s) <= domain.MaxErrorMessage && clean(s) {
		return s
	}
	s = strings.ReplaceAll(strings.ToValidUTF8(s, "?"), "\x00", "")
	n := min(len(s), domain.MaxErrorMessage)
	for n > 0 && n < len(s) && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
