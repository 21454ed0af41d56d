package main

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxLabel bounds the names of tenants, projects and keys, in characters.
const maxLabel = 100

// label is the name of a tenant, a project or a key.
type label string

// UnmarshalText trims the name and refuses one that nobody could read.
func (l *label) UnmarshalText(text []byte) error {
	s := strings.TrimSpace(string(text))
	odd := func(r rune) bool { return !unicode.IsPrint(r) }
	if !utf8.ValidString(s) || strings.IndexFunc(s, odd) >= 0 || s == "" || utf8.RuneCountInString(s) > maxLabel {
		return fmt.Errorf("a name has 1 to %d printable characters", maxLabel)
	}
	*l = label(s)
	return nil
}
