package main

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/aivedio/aivedio/internal/wire"
)

// TestListenAgain: the simulated vendor is found where it was, if it can be.
func TestListenAgain(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "addr")
	var logs bytes.Buffer
	log := slog.New(slog.NewTextHandler(&logs, nil))
	listen := func() net.Listener {
		ln, err := listenAgain(file, log)
		if err != nil {
			t.Fatal(err)
		}
		return ln
	}
	first := listen()
	addr := first.Addr().String()
	first.Close()
	second := listen()
	defer second.Close()
	if got := second.Addr().String(); got != addr || logs.Len() > 0 {
		t.Errorf("%s after %s; %s", got, addr, &logs)
	}
	third := listen() // the second one holds the address
	defer third.Close()
	if got := third.Addr().String(); got == addr || !strings.Contains(logs.String(), "moves") {
		t.Errorf("%s again; %s", got, &logs)
	}
	if kept, err := os.ReadFile(file); err != nil || strings.TrimSpace(string(kept)) != third.Addr().String() {
		t.Errorf("kept %s, %v", kept, err)
	}
}

// TestSimulatorHelp: the flags alone do not tell what a fault looks like.
func TestSimulatorHelp(t *testing.T) {
	t.Parallel()
	for _, help := range []string{simulateCmd{}.Help(), devCmd{}.Help()} {
		if !strings.Contains(help, "docs/simulator.md") {
			t.Errorf("%q does not point to the handbook", help)
		}
	}
}

// TestDevKeepsTheVendorsJobs: a job that runs while dev is restarted comes to its
// end, with its webhooks, and is created once.
func TestDevKeepsTheVendorsJobs(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	d := startDev(t, data)
	var ids []string
	for _, prompt := range []string{"[sim:run=3s]", "[sim:run=3s] [sim:fail=moderation]", "[sim:queue=2s] [sim:off]"} {
		code, lines := d.submit(t, prompt)
		var out struct {
			Task wire.Task `json:"task"`
		}
		if err := json.Unmarshal([]byte(strings.Join(lines, "\n")), &out); code != exitOK || err != nil || out.Task.ID == "" {
			t.Fatalf("submit: exit %d, %v: %v", code, err, lines)
		}
		d.await(t, out.Task.ID, "queued", "running", "provider_succeeded")
		ids = append(ids, out.Task.ID)
	}
	d.end(t)
	d = startDev(t, data)
	for i, want := range []string{"ready", "failed", "ready"} {
		if code, out, errs := d.aivedio(t, "task", "watch", ids[i], "--timeout", "60s"); code == exitRunning || code == exitUsage {
			t.Errorf("watch: exit %d: %s%s", code, out, errs)
		}
		d.await(t, ids[i], want)
	}
	stats := d.vendorStats(t)
	for key, n := range stats.CreatesByKey {
		if n != 1 {
			t.Errorf("%d creates of %s", n, key)
		}
	}
	if stats.Creates != len(ids) {
		t.Errorf("the vendor counts %d creates, want %d", stats.Creates, len(ids))
	}
	d.end(t)
}

// await asks until the vendor has accepted the task and its status is one of these.
func (d *devServer) await(t *testing.T, id string, statuses ...string) {
	t.Helper()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	var last wire.Task
	for range 400 {
		code, out, errs := d.aivedio(t, "task", "get", id, "--json")
		var in struct {
			Task wire.Task `json:"task"`
		}
		if err := json.Unmarshal([]byte(out), &in); code != exitOK || err != nil {
			t.Fatalf("get: exit %d, %v: %s%s", code, err, out, errs)
		}
		last = in.Task
		for _, want := range statuses {
			if string(last.Status) == want && last.Stage != "submitting" || want == "failed" && last.Status == "failed" {
				return
			}
		}
		<-tick.C
	}
	t.Fatalf("task %s is %s (%s), want one of %v", id, last.Status, last.Stage, statuses)
}

// vendorStats asks the simulated vendor what it counted.
func (d *devServer) vendorStats(t *testing.T) (stats struct {
	Creates      int            `json:"creates"`
	CreatesByKey map[string]int `json:"creates_by_key"`
}) {
	t.Helper()
	addr, err := os.ReadFile(filepath.Join(d.data, "simulator.addr"))
	if err != nil {
		t.Fatal(err)
	}
	secrets, err := loadDevSecrets(filepath.Join(d.data, "secrets.json"))
	if err != nil {
		t.Fatal(err)
	}
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+strings.TrimSpace(string(addr))+"/_sim/stats", nil)
	req.Header.Set("Authorization", "Bearer "+secrets.VendorKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&stats); err != nil {
		t.Fatal(err)
	}
	return stats
}
