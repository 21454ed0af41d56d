package httpapi

import (
	"net/http"
	"slices"
	"strconv"
)

// The bounds of a list on the desk.
const (
	deskNormal = 50
	deskMost   = 500
)

// rowID reads {id} of a row.
func rowID(r *http.Request) (int64, error) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err != nil || id < 1 {
		return 0, problemID.saying("The id in the path must be the number of a row.")
	}
	return id, nil
}

// maxReason is the longest reason in bytes.
const maxReason = 1000

// checkReason asks for a reason: an action without one cannot be understood
// later.
func checkReason(reason string) error {
	switch {
	case reason == "":
		return problemFields.with(Fault{"reason", "required", "say why"})
	case len(reason) > maxReason || slices.Contains([]byte(reason), 0):
		return problemFields.with(Fault{"reason", "invalid", "use at most " + strconv.Itoa(maxReason) + " bytes without NUL"})
	}
	return nil
}

// each maps a slice; nil becomes an empty list.
func each[In, Out any](in []In, f func(In) Out) []Out {
	out := make([]Out, len(in))
	for i, v := range in {
		out[i] = f(v)
	}
	return out
}
