package vendortext

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/aivedio/aivedio/domain"
)

// maxRead bounds what is looked at of a sentence: the rest of a traceback is of
// no use, and every pattern reads it all.
const maxRead = 8 << 10

// The placeholders.
const (
	hiddenURL    = "[url]"
	hiddenSecret = "[secret]"
	hiddenMail   = "[mail]"
)

// rule replaces what must not be kept.
type rule struct {
	pattern *regexp.Regexp
	with    string
}

// rules run in this order: a URL may hold a key, and a named secret may look like
// nothing at all.
var rules = []rule{
	// With a scheme, data included; without one, a host followed by a path, a query
	// or a port.
	{regexp.MustCompile(`[^\s"'<>()=,]*://[^\s"'<>]*`), hiddenURL},
	{regexp.MustCompile(`(?i)\bdata:[^\s"'<>]+`), hiddenURL},
	{regexp.MustCompile(`[^\s"'<>@:/]+:[^\s"'<>@/]+@[^\s"'<>]+`), hiddenURL}, // user:password@host
	{regexp.MustCompile(`[^\s"'<>@()\[\],;:]+@[^\s"'<>@()\[\],;]+`), hiddenMail},
	{regexp.MustCompile(`(?i)\b(?:[a-z0-9-]+\.)+[a-z]{2,}(?::[0-9]+)?[/?][^\s"'<>]*`), hiddenURL},
	{regexp.MustCompile(`(?i)\b(?:(?:[a-z0-9-]+\.)+[a-z]{2,}|localhost|[0-9]{1,3}(?:\.[0-9]{1,3}){3}):[0-9]{1,5}\b[^\s"'<>]*`), hiddenURL},
	{regexp.MustCompile(`\b[0-9]{1,3}(?:\.[0-9]{1,3}){3}\b`), hiddenURL},
	{regexp.MustCompile(`(?i)\b(?:bearer|basic|token)\s+[A-Za-z0-9._~+/=*-]{6,}`), hiddenSecret},
	{regexp.MustCompile(`(?i)\b((?:[a-z0-9]+[_-])*(?:api[_ -]?key|key|token|secret|password|passwd|pwd|signature|sig|credential|authorization|cookie|session)(?:[_-][a-z0-9]+)*["']?\s*[=:]\s*)["']?[^\s"',;&<>)}\]\[]+`), "${1}" + hiddenSecret},
	{regexp.MustCompile(`(?i)\b(?:sk|pk|rk|r8|ak|hf|gh[opsur]|xox[a-z]|whsec|key|token|glpat|api)[_-][^\s"',;<>)}\]]{4,}`), hiddenSecret},
	{regexp.MustCompile(`\b(?:AKIA|ASIA|AIza|eyJ)[^\s"',;<>)}\]]{8,}`), hiddenSecret},
}

// opaque is a run of characters that keys are made of.
var opaque = regexp.MustCompile(`[A-Za-z0-9_+/=~*.-]{20,}`)

// Clean returns the sentence as it may be stored: at most
// [domain.MaxErrorMessage] bytes of valid UTF-8 in one line, with addresses,
// credentials and whatever looks like one replaced. Names of jobs may fall to the
// last rule, too; the attempt has them. It is for operators all the same: what is
// left may still quote a user's prompt, so it is never public.
func Clean(sentence string) string {
	s := oneLine(head(sentence))
	for _, r := range rules {
		s = r.pattern.ReplaceAllString(s, r.with)
	}
	s = opaque.ReplaceAllStringFunc(s, func(run string) string {
		if looksSecret(run) {
			return hiddenSecret
		}
		return run
	})
	return cut(s, domain.MaxErrorMessage)
}

// head is the part that is looked at. What was cut in the middle goes as a whole:
// half of a key may not look like one.
func head(s string) string {
	if len(s) <= maxRead {
		return s
	}
	s = s[:maxRead]
	return s[:max(strings.LastIndexAny(s, " \t\r\n"), 0)]
}

// oneLine has valid UTF-8, one space for each run of white space, and nothing
// that moves a cursor or the direction of writing.
func oneLine(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		default:
			return r
		}
	}, strings.ToValidUTF8(s, "\uFFFD"))
	return strings.Join(strings.Fields(s), " ")
}

// looksSecret reports whether a long run is no word: it has both digits and letters,
// or is longer than words are.
func looksSecret(run string) bool {
	digits := strings.ContainsAny(run, "0123456789")
	letters := strings.ContainsFunc(run, func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' })
	return digits && letters || len(run) > 40 || digits && !strings.ContainsAny(run, ".")
}

// cut shortens to at most n bytes, at the end of a character.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	const more = "…"
	n -= len(more)
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + more
}
