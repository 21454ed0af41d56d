package stdwebhook

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// Tolerance is how far a sender's clock may be from ours, either way; exactly
// so much still passes.
const Tolerance = 5 * time.Minute

// The reasons of a refusal.
const (
	ReasonMissingHeader = "missing_header"
	ReasonBadTimestamp  = "bad_timestamp"
	ReasonStale         = "stale"
	ReasonFuture        = "future"
	ReasonBadSignature  = "bad_signature"
	ReasonNoSecret      = "no_secret"
)

const (
	maxID        = 256
	maxSignature = 8 << 10
	maxEntries   = 16
)

// Envelope is the signed head of a delivery.
type Envelope struct {
	// ID names the message; the same in every attempt to deliver it.
	ID string
	// SentAt is when this attempt was made, by the sender's clock.
	SentAt time.Time

	timestamp string
	entries   []entry
}

type entry struct{ version, value string }

// Open reads the headers and checks the time against now. The error is a
// *ports.VerifyError. An envelope proves nothing before [Envelope.Verify].
func Open(header http.Header, now time.Time) (Envelope, error) {
	id, timestamp, signature := headers(header)
	if id == "" || timestamp == "" || signature == "" || len(id) > maxID || len(signature) > maxSignature || !printable(id) {
		return Envelope{}, &ports.VerifyError{Reason: ReasonMissingHeader}
	}
	unix, err := strconv.ParseInt(strings.TrimSpace(timestamp), 10, 64)
	if err != nil {
		return Envelope{}, &ports.VerifyError{Reason: ReasonBadTimestamp}
	}
	const tolerance = int64(Tolerance / time.Second)
	switch {
	case unix < now.Unix()-tolerance:
		return Envelope{}, &ports.VerifyError{Reason: ReasonStale}
	case unix > now.Unix()+tolerance:
		return Envelope{}, &ports.VerifyError{Reason: ReasonFuture}
	}
	return Envelope{ID: id, SentAt: time.Unix(unix, 0).UTC(), timestamp: timestamp, entries: split(signature)}, nil
}

// Verify returns the version of the first key that signed the body.
func (e Envelope) Verify(body []byte, keys []Key) (version string, ok bool) {
	return verify(e.ID, e.timestamp, body, e.entries, keys)
}

// VerifySignature checks a signature alone, whatever the time: for stored
// deliveries and for published vectors.
func VerifySignature(id, timestamp, signature string, body []byte, keys []Key) (version string, ok bool) {
	if id == "" || timestamp == "" || len(signature) > maxSignature {
		return "", false
	}
	return verify(id, timestamp, body, split(signature), keys)
}

func verify(id, timestamp string, body []byte, entries []entry, keys []Key) (string, bool) {
	content := make([]byte, 0, len(id)+len(timestamp)+len(body)+2)
	content = append(content, id...)
	content = append(content, '.')
	content = append(content, timestamp...)
	content = append(content, '.')
	content = append(content, body...)
	for _, key := range keys {
		if key.match(content, entries) {
			return key.Version, true
		}
	}
	return "", false
}

// headers takes one family of names, never a mixture of both. A header that came
// twice is no header: which of the two was signed?
func headers(h http.Header) (id, timestamp, signature string) {
	prefix := "Webhook-"
	if h.Get("Webhook-Id") == "" && h.Get("Svix-Id") != "" {
		prefix = "Svix-"
	}
	return single(h, prefix+"Id"), single(h, prefix+"Timestamp"), single(h, prefix+"Signature")
}

func single(h http.Header, name string) string {
	values := h.Values(name)
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// split reads the space-delimited list; entries past a bound are not looked at,
// or a header could buy a lot of ed25519.
func split(signature string) []entry {
	var entries []entry
	for field := range strings.FieldsSeq(signature) {
		version, value, ok := strings.Cut(field, ",")
		if !ok || value == "" {
			continue
		}
		if entries = append(entries, entry{version, value}); len(entries) == maxEntries {
			break
		}
	}
	return entries
}

func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return false
		}
	}
	return true
}
