package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/aivedio/aivedio/domain"
	"github.com/aivedio/aivedio/internal/wire"
)

// TestWatchOverOutages cuts the stream, refuses it, moves it and ends it: one
// notice for the outage, none for the move, and every event once.
func TestWatchOverOutages(t *testing.T) {
	t.Parallel()
	task := wire.Task{ID: "tsk_x", Status: domain.Status(domain.PhaseRunning), TaskVersion: 1}
	event := func(w http.ResponseWriter, version int64, status domain.Phase) {
		data, _ := json.Marshal(wire.Event{EventID: version, TaskID: task.ID, TaskVersion: version, Status: domain.Status(status)})
		fmt.Fprintf(w, "id: %d.x\nevent: %s\ndata: %s\n\n", version, wire.StreamEvent, data)
	}
	var streamed atomic.Int32
	c := testClient(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/events") {
			task := task
			if streamed.Load() > 3 {
				task.Status = domain.Status(domain.PhaseReady)
			}
			_ = json.NewEncoder(w).Encode(taskAnswer{Task: task, Cursor: "1.x"})
			return
		}
		switch streamed.Add(1) {
		case 1:
			event(w, 2, domain.PhaseRunning)
			fmt.Fprint(w, "event: move\ndata: {}\n\n")
		case 2:
			if got := r.URL.Query().Get("after"); got != "2.x" {
				t.Errorf("resumed from %q", got)
			}
			event(w, 2, domain.PhaseRunning)
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		case 3:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			event(w, 3, domain.PhaseReady)
		}
	}))
	var out, errs bytes.Buffer
	std := streams{out: &out, err: &errs}
	first, err := c.task(t.Context(), task.ID)
	if err != nil {
		t.Fatal(err)
	}
	if code := exitCode(watchTask(t.Context(), c, std, first, watchOptions{JSON: true}), std); code != exitOK {
		t.Errorf("exit %d: %s", code, errs.String())
	}
	if got := errs.String(); got != "connection lost, trying again\nconnected again\n" {
		t.Errorf("said %q", got)
	}
	if lines := strings.Count(out.String(), "\n"); lines != 4 {
		t.Errorf("%d lines, want three events and the snapshot:\n%s", lines, out.String())
	}
}

// TestWatchWithoutServer ends at once: there was no connection to lose.
func TestWatchWithoutServer(t *testing.T) {
	t.Parallel()
	code, _, errs := ran(t, "task", "watch", "tsk_x", "--url", "http://127.0.0.1:1", "--api-key", "ak_x", "--project", "prj_x")
	if code != exitUsage || !strings.Contains(errs, "no connection to http://127.0.0.1:1") {
		t.Errorf("exit %d: %s", code, errs)
	}
}
