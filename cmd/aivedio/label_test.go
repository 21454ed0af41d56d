package main

import (
	"strings"
	"testing"
)

func TestLabel(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"acme": "acme", "  two words ": "two words", "Zürich 映画": "Zürich 映画", strings.Repeat("é", maxLabel): strings.Repeat("é", maxLabel),
		"": "", " \t": "", "a\x00b": "", "a\nb": "", "\xff": "", "a\x1b[31m": "", "a\u202eb": "", strings.Repeat("x", maxLabel+1): "",
	} {
		var l label
		err := l.UnmarshalText([]byte(in))
		if (err == nil) != (want != "") || string(l) != want {
			t.Errorf("%q gives %q, %v; want %q", in, l, err, want)
		}
	}
}
