package jsonbody

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Limits of a body. Vendors echo their users' input, so both leave room.
const (
	MaxBytes = 4 << 20
	MaxDepth = 128
)

// Errors of [Parse].
var (
	// ErrNotObject reports bytes that are no JSON object: empty, cut off, HTML, a
	// list.
	ErrNotObject = errors.New("not a JSON object")
	// ErrTooLarge reports a body above MaxBytes.
	ErrTooLarge = errors.New("body too large")
	// ErrTooDeep reports nesting above MaxDepth.
	ErrTooDeep = errors.New("body nested too deeply")
	// ErrAmbiguous reports an object that gives one name two different values:
	// two readers would see two different statuses.
	ErrAmbiguous = errors.New("a name has two different values")
)

// Object is one JSON object, its values still raw. Names match exactly, unlike
// those of encoding/json, for which "Status" is "status".
type Object map[string]json.RawMessage

// Parse reads a body that must be one object.
func Parse(body []byte) (Object, error) {
	if len(body) > MaxBytes {
		return nil, ErrTooLarge
	}
	body = trim(body)
	if len(body) == 0 || body[0] != '{' {
		return nil, ErrNotObject
	}
	if depth(body) > MaxDepth {
		return nil, ErrTooDeep
	}
	if !json.Valid(body) {
		return nil, ErrNotObject
	}
	return split(body)
}

// Has reports whether the name is there with anything but null.
func (o Object) Has(name string) bool {
	raw, ok := o[name]
	return ok && !isNull(raw)
}

// Null reports whether the name is there and null: said to be nothing, which is
// more than not being said.
func (o Object) Null(name string) bool {
	raw, ok := o[name]
	return ok && isNull(raw)
}

// Text returns a string, or the digits of a number exactly as they came: ids of
// nineteen digits do not survive a float. Empty when absent or of another kind.
func (o Object) Text(name string) string { return text(o[name]) }

// Said returns a value as people read it: a string's text, and anything else but
// null in JSON. Empty when absent.
func (o Object) Said(name string) string {
	if !o.Has(name) {
		return ""
	}
	if s := o.Text(name); s != "" || o[name][0] == '"' {
		return s
	}
	return string(o[name])
}

// Objects returns the objects of a list within; nil when absent or no list. Other
// members are left out.
func (o Object) Objects(name string) []Object {
	var all []json.RawMessage
	if raw := o[name]; len(raw) == 0 || raw[0] != '[' || json.Unmarshal(raw, &all) != nil {
		return nil
	}
	var found []Object
	for _, raw := range all {
		if len(raw) == 0 || raw[0] != '{' {
			continue
		}
		if member, err := split(raw); err == nil {
			found = append(found, member)
		}
	}
	return found
}

// First returns the Text of the first name that has one.
func (o Object) First(names ...string) string {
	for _, name := range names {
		if s := o.Text(name); s != "" {
			return s
		}
	}
	return ""
}

// Number returns a number, given as a number or as text; a percent sign and
// spaces are accepted. False when absent, of another kind or not finite.
func (o Object) Number(name string) (float64, bool) {
	s := strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(o.Text(name)), "%"))
	if s == "" || strings.ContainsAny(s, "xXpP_nN") { // hexadecimal, underscores, NaN and Inf are no JSON
		return 0, false
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsInf(f, 0) {
		return 0, false
	}
	return f, true
}

// Percent returns a progress from 0 to 100, nil when there is none or it is out
// of range: a wild figure says nothing.
func (o Object) Percent(name string) *int {
	f, ok := o.Number(name)
	if !ok || f < 0 || f > 100 {
		return nil
	}
	n := int(f)
	return &n
}

// Object returns an object within; nil, on which every method works, when absent
// or of another kind.
func (o Object) Object(name string) Object {
	raw := o[name]
	if len(raw) == 0 || raw[0] != '{' {
		return nil
	}
	inner, err := split(raw)
	if err != nil {
		return nil
	}
	return inner
}

// Years outside these bounds are not the time of any job.
var (
	earliest = time.Date(2015, 1, 1, 0, 0, 0, 0, time.UTC)
	latest   = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)
)

// Time returns a moment given as RFC 3339, or as a Unix time in seconds or in
// milliseconds. Nil when absent, unreadable or from another age.
func (o Object) Time(name string) *time.Time {
	s := strings.TrimSpace(o.Text(name))
	if s == "" {
		return nil
	}
	t, err := time.Parse(time.RFC3339, s)
	if err != nil {
		f, ok := o.Number(name)
		switch {
		case !ok || f <= 0 || f > 1e13:
			return nil
		case f > 1e11:
			t = time.UnixMilli(int64(f))
		default:
			t = time.UnixMilli(int64(f * 1000))
		}
	}
	if t.Before(earliest) || t.After(latest) {
		return nil
	}
	t = t.UTC()
	return &t
}

func text(raw json.RawMessage) string {
	if len(raw) == 0 {
		return ""
	}
	switch c := raw[0]; {
	case c == '"':
		// Most texts hold no escape; those need no decoder.
		if plain := raw[1 : len(raw)-1]; bytes.IndexByte(plain, '\\') < 0 && utf8.Valid(plain) {
			return string(plain)
		}
		var s string
		if json.Unmarshal(raw, &s) != nil {
			return ""
		}
		return s
	case c == '-' || c >= '0' && c <= '9':
		return string(raw)
	default:
		return ""
	}
}

// trim cuts what JSON calls white space, which is less than Unicode does.
func trim(b []byte) []byte { return bytes.Trim(b, " \t\r\n") }

func isNull(raw json.RawMessage) bool { return string(raw) == "null" }

// depth is the deepest nesting, counted before anything recursive reads the
// bytes. On invalid JSON it is a guess, which does no harm.
func depth(body []byte) int {
	deepest, now, inString, escaped := 0, 0, false, false
	for _, c := range body {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = c == '\\'
			inString = c != '"'
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

// split cuts a valid object into its members, without touching what is inside.
func split(body []byte) (Object, error) {
	o := Object{}
	rest := trim(body[1:])
	for len(rest) > 0 && rest[0] != '}' {
		key, after := token(rest)
		value, tail := token(trim(after)[1:]) // past the colon
		name := text(key)
		if old, twice := o[name]; twice && !bytes.Equal(old, value) {
			return nil, fmt.Errorf("%w: %.40q", ErrAmbiguous, name)
		}
		o[name] = value
		rest = trim(tail)
		if len(rest) > 0 && rest[0] == ',' {
			rest = trim(rest[1:])
		}
	}
	return o, nil
}

// token returns the first value of valid JSON and what follows it.
func token(b []byte) (value json.RawMessage, rest []byte) {
	b = trim(b)
	now, inString, escaped := 0, false, false
	for i, c := range b {
		switch {
		case escaped:
			escaped = false
		case inString:
			escaped = c == '\\'
			if inString = c != '"'; !inString && now == 0 {
				return json.RawMessage(b[:i+1]), b[i+1:]
			}
		case c == '"':
			inString = true
		case c == '{' || c == '[':
			now++
		case c == '}' || c == ']':
			if now == 0 {
				return json.RawMessage(b[:i]), b[i:]
			}
			if now--; now == 0 {
				return json.RawMessage(b[:i+1]), b[i+1:]
			}
		case now == 0 && (c == ',' || c == ':' || c == ' ' || c == '\n' || c == '\r' || c == '\t'):
			return json.RawMessage(b[:i]), b[i:]
		}
	}
	return json.RawMessage(b), nil
}
