package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

// devFile is what a running dev leaves in its folder for the other commands.
type devFile struct {
	URL     string `json:"url"`
	Project string `json:"project"`
	APIKey  string `json:"key"`
	// Database lets doctor and key look at the same data; the file is for its
	// owner's eyes only.
	Database string `json:"database"`
	PID      int    `json:"pid"`
}

const devFileName = "dev.json"

// defaultDataDir is where `dev` keeps its data when no folder is named: the
// user's data folder, so that a second shell finds it from any directory.
func defaultDataDir() string {
	if dir := os.Getenv("XDG_DATA_HOME"); dir != "" {
		return filepath.Join(dir, "aivedio", "dev")
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return filepath.Join(os.TempDir(), "aivedio-dev")
	}
	return filepath.Join(home, ".local", "share", "aivedio", "dev")
}

// devNotRunning says that no dev works in a folder.
type devNotRunning struct{ dir string }

func (e devNotRunning) Error() string {
	start := "aivedio dev"
	if e.dir != defaultDataDir() {
		start += " --data " + e.dir
	}
	return fmt.Sprintf("dev is not running (%s); start it with `%s`", e.dir, start)
}

// readDevFile reads what a running dev left in its folder; the default one when
// dir is empty. A file whose process is gone counts as none: a dev that was killed
// could not remove it.
func readDevFile(dir string) (devFile, error) {
	var f devFile
	dir = either(dir, defaultDataDir())
	path := filepath.Join(dir, devFileName)
	data, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f, devNotRunning{dir}
	case err != nil:
		return f, err
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return f, fmt.Errorf("%s does not parse; start dev again: %w", path, err)
	}
	if !running(f.PID) {
		return devFile{}, devNotRunning{dir}
	}
	return f, nil
}

// running reports whether a process exists, whoever owns it.
func running(pid int) bool {
	if pid <= 0 {
		return false
	}
	p, err := os.FindProcess(pid)
	if err != nil {
		return false
	}
	err = p.Signal(syscall.Signal(0))
	return err == nil || errors.Is(err, fs.ErrPermission)
}

func either(a, b string) string {
	if a != "" {
		return a
	}
	return b
}
