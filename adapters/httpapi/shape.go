package httpapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
)

// The bounds of a payload's shape: more of it helps nobody.
const (
	shapeDepth = 16
	shapeKeys  = 200
	shapeItems = 3
)

// plainKey is a name that somebody chose for a field; anything else may be data.
var plainKey = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]{0,63}$`)

// shapeOf describes a payload without its values: the names of its fields and what
// kind of value each holds. A delivery carries temporary addresses, prompts and
// personal data, and most questions about one that does not parse are answered by
// its shape. Any bytes are accepted.
func shapeOf(payload []byte) any {
	dec := json.NewDecoder(bytes.NewReader(payload))
	dec.UseNumber()
	var value any
	err := dec.Decode(&value)
	if err == nil {
		if _, more := dec.Token(); !errors.Is(more, io.EOF) {
			err = errors.New("more than one value")
		}
	}
	if err != nil {
		return fmt.Sprintf("%d bytes that are not JSON", len(payload))
	}
	return shapeOfValue(value, 0)
}

func shapeOfValue(value any, depth int) any {
	switch v := value.(type) {
	case map[string]any:
		if depth == shapeDepth {
			return fmt.Sprintf("object of %d fields", len(v))
		}
		return shapeOfObject(v, depth)
	case []any:
		if depth == shapeDepth {
			return fmt.Sprintf("list of %d", len(v))
		}
		return shapeOfList(v, depth)
	case string:
		return fmt.Sprintf("string of %d bytes", len(v))
	case json.Number:
		return "number"
	case bool:
		return "boolean"
	default:
		return "null"
	}
}

func shapeOfObject(object map[string]any, depth int) map[string]any {
	shape := make(map[string]any, min(len(object), shapeKeys))
	for i, key := range slices.Sorted(maps.Keys(object)) {
		if i == shapeKeys {
			shape["…"] = fmt.Sprintf("%d more fields", len(object)-i)
			break
		}
		name := key
		if !plainKey.MatchString(key) {
			name = fmt.Sprintf("field %d, named in %d bytes", i+1, len(key))
		}
		shape[name] = shapeOfValue(object[key], depth+1)
	}
	return shape
}

func shapeOfList(list []any, depth int) []any {
	shape := make([]any, 0, shapeItems+1)
	for i, item := range list {
		if i == shapeItems {
			return append(shape, fmt.Sprintf("%d more", len(list)-i))
		}
		shape = append(shape, shapeOfValue(item, depth+1))
	}
	return shape
}
