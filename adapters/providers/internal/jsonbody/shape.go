package jsonbody

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Bounds of a shape.
const (
	maxShape      = 600
	maxShapeDepth = 3
	maxShapeKeys  = 24
	maxShapeKey   = 32
)

// Shape outlines a body for people who have to find out why it was not
// understood: the names of its keys and the kinds of its values, such as
// {error:null,id:text,output:[text]}, and nothing of what it says. Names that look
// like data are shown as *, and what is no JSON only by its kind and its size,
// rounded up. At most 600 bytes of ASCII.
func Shape(body []byte) string {
	body = trim(body)
	if len(body) == 0 {
		return "empty"
	}
	if len(body) > MaxBytes || depth(body) > MaxDepth || !json.Valid(body) {
		return notJSON(body)
	}
	var out strings.Builder
	outline(&out, body, 0)
	if out.Len() > maxShape {
		return out.String()[:maxShape-3] + "..."
	}
	return out.String()
}

// notJSON names the kind of bytes that do not parse.
func notJSON(body []byte) string {
	size := 1
	for size < len(body) {
		size *= 2
	}
	kind := "text"
	switch {
	case body[0] == '{':
		kind = "a broken object"
	case body[0] == '[':
		kind = "a broken list"
	case body[0] == '<':
		kind = "markup"
	case bytes.ContainsFunc(body[:min(len(body), 512)], func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\r\n", r) }):
		kind = "binary"
	}
	return fmt.Sprintf("not JSON: %s of at most %d bytes", kind, size)
}

// outline writes the shape of one valid value.
func outline(out *strings.Builder, raw json.RawMessage, level int) {
	switch c := raw[0]; {
	case c == '"':
		out.WriteString("text")
	case c == 't' || c == 'f':
		out.WriteString("bool")
	case c == 'n':
		out.WriteString("null")
	case c != '{' && c != '[':
		out.WriteString("number")
	case level == maxShapeDepth || out.Len() > maxShape:
		out.WriteString(map[byte]string{'{': "{...}", '[': "[...]"}[c])
	case c == '[':
		outlineList(out, raw, level)
	default:
		outlineObject(out, raw, level)
	}
}

// outlineList writes the kinds of the first member; the others are alike as a rule.
func outlineList(out *strings.Builder, raw json.RawMessage, level int) {
	out.WriteByte('[')
	if first, _ := token(raw[1:]); len(first) > 0 {
		outline(out, first, level+1)
	}
	out.WriteByte(']')
}

func outlineObject(out *strings.Builder, raw json.RawMessage, level int) {
	object, err := split(raw)
	if err != nil {
		out.WriteString("{a name twice}")
		return
	}
	out.WriteByte('{')
	for i, name := range slices.Sorted(maps.Keys(object)) {
		if i > 0 {
			out.WriteByte(',')
		}
		if i == maxShapeKeys {
			out.WriteString("...")
			break
		}
		out.WriteString(keyName(name))
		out.WriteByte(':')
		outline(out, object[name], level+1)
	}
	out.WriteByte('}')
}

// keyName is a key as a programmer would have named it, or a star.
func keyName(name string) string {
	digits := 0
	for _, r := range name {
		switch {
		case r >= '0' && r <= '9':
			digits++
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r == '_', r == '-':
		default:
			return "*"
		}
	}
	if name == "" || len(name) > maxShapeKey || digits > 2 {
		return "*"
	}
	return name
}
