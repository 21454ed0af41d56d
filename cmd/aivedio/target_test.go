package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// devIn writes the file of a dev with this process id.
func devIn(t *testing.T, pid int) string {
	t.Helper()
	dir := t.TempDir()
	f := devFile{URL: "http://127.0.0.1:1", Project: "prj_dev", APIKey: "ak_dev", PID: pid}
	if err := writeJSON(filepath.Join(dir, devFileName), f); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestTarget: address and key come from one place, so that dev's key never leaves
// for another server.
func TestTarget(t *testing.T) {
	t.Parallel()
	dir := devIn(t, os.Getpid())
	const there = "https://api.example.com"
	for _, tt := range []struct {
		name, url, key, project string
		want                    string // base, project and key, or a part of the error
	}{
		{"nothing", "", "", "", "http://127.0.0.1:1 prj_dev ak_dev"},
		{"another project of dev", "", "", "prj_b", "http://127.0.0.1:1 prj_b ak_dev"},
		{"all", there + "/", "ak_x", "prj_x", there + " prj_x ak_x"},
		{"no key", there, "", "prj_x", errNoKey.Error()},
		{"no address", "", "ak_x", "prj_x", errNoURL.Error()},
		{"no project", there, "ak_x", "", "--project"},
		{"no URL", "api.example.com", "ak_x", "prj_x", "is not a URL"},
	} {
		c, err := target{remote: remote{URL: tt.url, APIKey: tt.key, Data: dir}, Project: tt.project}.client()
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = c.base + " " + c.project + " " + c.key
		}
		if !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
	}
	if _, err := (remote{URL: there, APIKey: "ak_x"}).client(); err != nil {
		t.Errorf("an admin command needs no project: %v", err)
	}
}

// TestDevThatIsGone: the file of a killed dev is none.
func TestDevThatIsGone(t *testing.T) {
	t.Parallel()
	gone := exec.Command("true")
	if err := gone.Run(); err != nil {
		t.Fatal(err)
	}
	for name, dir := range map[string]string{"killed": devIn(t, gone.Process.Pid), "never": t.TempDir()} {
		_, err := readDevFile(dir)
		var none devNotRunning
		if !errors.As(err, &none) || !strings.Contains(err.Error(), "`aivedio dev --data "+dir+"`") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := (databaseFlag{Data: dir}).url(); !errors.As(err, &none) {
			t.Errorf("%s, for doctor: %v", name, err)
		}
	}
}
