package jsonbody

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
)

func parse(t testing.TB, body string) Object {
	t.Helper()
	o, err := Parse([]byte(body))
	if err != nil {
		t.Fatalf("%.80q: %v", body, err)
	}
	return o
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"a":`, MaxDepth+1) + "1" + strings.Repeat("}", MaxDepth+1)
	for body, want := range map[string]error{
		"": ErrNotObject, " ": ErrNotObject, "null": ErrNotObject, "[]": ErrNotObject, `"x"`: ErrNotObject, "1": ErrNotObject,
		"<html><body>502</body></html>": ErrNotObject, `{"a":1`: ErrNotObject, `{"a":1}}`: ErrNotObject, `{"a":1} {"b":2}`: ErrNotObject,
		`{"a":}`: ErrNotObject, `{a:1}`: ErrNotObject, `{"a":1,}`: ErrNotObject, "\xef\xbb\xbf{}": ErrNotObject, `{"a":NaN}`: ErrNotObject,
		deep: ErrTooDeep, strings.Repeat("[", 1<<20): ErrNotObject, "{" + strings.Repeat(`"a":{`, 1<<18): ErrTooDeep,
		`{"a":"` + strings.Repeat("x", MaxBytes) + `"}`: ErrTooLarge,
		`{"status":"failed","status":"succeeded"}`:      ErrAmbiguous, `{"status":"failed","\u0073tatus":"succeeded"}`: ErrAmbiguous,
	} {
		if _, err := Parse([]byte(body)); !errors.Is(err, want) {
			t.Errorf("%.60q: %v, want %v", body, err, want)
		}
	}
}

func TestParseTakes(t *testing.T) {
	t.Parallel()
	o := parse(t, " \n{\"a\" : \"x\\\"}{\" , \"b\":{ \"c\" : [1,{\"d\":\"]}\"}] },\"n\":null,\"twice\":1,\"twice\":1,\"t\" :true\n}\n")
	if len(o) != 5 || o.Text("a") != `x"}{` || string(o.Object("b")["c"]) != `[1,{"d":"]}"}]` || !o.Null("n") || o.Has("n") {
		t.Errorf("%s", o)
	}
	if o := parse(t, "{}"); len(o) != 0 {
		t.Errorf("empty object: %v", o)
	}
	if got := parse(t, `{"Status":"failed"}`).Text("status"); got != "" {
		t.Errorf("names must match exactly, got %q", got)
	}
	if got := parse(t, `{"error":{"code":"a","code":"b"}}`).Object("error"); got != nil {
		t.Errorf("an ambiguous inner object was read: %v", got)
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]string{
		`"abc"`: "abc", `1234567890123456789`: "1234567890123456789", `-1.50e3`: "-1.50e3", `"\u0000"`: "\x00",
		`null`: "", `true`: "", `{}`: "", `[]`: "", `""`: "",
	} {
		if got := parse(t, `{"v":`+raw+`}`).Text("v"); got != want {
			t.Errorf("%s: %q", raw, got)
		}
	}
	var none Object
	if none.Text("v") != "" || none.Object("v").Object("w").Text("x") != "" || none.Has("v") || none.Null("v") {
		t.Error("a nil object is not empty")
	}
}

func TestSaid(t *testing.T) {
	t.Parallel()
	o, err := Parse([]byte(`{"text":"a \"b\"","none":"","null":null,"n":7,"list":[1,{"a":"b"},"c"],"object":{"x":1},"odd":[{"a":1,"a":2}]}`))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"text": `a "b"`, "none": "", "null": "", "absent": "", "n": "7", "list": `[1,{"a":"b"},"c"]`, "object": `{"x":1}`} {
		if got := o.Said(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
	if got := o.Objects("list"); len(got) != 1 || got[0].Text("a") != "b" {
		t.Errorf("objects %v", got)
	}
	for _, name := range []string{"text", "object", "null", "absent", "odd"} {
		if got := o.Objects(name); len(got) != 0 {
			t.Errorf("%s: objects %v", name, got)
		}
	}
}

func TestPercent(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]int{
		`0`: 0, `33`: 33, `33.9`: 33, `100`: 100, `"45"`: 45, `"45%"`: 45, `" 45 % "`: 45, `1e2`: 100,
		`-1`: -1, `101`: -1, `"x"`: -1, `""`: -1, `"%"`: -1, `null`: -1, `true`: -1, `[1]`: -1, `1e999`: -1, `"NaN"`: -1, `"0x10"`: -1, `"1_0"`: -1, `"Inf"`: -1,
	} {
		got := parse(t, `{"v":`+raw+`}`).Percent("v")
		switch {
		case want < 0 && got != nil:
			t.Errorf("%s: %d, want none", raw, *got)
		case want >= 0 && (got == nil || *got != want):
			t.Errorf("%s: %v, want %d", raw, got, want)
		}
	}
}

func TestTime(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 9, 21, 14, 13, 20, 0, time.UTC)
	for _, raw := range []string{
		`"2026-09-21T14:13:20Z"`, `"2026-09-21T14:13:20.000Z"`, `"2026-09-21T16:13:20+02:00"`,
		`1790000000`, `"1790000000"`, `1790000000.0`, `1790000000000`, `"1790000000000"`, `1.79e9`,
	} {
		got := parse(t, `{"v":`+raw+`}`).Time("v")
		if got == nil || !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("%s: %v", raw, got)
		}
	}
	for _, raw := range []string{`null`, `""`, `"soon"`, `0`, `-5`, `1`, `1e300`, `"0001-01-01T00:00:00Z"`, `"9999-01-01T00:00:00Z"`, `{}`} {
		if got := parse(t, `{"v":`+raw+`}`).Time("v"); got != nil {
			t.Errorf("%s: %v, want none", raw, got)
		}
	}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	f := Fields{"prompt": "ours"}
	f.SetText("empty", "")
	err := f.Merge([]byte(`{"prompt":"theirs","webhook":"https://evil.example","callBackUrl":1,"Fal-Webhook":1,"owned":1,"big":1234567890123456789,"nested":{"a":[1]}}`), "owned")
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(f)
	if want := `{"big":1234567890123456789,"nested":{"a":[1]},"prompt":"ours"}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	for _, none := range []string{"", "null", "{}"} {
		if err := (Fields{}).Merge([]byte(none)); err != nil {
			t.Errorf("%q: %v", none, err)
		}
	}
	for _, bad := range []string{"[]", "x", `{"a":1`, `{"a":1,"a":2}`} {
		if err := (Fields{}).Merge([]byte(bad)); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
}

// FuzzParse compares with encoding/json: what it refuses is refused, and every
// member is the same bytes.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"a":1,"b":"x"}`, `{"a":{"b":[1,"]"]},"c":null}`, ` {"a" : "\"" } `, `{"a":1,"a":2}`, `{"":""}`, `{"\ud800":1}`, `[`, `{"a":1e5,"b":-0.1}`, "{\"a\":\"\xff\"}",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		o, err := Parse(body)
		var want map[string]json.RawMessage
		reference := json.Unmarshal(body, &want)
		if err != nil {
			if reference == nil && want != nil && !errors.Is(err, ErrAmbiguous) && !errors.Is(err, ErrTooDeep) {
				t.Fatalf("%q refused: %v", body, err)
			}
			return
		}
		if reference != nil || len(want) != len(o) {
			t.Fatalf("%q: %d members, reference %d, %v", body, len(o), len(want), reference)
		}
		for name, raw := range want {
			if string(o[name]) != string(raw) {
				t.Fatalf("%q: %q is %q, reference %q", body, name, o[name], raw)
			}
			var text string
			if raw[0] == '"' && json.Unmarshal(raw, &text) == nil && o.Text(name) != text {
				t.Fatalf("%q: text %q, reference %q", body, o.Text(name), text)
			}
			_, _, _ = o.Percent(name), o.Time(name), o.Object(name)
		}
	})
}
