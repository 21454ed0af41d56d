package main

import (
	"bufio"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
)

// machine is where the figures are from.
type machine struct {
	OS     string `json:"os"`
	Arch   string `json:"arch"`
	CPUs   int    `json:"cpus"`
	CPU    string `json:"cpu,omitempty"`
	Memory int    `json:"memory_mib,omitempty"`
	Go     string `json:"go"`
	// LoadBefore is the load average of the last minute before the run: figures of
	// a busy machine are comparable within the run only.
	LoadBefore string `json:"load_before,omitempty"`
}

// thisMachine reads what the system tells; Linux tells all of it.
func thisMachine() machine {
	m := machine{OS: runtime.GOOS, Arch: runtime.GOARCH, CPUs: runtime.NumCPU(), Go: runtime.Version()}
	m.CPU = procField("/proc/cpuinfo", "model name")
	if kib, err := strconv.Atoi(strings.TrimSuffix(procField("/proc/meminfo", "MemTotal"), " kB")); err == nil {
		m.Memory = kib >> 10
	}
	if text, err := os.ReadFile("/proc/loadavg"); err == nil {
		m.LoadBefore, _, _ = strings.Cut(string(text), " ")
	}
	return m
}

// String is a line for a person.
func (m machine) String() string {
	return fmt.Sprintf("%d CPUs (%s), %d MiB, %s/%s, %s, load before %s", m.CPUs, m.CPU, m.Memory, m.OS, m.Arch, m.Go, m.LoadBefore)
}

// procField is the first value of the name in a file of "name: value" lines.
func procField(path, name string) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
