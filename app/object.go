package app

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The limits of a client's own JSON: what every common reader can read back. Many
// refuse a whole answer for one value beyond them.
const (
	maxDepth  = 32
	maxNumber = 400 // characters of one number
)

// objectFault says what to do about a client's own JSON object, empty when nothing
// is wrong: one that PostgreSQL can keep as JSON and that every client can read back
// with the same meaning.
func objectFault(raw []byte) string {
	const notObject = "use one JSON object, or leave it out"
	if !utf8.Valid(raw) || !bytes.HasPrefix(bytes.TrimLeft(raw, " \t\r\n"), []byte("{")) || !json.Valid(raw) {
		return notObject
	}
	if LoneSurrogate(raw) {
		return `write each character as a whole: a \u escape is half of a surrogate pair`
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var walk objectWalk
	for {
		token, err := dec.Token()
		switch {
		case errors.Is(err, io.EOF):
			return ""
		case err != nil:
			return notObject
		}
		if fault := walk.take(token); fault != "" {
			return fault
		}
	}
}

// objectWalk goes through the tokens of a JSON value.
type objectWalk struct {
	// open holds the objects and lists around the present token, the innermost last.
	open []openValue
}

// openValue is an object or a list that has not ended. Only an object has names.
type openValue struct {
	names map[string]bool
	// value: the next token belongs to a name that has been read.
	value bool
}

// take looks at the next token; the answer is a fault, or empty.
func (w *objectWalk) take(token json.Token) string {
	switch t := token.(type) {
	case json.Delim:
		return w.bracket(t)
	case string:
		if strings.ContainsRune(t, 0) {
			return "remove the NUL characters"
		}
		if w.name(t) {
			return "use each name only once in an object"
		}
	case json.Number:
		w.valueRead()
		if !commonNumber(t.String()) {
			return "use numbers that fit in a 64-bit float, or send them as strings"
		}
	default:
		w.valueRead()
	}
	return ""
}

func (w *objectWalk) bracket(t json.Delim) string {
	switch t {
	case '{', '[':
		w.valueRead()
		if len(w.open) == maxDepth {
			return "nest it at most " + strconv.Itoa(maxDepth) + " levels deep"
		}
		var v openValue
		if t == '{' {
			v.names = map[string]bool{}
		}
		w.open = append(w.open, v)
	default:
		w.open = w.open[:len(w.open)-1]
	}
	return ""
}

// name notes a string that is a name; repeated when its object has it already.
func (w *objectWalk) name(text string) (repeated bool) {
	in := &w.open[len(w.open)-1]
	if in.names == nil || in.value {
		in.value = false
		return false
	}
	in.value = true
	repeated = in.names[text]
	in.names[text] = true
	return repeated
}

// valueRead notes that a name has its value.
func (w *objectWalk) valueRead() {
	if n := len(w.open); n > 0 {
		w.open[n-1].value = false
	}
}

// commonNumber reports whether a float64 can hold a number of JSON: not too large,
// and not so small that nothing is left of it.
func commonNumber(text string) bool {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || len(text) > maxNumber {
		return false
	}
	digits, _, _ := strings.Cut(strings.ToLower(text), "e")
	return f != 0 || strings.Trim(digits, "-0.") == ""
}

// LoneSurrogate reports whether valid JSON holds a \u escape that is half of a
// surrogate pair: readers disagree on what it means, and databases refuse it.
func LoneSurrogate(valid []byte) bool {
	for i := 0; i < len(valid); i++ {
		if valid[i] != '\\' {
			continue
		}
		unit, ok := escapedUnit(valid[i:])
		switch {
		case !ok:
			i++ // an escape of one character, which may be a backslash
		case unit >= 0xdc00 && unit <= 0xdfff:
			return true
		case unit >= 0xd800 && unit <= 0xdbff:
			low, ok := escapedUnit(valid[i+6:])
			if !ok || low < 0xdc00 || low > 0xdfff {
				return true
			}
			i += 11
		default:
			i += 5
		}
	}
	return false
}

// escapedUnit reads the \uXXXX that text begins with.
func escapedUnit(text []byte) (uint64, bool) {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return 0, false
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	return unit, err == nil
}
