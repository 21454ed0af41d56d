package jsonbody

import (
	"encoding/json"
	"fmt"
	"maps"
)

// Fields is an object on its way to a vendor.
type Fields map[string]any

// SetText sets a text that is not empty.
func (f Fields) SetText(name, value string) {
	if value != "" {
		f[name] = value
	}
}

// Merge adds the user's extra fields under the adapter's own: a name that the
// adapter has set, or that it reserves, is not taken from the user. extra is a
// JSON object or nil; anything else is an error. The values pass unread, so a
// number keeps all its digits.
func (f Fields) Merge(extra []byte, reserved ...string) error {
	if len(extra) == 0 || string(extra) == "null" {
		return nil
	}
	theirs, err := Parse(extra)
	if err != nil {
		return fmt.Errorf("extra: %w", err)
	}
	for _, name := range reserved {
		delete(theirs, name)
	}
	maps.DeleteFunc(theirs, func(name string, _ json.RawMessage) bool {
		_, ours := f[name]
		return ours
	})
	for name, value := range theirs {
		f[name] = value
	}
	return nil
}
