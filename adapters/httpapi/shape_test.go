package httpapi

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestShapeOf(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, payload, want string }{
		{"fields and kinds", `{"id":"abc","n":1.5,"ok":true,"error":null,"urls":{"get":"https://x.example/s3cret"}}`,
			`{"error":"null","id":"string of 3 bytes","n":"number","ok":"boolean","urls":{"get":"string of 24 bytes"}}`},
		{"a list", `[1,"two",[3],4,5]`, `["number","string of 3 bytes",["number"],"2 more"]`},
		{"names that may be data", `{"https://x.example/s3cret":1,"":2}`,
			`{"field 1, named in 0 bytes":"number","field 2, named in 24 bytes":"number"}`},
		{"no JSON", `hello`, `"5 bytes that are not JSON"`},
		{"truncated", `{"a":`, `"5 bytes that are not JSON"`},
		{"two values", `{} {}`, `"5 bytes that are not JSON"`},
		{"nothing", ``, `"0 bytes that are not JSON"`},
		{"too deep", strings.Repeat("[", 17) + strings.Repeat("]", 17), strings.Repeat("[", 16) + `"list of 0"` + strings.Repeat("]", 16)},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := json.Marshal(shapeOf([]byte(tt.payload)))
			if err != nil || string(got) != tt.want {
				t.Errorf("shape %s, %v; want %s", got, err, tt.want)
			}
		})
	}
}

// FuzzShapeOf: any bytes have a shape, and no value of theirs is in it.
func FuzzShapeOf(f *testing.F) {
	for _, seed := range []string{`{"a":[1,2,3,4,{"b":"x"}]}`, `"s"`, `{`, "\x00", `{"a":1}{"b":2}`, `[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]`} {
		f.Add([]byte(seed), "s3cret-value")
	}
	f.Fuzz(func(t *testing.T, payload []byte, secret string) {
		if _, err := json.Marshal(shapeOf(payload)); err != nil {
			t.Errorf("the shape of %q does not encode: %v", payload, err)
		}
		wrapped, err := json.Marshal(map[string]any{"k": []any{"~~" + secret, map[string]any{"~~" + secret: 1}}})
		if err != nil {
			t.Skip() // not reached: a map of strings encodes
		}
		if got, _ := json.Marshal(shapeOf(wrapped)); strings.Contains(string(got), "~~") {
			t.Errorf("the shape %s shows a value of %s", got, wrapped)
		}
	})
}
