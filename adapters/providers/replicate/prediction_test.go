package replicate

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/ports"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	none := -1
	bar := func(percent, current int) string {
		return fmt.Sprintf("%3d%%|##        | %d/20 [00:01<00:09,  1.0it/s]", percent, current)
	}
	for log, want := range map[string]int{
		"": none, "Loading weights": none, "done 45%": none, "45%": none, "45%|": none, "45%|###|": none, "45%|###| x/20": none, "45%|###| 9/": none,
		"%|###| 9/20": none, "1234%|###| 9/20": none, "101%|###| 9/20": none, "-5%|##| 1/20": 5,
		bar(45, 9): 45, "Sampling:  45%|####5     | 9/20": 45, bar(0, 0): 0, bar(100, 20): 100,
		bar(5, 1) + "\r" + bar(10, 2) + "\r" + bar(15, 3):                  15,
		bar(90, 18) + "\n" + bar(100, 20) + "\nsecond stage\n" + bar(5, 1): 5, // a new bar
		bar(100, 20) + "\n" + bar(5, 1) + "\n" + bar(60, 12) + "\n  70%|#": 60,
		strings.Repeat("noise ", 1<<15) + "\n" + bar(30, 6):                30,
		bar(80, 16) + "\n" + strings.Repeat("x", maxLog):                   none,
		"\x00\xff" + bar(10, 2):                                            10,
		"45%|\u2588\u2588\u258c | 9/20":                                    45,
	} {
		got := progress(log)
		switch {
		case want == none && got != nil:
			t.Errorf("%.60q: %d, want none", log, *got)
		case want != none && (got == nil || *got != want):
			t.Errorf("%.60q: %v, want %d", log, got, want)
		}
	}
}

func FuzzProgress(f *testing.F) {
	for _, seed := range []string{"", "45%|###| 9/20", "100%|#|4/4\n 5%|#|1/20\r", "%|%|%|", "999%|||1/1", "\xff%|\x00|0/0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, log string) {
		if p := progress(log); p != nil && (*p < 0 || *p > 100) {
			t.Fatalf("%q: %d", log, *p)
		}
	})
}

func TestErrorCodes(t *testing.T) {
	t.Parallel()
	type want struct {
		code  string
		class domain.ErrorClass
	}
	for text, w := range map[string]want{
		"": {"", domain.ClassProvider}, "CUDA out of memory": {"", domain.ClassProvider}, "E1001: out of memory": {"E1001", domain.ClassProvider},
		"The input or output was flagged. (E005)": {"E005", domain.ClassModerationOutput}, "E005": {"E005", domain.ClassModerationOutput},
		"E0055": {"E0055", domain.ClassProvider}, "E00555": {"", domain.ClassProvider}, "TypeError in E005x": {"", domain.ClassProvider}, "see ticket E005": {"", domain.ClassProvider},
		"Input validation error: image": {"", domain.ClassInvalidInput},
	} {
		code := errorCode(text)
		if got := (want{code, errorClass(text, code)}); got != w {
			t.Errorf("%q: %+v, want %+v", text, got, w)
		}
	}
}

func TestOutputs(t *testing.T) {
	t.Parallel()
	refs := func(raw string) []string {
		var got []string
		for _, o := range outputs(json.RawMessage(raw)) {
			got = append(got, o.Kind+" "+o.URL+" = "+o.Ref)
		}
		return got
	}
	for raw, want := range map[string][]string{
		"": nil, "null": nil, `""`: nil, `"words"`: nil, `["a"," ","b"]`: nil, "7": nil, "{}": nil, `"ftp://x/y"`: nil, `"https://"`: nil, `"https://u:p@x/y"`: nil, `"data:video/mp4;base64,AA"`: nil, `"file:///etc/passwd"`: nil,
		`"https://x/o.mp4?sig=1#t"`:                                {"video https://x/o.mp4?sig=1#t = https://x/o.mp4"},
		`["https://x/p.PNG","https://x/o.webm","https://x/noext"]`: {"video https://x/o.webm = https://x/o.webm", "video https://x/noext = https://x/noext", "image https://x/p.PNG = https://x/p.PNG"},
		`["https://x/o.mp4?a=1","https://x/o.mp4?a=2"]`:            {"video https://x/o.mp4?a=1 = https://x/o.mp4"},
		`{"z":{"url":"https://x/z.mp4"},"a":"https://x/a.mp3"}`:    {"video https://x/z.mp4 = https://x/z.mp4", "audio https://x/a.mp3 = https://x/a.mp3"},
		`[[[[[["https://x/deep.mp4"]]]]]]`:                         nil,
	} {
		if diff := cmp.Diff(want, refs(raw)); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
	list := make([]string, 100)
	for i := range list {
		list[i] = fmt.Sprintf("https://x/%d.mp4", i)
	}
	many, err := json.Marshal(list)
	if err != nil || len(outputs(many)) != maxOutputs {
		t.Errorf("%d outputs of a hundred, %v", len(outputs(many)), err)
	}
}

func FuzzDecode(f *testing.F) {
	for _, seed := range []string{
		`{}`, `{"id":"pf1","status":"succeeded","output":["https://x/o.mp4"]}`, `{"id":1,"status":"processing","logs":"45%|#| 9/20","started_at":null}`,
		`{"id":"pf1","status":"failed","error":{"a":[]},"completed_at":"2026-09-01T10:00:50.000Z"}`, `{"id":"..","status":7}`, `<html>`, `{"status":"failed","status":"succeeded","id":"a"}`,
	} {
		f.Add([]byte(seed))
	}
	p := New(Config{})
	f.Fuzz(func(t *testing.T, body []byte) {
		obs, foreign, err := p.Decode(ports.InboxRow{Payload: body})
		if err != nil {
			return
		}
		if foreign || obs.ProviderTaskID == "" || len(obs.Outputs) > maxOutputs {
			t.Fatalf("%q: %+v", body, obs)
		}
		var status struct {
			Status any `json:"status"`
		}
		if json.Unmarshal(body, &status) != nil && obs.Status.Terminal() {
			t.Fatalf("%q is a verdict", body)
		}
	})
}
