package simulator

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// lived is the journal of a run in which everything happened.
func lived(t *testing.T) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "j")
	var data []byte
	synctest.Test(t, func(t *testing.T) {
		v := startVendor(t, Config{Seed: 7, Journal: file})
		for now := time.Duration(0); now <= 8*time.Second; now += 250 * time.Millisecond {
			for _, line := range script {
				if line.at == now {
					line.do(v.box)
				}
			}
			v.pass(250 * time.Millisecond)
		}
		v.end()
		var err error
		if data, err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	})
	return data
}

// reopen writes data to a file and opens it.
func reopen(t *testing.T, data []byte, logs *bytes.Buffer) (*Simulator, error) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "j")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open(Config{Journal: file, Logger: slog.New(slog.NewTextHandler(logs, nil)), Now: func() time.Time { return time.Unix(946684900, 0) }})
	if err == nil {
		t.Cleanup(func() { s.Close() }) //nolint:errcheck // nothing was written
	}
	return s, err
}

// A kill in the middle of a write leaves a part of a line: everything before it
// is there, and the loss is reported.
func TestTruncatedTail(t *testing.T) {
	t.Parallel()
	data := lived(t)
	lines := bytes.SplitAfter(bytes.TrimSuffix(data, []byte("\n")), []byte("\n"))
	whole := len(data) - len(lines[len(lines)-1]) - 1
	for _, end := range []int{whole + 1, whole + 10, len(data) - 2, len(data) - 1} {
		var logs bytes.Buffer
		s, err := reopen(t, data[:end], &logs)
		if err != nil {
			t.Errorf("cut at %d of %d: %v", end, len(data), err)
			continue
		}
		complete := end == len(data)-1 // only the line's end is missing
		if got := strings.Contains(logs.String(), "broke off"); got == complete {
			t.Errorf("cut at %d of %d: reported %v", end, len(data), got)
		}
		if got := len(s.Jobs(0)); got != 26 {
			t.Errorf("cut at %d: %d jobs", end, got)
		}
		again, err := os.ReadFile(s.cfg.Journal)
		if err != nil {
			t.Fatal(err)
		}
		if _, cut, err := parseJournal(again); cut || err != nil {
			t.Errorf("the opened file is damaged still: %v %v", cut, err)
		}
	}
	if s, err := reopen(t, nil, &bytes.Buffer{}); err != nil || len(s.Jobs(0)) != 0 {
		t.Errorf("empty file: %v", err)
	}
}

// Damage is an error that names file and line and says what to do, and leaves
// the file alone.
func TestCorruptJournal(t *testing.T) {
	t.Parallel()
	data := lived(t)
	header, rest, _ := bytes.Cut(data, []byte("\n"))
	join := func(parts ...string) []byte { return []byte(strings.Join(parts, "\n") + "\n") }
	create := func() string {
		for line := range strings.Lines(string(rest)) {
			if strings.Contains(line, `"kind":"create"`) {
				return strings.TrimSpace(line)
			}
		}
		t.Fatal("no create")
		return ""
	}()
	for name, tc := range map[string]struct {
		data []byte
		want string
	}{
		"garbage":        {join(string(header), "\x00\x01", create), "line 2"},
		"garbage at end": {join(string(header), create, "{"), "line 3"},
		"no header":      {rest, "line 1"},
		"two headers":    {join(string(header), string(header)), "line 2"},
		"twice":          {join(string(header), create, create), "second time"},
		"newer":          {bytes.Replace(data, []byte(`"version":1`), []byte(`"version":9`), 1), "version 9"},
		"unknown kind":   {join(string(header), `{"kind":"party"}`), "party"},
		"unknown field":  {join(string(header), `{"kind":"delete","mood":1}`), "mood"},
		"unknown word":   {join(string(header), strings.Replace(create, `,"sim":{}}}`, `,"sim":{"flail":true}}}`, 1)), "flail"},
		"two in a line":  {join(string(header), create+create), "more than one"},
		"bad duration":   {bytes.Replace(data, []byte(`"run":4000000000`), []byte(`"run":-4`), 1), "run"},
		"bad ending":     {join(string(header), `{"kind":"finish","finish":{"status":"processing"}}`), "finish"},
		"bare kinds":     {join(string(header), `{"kind":"attempt"}`), "attempt"},
		"no settings":    {join(string(header), `{"kind":"settings"}`), "settings"},
		"no create":      {join(string(header), `{"kind":"create","job":"x"}`), "create"},
		"another file":   {[]byte("listen: :8080\nlog: text\n"), "line 1"},
	} {
		_, err := reopen(t, tc.data, &bytes.Buffer{})
		if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), "move the file away") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Jobs that ended over a day ago leave the journal at a start, running ones stay.
func TestCompaction(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		v := startVendor(t, Config{Seed: 7, Journal: file})
		for range 50 {
			v.predict(`{}`)
		}
		running := v.predict(`{"run":"100h"}`)
		v.pass(time.Hour)
		v.restart(t, 0)
		if got := len(v.sim.Jobs(0)); got != 51 {
			t.Errorf("%d jobs after an hour", got)
		}
		before, _ := os.ReadFile(file)
		v.restart(t, 30*time.Hour)
		after, _ := os.ReadFile(file)
		if got := v.sim.Jobs(0); len(got) != 1 || got[0].ID != running || got[0].Status != "processing" {
			t.Errorf("after a day: %+v", got)
		}
		if len(after) > len(before)/10 {
			t.Errorf("%d bytes became %d", len(before), len(after))
		}
		if id := v.predict(`{}`); id == running {
			t.Error("the same id again")
		}
		v.restart(t, 200*time.Hour)
		v.restart(t, 0)
		rest, _ := os.ReadFile(file)
		if n := bytes.Count(rest, []byte("\n")); n != 2 {
			t.Errorf("%d lines are left of nothing:\n%s", n, rest)
		}
	})
}

// What cannot be written down is not accepted.
func TestUnwritableJournal(t *testing.T) {
	t.Parallel()
	if _, err := Open(Config{Journal: filepath.Join(t.TempDir(), "no", "such", "folder")}); err == nil {
		t.Error("a folder that does not exist was accepted")
	}
	if _, err := Open(Config{Journal: t.TempDir()}); err == nil {
		t.Error("a folder was accepted as a file")
	}
	if _, err := Open(Config{Journal: filepath.Join(t.TempDir(), "j"), Queue: 2 * longest}); err == nil {
		t.Error("settings that cannot be read back were accepted")
	}
	file := filepath.Join(t.TempDir(), "j")
	synctest.Test(t, func(t *testing.T) {
		v := startVendor(t, Config{Journal: file})
		id, done := v.predict(`{}`), v.film(`{"instant":true}`)
		whole := v.sim.journal.file
		readOnly, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer readOnly.Close()
		v.sim.mu.Lock()
		v.sim.journal.file = readOnly
		v.sim.mu.Unlock()
		for _, path := range []string{
			"POST /v1/predictions", "POST /v1/predictions/" + id + "/cancel", "DELETE /v1/videos/" + done,
			"POST /_sim/jobs/" + id + "/finish", "POST /_sim/faults",
		} {
			method, path, _ := strings.Cut(path, " ")
			body := `{}`
			if path == "/v1/predictions" {
				body = predictionBody(`{}`)
			}
			if r := v.call(method, path, body); r.status != 503 {
				t.Errorf("%s: %d %s", path, r.status, r.body)
			}
		}
		if got := len(v.sim.Jobs(0)); got != 2 || v.status(id) != "starting" || v.status(done) != "completed" {
			t.Errorf("%d jobs, %s, %s", got, v.status(id), v.status(done))
		}
		if v.sim.journal.broken == nil {
			t.Error("a line that could not be taken back does not end the journal")
		}
		v.sim.journal.file = whole
	})
}

// Whatever is in a journal, opening it neither fails to end nor panics, and what
// was understood is understood again when it is written back.
func FuzzJournal(f *testing.F) {
	header := fmt.Sprintf(`{"kind":"journal","header":{"version":1,"seed":7,"secret":%q,"next":0}}`, testSecret)
	settings := `{"kind":"settings","at":1,"settings":{"queue":1000000000,"run":4000000000,"jitter":0.2,"output_ttl":5,"progress_every":500000000,"retry_base":1000000000,"openai_webhook":"https://h.example","faults":{"contradict":1,"fine_progress":0.5,"early_callback":1,"reorder_webhook":0.5}}}`
	create := `{"kind":"create","at":2,"job":"a","create":{"seq":0,"boot":1,"call":1,"base":"http://b","dialect":"replicate","model":"a/b","input":{"prompt":"x"},"webhook":"https://h.example","events":["start","output","logs","completed"],"sim":{"run":"90ns","many_bars":true}}}`
	video := `{"kind":"create","at":3,"job":"video_b","create":{"seq":1,"boot":1,"call":2,"base":"http://b","dialect":"openai","model":"sora-2","prompt":"[sim:fail] x","seconds":"4","size":"1x1","video_seed":9}}`
	attempt := `{"kind":"attempt","at":4,"job":"a","attempt":{"message":0,"part":0,"ok":false}}`
	finish := `{"kind":"finish","at":5,"job":"a","finish":{"status":"canceled","fail_kind":"text"}}`
	for _, lines := range [][]string{
		{""}, {header}, {header, settings, create, video, attempt, finish, `{"kind":"delete","at":9,"job":"video_b"}`},
		{header, create, `{"kind":"fin`}, {header, settings, video, attempt}, {"{}"}, {header, strings.Replace(create, `"at":2`, `"at":-9223372036854775808`, 1), finish},
	} {
		f.Add([]byte(strings.Join(lines, "\n") + "\n"))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		records, _, err := parseJournal(data)
		if err != nil || len(records) == 0 {
			return
		}
		s := New(Config{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }})
		if err := s.adopt(records[0].Header, Config{}); err != nil {
			t.Fatal(err)
		}
		if err := s.replay(records[1:]); err != nil {
			t.Fatal(err)
		}
		s.forgetEnded(s.now())
		s.resume()
		for _, j := range s.Jobs(0) {
			if body := s.render(s.jobs[j.ID]); !json.Valid(body) {
				t.Fatalf("job %s is shown as %q", j.ID, body)
			}
		}
		var file []byte
		for _, r := range compact(records, s.jobs) {
			line, err := r.line()
			if err != nil {
				t.Fatal(err)
			}
			file = append(file, line...)
		}
		first := s.header()
		line, err := first.line()
		if err != nil {
			t.Fatal(err)
		}
		if _, cut, err := parseJournal(append(line, file...)); err != nil || cut {
			t.Fatalf("written back: cut %v, %v", cut, err)
		}
	})
}
