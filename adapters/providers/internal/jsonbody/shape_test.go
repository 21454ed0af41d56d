package jsonbody

import (
	"strings"
	"testing"
)

func TestShape(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		``:                        "empty",
		` {"id":"secret","n":1} `: "{id:text,n:number}",
		`{"output":["https://x","y"],"error":null,"ok":true,"none":[],"deep":{"a":{"b":{"c":1}}}}`: "{deep:{a:{b:{...}}},error:null,none:[],ok:bool,output:[text]}",
		`{"user@example.com":1,"":2,"0123456789abcdef":3,"gen3_b":4}`:                              "{*:number,*:number,gen3_b:number,*:number}",
		`[{"a":1},2]`:                  "[{a:number}]",
		`"words"`:                      "text",
		`{"a":1,"a":2}`:                "{a name twice}",
		`<html>secret</html>`:          "not JSON: markup of at most 32 bytes",
		`{"id":"sec`:                   "not JSON: a broken object of at most 16 bytes",
		"upstream is away":             "not JSON: text of at most 16 bytes",
		"\x1f\x8b\x00":                 "not JSON: binary of at most 4 bytes",
		strings.Repeat("[", 200) + "1": "not JSON: a broken list of at most 256 bytes",
	} {
		if got := Shape([]byte(body)); got != want && !(strings.Contains(want, "*") && sameParts(got, want)) {
			t.Errorf("%.60s: %q, want %q", body, got, want)
		}
	}
	wide := "{"
	for i := range 300 {
		wide += `"` + strings.Repeat("k", 1+i%30) + strings.Repeat("q", i/30) + `":{"a_long_name_in_there":1},`
	}
	if got := Shape([]byte(wide + `"z":1}`)); len(got) > maxShape || !strings.Contains(got, "...") {
		t.Errorf("%d bytes: %s", len(got), got)
	}
}

// sameParts compares members without their order, which masked names do not keep.
func sameParts(a, b string) bool {
	count := func(s string) map[string]int {
		m := map[string]int{}
		for _, part := range strings.Split(strings.Trim(s, "{}"), ",") {
			m[part]++
		}
		return m
	}
	x, y := count(a), count(b)
	for k, n := range x {
		if y[k] != n {
			return false
		}
	}
	return len(x) == len(y)
}

// FuzzShape: any bytes have a short shape of printable ASCII, in which no value of
// the body is found.
func FuzzShape(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":"canary-value"}`, `[["canary-value"]]`, "<p>canary-value", `{"canary-value!":1}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := Shape(body)
		if got == "" || len(got) > maxShape {
			t.Errorf("%d bytes", len(got))
		}
		for _, c := range []byte(got) {
			if c < ' ' || c > '~' {
				t.Fatalf("%q", got)
			}
		}
		if o, err := Parse([]byte(`{"v":` + quoted(body) + `}`)); err == nil && len(o.Text("v")) > 8 && strings.Contains(Shape([]byte(`{"v":`+quoted(body)+`}`)), o.Text("v")) {
			t.Errorf("the shape quotes a value")
		}
	})
}

// quoted is the bytes as a JSON string of letters.
func quoted(b []byte) string {
	var s strings.Builder
	for _, c := range b {
		s.WriteByte('A' + c%26)
	}
	return `"` + s.String() + `"`
}
