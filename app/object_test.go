package app

import (
	"encoding/json"
	"strings"
	"testing"
)

// nested is an object of n levels.
func nested(n int) string {
	return strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1)
}

func TestObjectFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, raw, want string }{
		{"empty", `{}`, ""},
		{"whole", `{"a":{"b":[1,-2.5e3,0.0,0e5,{"c":null}],"a":true},"d":"x","e":"a\\u0041"}`, ""},
		{"the same name beside it", `{"a":{"x":1},"b":{"x":1},"x":["x","x"]}`, ""},
		{"a pair", `{"a":"\ud83d\ude00"}`, ""},
		{"an escaped backslash", `{"a":"\\ud83d"}`, ""},
		{"32 levels", nested(32), ""},
		{"33 levels", nested(33), "levels"},
		{"2,500 lists", `{"a":` + strings.Repeat("[", 2500) + strings.Repeat("]", 2500) + `}`, "levels"},
		{"too large a number", `{"a":1e999999}`, "float"},
		{"too small a number", `{"a":-0.1e-999999}`, "float"},
		{"too long a number", `{"a":0.` + strings.Repeat("1", 400) + `}`, "float"},
		{"a name twice", `{"a":1,"b":2,"a":3}`, "once"},
		{"a name twice, written otherwise", `{"a":1,"\u0061":3}`, "once"},
		{"a name twice, inside", `{"x":[{"a":[],"a":{}}]}`, "once"},
		{"half a pair", `{"a":"\ud83d"}`, "surrogate"},
		{"half a pair and a letter", `{"a":"\ud83d\u0041"}`, "surrogate"},
		{"the second half", `{"a":"\ude00"}`, "surrogate"},
		{"half a pair in a name", `{"\uD83Dx":1}`, "surrogate"},
		{"NUL", `{"a":"\u0000"}`, "NUL"},
		{"NUL in a name", `{"\u0000":1}`, "NUL"},
		{"a list", `[1]`, "object"},
		{"cut off", `{"a"`, "object"},
	} {
		got := objectFault([]byte(tt.raw))
		if (got == "") != (tt.want == "") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
}

// FuzzObject: what is accepted can be read by a reader of floats and small stacks,
// and says the same afterwards.
func FuzzObject(f *testing.F) {
	f.Add(`{"a":[1,{"b":"\ud83d\ude00"}],"c":-0e1}`)
	f.Add(nested(33))
	f.Add(`{"a":1e308,"a":"\u0000"}`)
	f.Fuzz(func(t *testing.T, raw string) {
		if objectFault([]byte(raw)) != "" {
			return
		}
		var v map[string]any
		if err := json.Unmarshal([]byte(raw), &v); err != nil {
			t.Fatalf("%q was accepted: %v", raw, err)
		}
		again, err := json.Marshal(v)
		if err != nil || objectFault(again) != "" {
			t.Errorf("%q became %q: %v, %s", raw, again, err, objectFault(again))
		}
	})
}
