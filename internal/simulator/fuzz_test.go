package simulator

import (
	"encoding/json"
	"testing"
	"time"
)

// checkParsed: a parser gives an order or a problem with a 4xx status, and an
// order can be rendered.
func checkParsed(t *testing.T, o *order, p *problem) {
	t.Helper()
	switch {
	case (o == nil) == (p == nil):
		t.Fatalf("order %v, problem %v", o, p)
	case p != nil:
		if p.status < 400 || p.status > 499 || p.detail == "" {
			t.Fatalf("problem %+v", p)
		}
		return
	}
	j := &job{order: *o, id: "x", phase: succeeded, hasOutput: true, completed: time.Unix(1, 0), ttl: time.Hour}
	body := j.view().videoObject()
	if o.dialect == replicate {
		body = j.view().prediction(time.Unix(2, 0))
	}
	if !json.Valid(body) {
		t.Fatalf("rendered %q", body)
	}
	if err := o.sim.own.Validate(); err != nil {
		t.Fatal(err)
	}
}

func FuzzParseReplicate(f *testing.F) {
	for _, seed := range []string{
		predictionBody(`{}`), predictionBody(`{"drop":true,"run":"1s","key":"k","output":"array"}`), `{`, `null`, `[]`, `{"input":null}`,
		`{"version":"a/b:c","input":{"seed":1e3,"prompt":"[sim:fail=text]"},"webhook":"https://h.example/?a=1"}`,
		`{"version":":","input":{"prompt":1,"sim":null}}`, "{\"model\":\"a/b\",\"input\":{\"p\":\"\xff\u2028\"}}",
	} {
		f.Add([]byte(seed), "")
		f.Add([]byte(seed), "acme/vid")
	}
	f.Fuzz(func(t *testing.T, body []byte, model string) {
		o, p := parseReplicate(body, model, false)
		checkParsed(t, o, p)
	})
}

func FuzzParseOpenAI(f *testing.F) {
	form := "multipart/form-data; boundary=b"
	for _, seed := range [][2]string{
		{"application/json", `{"prompt":"x","seconds":8,"size":"64x64","seed":3,"sim":{"fail":true}}`},
		{"application/json", `{"prompt":"x","sim":"{}"}`}, {"application/json", `null`}, {"application/json", `{"sim":[]}`},
		{form, "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nx\r\n--b--\r\n"}, {form, "--b--"}, {form, ""},
		{"multipart/form-data", "x"}, {";", ""},
	} {
		f.Add(seed[0], []byte(seed[1]))
	}
	f.Fuzz(func(t *testing.T, kind string, body []byte) {
		o, p := parseOpenAI(kind, body)
		checkParsed(t, o, p)
	})
}

func FuzzFaults(f *testing.F) {
	for _, seed := range []string{`{}`, `{"drop":true,"delay_for":"2s"}`, `{"fail":1e400}`, `null`, `{"fail_kind":"text"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		var faults Faults
		if err := json.Unmarshal(body, &faults); err != nil {
			return
		}
		if err := faults.Validate(); err != nil {
			t.Fatal(err)
		}
		out, err := json.Marshal(faults)
		if err != nil {
			t.Fatal(err)
		}
		var again Faults
		if err := json.Unmarshal(out, &again); err != nil || again != faults {
			t.Fatalf("%v: %+v became %+v", err, faults, again)
		}
	})
}
