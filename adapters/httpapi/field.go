package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/aivedio/aivedio/app"
)

// maxFaults bounds how many fields one problem lists.
const maxFaults = 20

// decodeJSON accepts one JSON object whose fields are all known, each written as
// documented and at most once. encoding/json alone would take "Provider" for
// provider, and the last of two equal names.
func decodeJSON(body []byte, into any) error {
	if !utf8.Valid(body) || !bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("{")) {
		return problemMalformed
	}
	dec := json.NewDecoder(bytes.NewReader(body))
	fault := dec.Decode(into)
	var kind *json.UnmarshalTypeError
	if fault != nil && !errors.As(fault, &kind) {
		return jsonProblem(fault)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return problemMalformed.saying("Send one JSON object and nothing after it.")
	}
	if app.LoneSurrogate(body) {
		return problemMalformed.saying(`Write each character as a whole: a \u escape in the JSON is half of a surrogate pair.`)
	}
	var names fieldNames
	names.check(body, reflect.TypeOf(into).Elem(), "")
	switch {
	case len(names.unknown) > 0:
		return problemUnknown.with(names.unknown...)
	case len(names.repeated) > 0:
		return problemFields.with(names.repeated...)
	case kind != nil:
		return problemFields.with(Fault{kind.Field, "invalid", "use " + kindWords(kind.Type)})
	}
	return nil
}

// jsonProblem says in our own words what encoding/json found.
func jsonProblem(err error) error {
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return problemMalformed.saying("The JSON is not valid at byte " + strconv.FormatInt(syntax.Offset, 10) + "; send one complete object.")
	}
	return problemMalformed
}

// fieldNames gathers the names of a body that the documentation does not have.
type fieldNames struct{ unknown, repeated []Fault }

// check compares a valid JSON object with the struct that it is read into; what is no
// object is somebody else's fault.
func (n *fieldNames) check(raw []byte, t reflect.Type, path string) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if open, err := dec.Token(); err != nil || open != json.Delim('{') {
		return
	}
	seen := map[string]bool{}
	for dec.More() {
		token, err := dec.Token()
		name, ok := token.(string)
		var value json.RawMessage
		if err != nil || !ok || dec.Decode(&value) != nil {
			return
		}
		field, known := fieldNamed(t, name)
		at := path + clip(name)
		switch {
		case len(n.unknown)+len(n.repeated) == maxFaults:
			return
		case !known:
			n.unknown = append(n.unknown, Fault{at, "unknown", adviceOn(t, name)})
		case seen[name]:
			n.repeated = append(n.repeated, Fault{at, "invalid", "give it only once"})
		case field.Type.Kind() == reflect.Struct:
			n.check(value, field.Type, at+".")
		}
		seen[name] = true
	}
}

// adviceOn says what to do about an unknown name.
func adviceOn(t reflect.Type, name string) string {
	for i := range t.NumField() {
		if known := t.Field(i).Tag.Get("json"); strings.EqualFold(known, name) {
			return "write it as " + known
		}
	}
	return "remove it or correct its name"
}

// fieldNamed finds a field by the name in its tag, letter by letter.
func fieldNamed(t reflect.Type, name string) (reflect.StructField, bool) {
	for i := range t.NumField() {
		if f := t.Field(i); f.Tag.Get("json") == name {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

func kindWords(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "a whole number that fits in 64 bits"
	case reflect.Slice:
		return "a list"
	default:
		return "a JSON object"
	}
}

// clip bounds what we repeat of a client's own text.
func clip(s string) string {
	const longest = 64
	if len(s) <= longest {
		return s
	}
	return strings.ToValidUTF8(s[:longest], "") + "…"
}

// object is a JSON object that is passed on as it came; null is none.
type object []byte

// UnmarshalJSON keeps the bytes.
func (o *object) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		*o = nil
		return nil
	}
	*o = bytes.Clone(raw)
	return nil
}
