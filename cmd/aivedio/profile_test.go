package main

import (
	"os"
	"path/filepath"
	"testing"
)

func TestProfileCPU(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu.pprof")
	stop, err := profileCPU(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := profileCPU(filepath.Join(t.TempDir(), "second.pprof")); err == nil {
		t.Error("two profiles at once")
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if info, err := os.Stat(path); err != nil || info.Size() == 0 {
		t.Errorf("%v, %v", info, err)
	}
	if _, err := profileCPU(filepath.Join(t.TempDir(), "no", "folder")); err == nil {
		t.Error("a file in no folder")
	}
	if stop, err := profileCPU(""); err != nil || stop() != nil {
		t.Errorf("without a path: %v", err)
	}
}
