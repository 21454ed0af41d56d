package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/aivedio/aivedio/internal/testenv"
	"github.com/aivedio/aivedio/internal/wire"
)

// devServer is a running `aivedio dev` on a folder.
type devServer struct {
	data string
	stop context.CancelFunc
	code chan int
	errs *bytes.Buffer
	file devFile
}

// startDev runs dev until the test ends and returns when it says ready.
func startDev(t *testing.T, data string, args ...string) *devServer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r, w := io.Pipe()
	d := &devServer{data: data, stop: cancel, code: make(chan int, 1), errs: &bytes.Buffer{}}
	go func() {
		d.code <- run(ctx, append([]string{"dev", "--listen", "127.0.0.1:0", "--data", data, "--queue", "100ms", "--render", "700ms"}, args...), streams{out: w, err: d.errs})
		w.Close()
	}()
	t.Cleanup(cancel)
	line, err := bufio.NewReader(r).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "ready http://127.0.0.1:") {
		t.Fatalf("dev said %q (%v), exit %d: %s", line, err, <-d.code, d.errs)
	}
	go io.Copy(io.Discard, r)
	if d.file, err = readDevFile(data); err != nil {
		t.Fatal(err)
	}
	return d
}

// end stops dev like Ctrl-C.
func (d *devServer) end(t *testing.T) {
	t.Helper()
	d.stop()
	if code := <-d.code; code != exitOK {
		t.Fatalf("dev ended with %d: %s", code, d.errs)
	}
}

// aivedio runs a client command against the dev.
func (d *devServer) aivedio(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var o, e bytes.Buffer
	code = run(t.Context(), append(args, "--data", d.data), streams{out: &o, err: &e})
	return code, o.String(), e.String()
}

func (d *devServer) submit(t *testing.T, prompt string, more ...string) (code int, lines []string) {
	t.Helper()
	code, out, errs := d.aivedio(t, append([]string{"task", "submit", "--provider", "replicate", "--model", "sim/video", "--prompt", prompt, "--json"}, more...)...)
	if errs != "" && code != exitRunning {
		t.Fatalf("submit: exit %d: %s", code, errs)
	}
	return code, strings.Split(strings.TrimSpace(out), "\n")
}

// TestDev walks the README's tour, and what must hold around it: exit codes, the
// asset's bytes, a restart that finds everything, a clean doctor.
func TestDev(t *testing.T) {
	testenv.Short(t)
	data := t.TempDir()
	if err := os.Chmod(data, 0o755); err != nil {
		t.Fatal(err)
	}
	d := startDev(t, data)

	code, lines := d.submit(t, "a red kite over the sea", "--watch")
	if code != exitOK {
		t.Fatalf("exit %d: %v", code, lines)
	}
	var last taskAnswer
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil {
		t.Fatal(err)
	}
	var stages []string
	for i, line := range lines[:len(lines)-1] {
		var e wire.Event
		if err := json.Unmarshal([]byte(line), &e); err != nil || e.TaskVersion != int64(i+1) {
			t.Fatalf("line %d: version %d, %v: %s", i, e.TaskVersion, err, line)
		}
		if len(stages) == 0 || stages[len(stages)-1] != string(e.Stage) {
			stages = append(stages, string(e.Stage))
		}
	}
	if want := "submitting waiting generating fetching validating publishing done"; strings.Join(stages, " ") != want {
		t.Errorf("stages %v, want %s", stages, want)
	}
	d.checkAsset(t, last.Task)
	d.checkTimeline(t, last.Task.ID)

	for prompt, want := range map[string]int{"[sim:fail=moderation]": exitFailed, "[sim:abort]": exitCanceled} {
		if code, lines := d.submit(t, prompt, "--watch"); code != want {
			t.Errorf("%s: exit %d, want %d: %v", prompt, code, want, lines)
		}
	}
	if code, _ := d.submit(t, "[sim:run=5m]", "--watch", "--timeout", "500ms"); code != exitRunning {
		t.Errorf("a watch that ends early: exit %d, want %d", code, exitRunning)
	}
	if code, out, errs := d.aivedio(t, "doctor"); code != exitOK {
		t.Errorf("doctor: exit %d: %s%s", code, out, errs)
	}
	d.end(t)

	before := d.file
	d = startDev(t, data)
	if d.file.APIKey != before.APIKey || d.file.Project != before.Project {
		t.Errorf("after a restart: project %s and another key, or not %s", d.file.Project, before.Project)
	}
	if code, out, errs := d.aivedio(t, "task", "get", last.Task.ID); code != exitOK || !strings.Contains(out, "ready") {
		t.Errorf("after a restart: exit %d: %s%s", code, out, errs)
	}
	if code, _, errs := d.aivedio(t, "task", "get", "tsk_nonsense"); code != exitUsage || !strings.Contains(errs, "tsk_") {
		t.Errorf("a bad id: exit %d: %s", code, errs)
	}
	d.loseDatabase(t)
}

// TestDevTakenPort: a start that cannot succeed leaves nothing behind.
func TestDevTakenPort(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	data := filepath.Join(t.TempDir(), "data")
	code, _, errs := ran(t, "dev", "--listen", ln.Addr().String(), "--data", data)
	if _, err := os.Stat(data); code != exitUsage || !strings.Contains(errs, "--listen") || !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("exit %d: %s, %v", code, errs, err)
	}
}

// loseDatabase kills PostgreSQL under a dev and wants the sentence that says so,
// and no file that claims that dev runs.
func (d *devServer) loseDatabase(t *testing.T) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.data, "postgres", "data", "postmaster.pid"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, _ := strings.Cut(string(text), "\n")
	pid, err := strconv.Atoi(first)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	want := "PostgreSQL ended; its log is " + filepath.Join(d.data, "postgres", "postgres.log") + "; start dev again"
	if code := <-d.code; code != exitUsage || !strings.Contains(d.errs.String(), want) {
		t.Errorf("exit %d: %s", code, d.errs)
	}
	if _, err := readDevFile(d.data); !errors.As(err, &devNotRunning{}) {
		t.Errorf("after the end: %v", err)
	}
}

// checkAsset compares the published file with what the API says of it.
func (d *devServer) checkAsset(t *testing.T, task wire.Task) {
	t.Helper()
	dev, err := readDevFile(d.data)
	if err != nil || task.AssetID == nil {
		t.Fatalf("%v, asset %v", err, task.AssetID)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/projects/%s/assets/%s/content", dev.URL, dev.Project, *task.AssetID), nil)
	req.Header.Set("Authorization", "Bearer "+dev.APIKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	served, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("content: %s %v", resp.Status, err)
	}
	files, err := filepath.Glob(filepath.Join(d.data, "media", "*", "*", "*", "*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("files %v, %v", files, err)
	}
	kept, err := os.ReadFile(files[0])
	if err != nil || !bytes.Equal(served, kept) || !bytes.Contains(kept[:64], []byte("ftyp")) {
		t.Errorf("%d bytes served, %d kept (%v); a video is wanted", len(served), len(kept), err)
	}
}

// checkTimeline wants every event explained.
func (d *devServer) checkTimeline(t *testing.T, id string) {
	t.Helper()
	code, out, errs := d.aivedio(t, "task", "timeline", id)
	if code != exitOK {
		t.Fatalf("timeline: exit %d: %s", code, errs)
	}
	for _, want := range []string{"webhook", "applied", "submit_accepted", "media_ready", "settle", "fetch_output"} {
		if !strings.Contains(out, want) {
			t.Errorf("the timeline lacks %q:\n%s", want, out)
		}
	}
}

// TestClientWithoutServer: the message says what to do.
func TestClientWithoutServer(t *testing.T) {
	t.Parallel()
	var out, errs bytes.Buffer
	code := run(t.Context(), []string{"task", "list", "--data", t.TempDir()}, streams{out: &out, err: &errs})
	if code != exitUsage || !strings.Contains(errs.String(), "aivedio dev") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
