package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// cpuTime is used CPU in seconds.
type cpuTime = figure

// ticksPerSecond is USER_HZ, which is 100 on every architecture of Linux that Go
// knows.
const ticksPerSecond = 100

// part is a process whose CPU is asked for; with tree also that of its children,
// the ended ones included.
type part struct {
	pid  int
	tree bool
}

// cpuMeter tells how much CPU the parts of a phase used. It counts nothing where
// there is no /proc.
type cpuMeter struct {
	parts map[string]part
	began map[string]cpuTime
}

// startCPU notes what the parts have used so far.
func startCPU(parts map[string]part) *cpuMeter {
	m := &cpuMeter{parts: parts}
	m.began = m.read()
	return m
}

// stop returns what each part has used since.
func (m *cpuMeter) stop() map[string]cpuTime {
	used := m.read()
	for name := range used {
		used[name] -= m.began[name]
	}
	return used
}

func (m *cpuMeter) read() map[string]cpuTime {
	all := processTimes()
	used := map[string]cpuTime{}
	for name, part := range m.parts {
		ticks := all[part.pid].own
		if part.tree {
			ticks += all[part.pid].waited
			for _, p := range all {
				if p.parent == part.pid {
					ticks += p.own + p.waited
				}
			}
		}
		used[name] = cpuTime(ticks) / ticksPerSecond
	}
	return used
}

// processTime is what /proc/PID/stat says: ticks of the process and of the
// children that it has waited for.
type processTime struct {
	parent      int
	own, waited int64
}

func processTimes() map[int]processTime {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil
	}
	all := map[int]processTime{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended meanwhile
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(file)))
		if err != nil {
			continue
		}
		if p, err := parseStat(string(text)); err == nil {
			all[pid] = p
		}
	}
	return all
}

// parseStat reads the fields behind the name, which may itself hold spaces and
// brackets.
func parseStat(text string) (processTime, error) {
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	const parent, user, last = 1, 11, 14 // 4, 14 and 17 in proc(5)
	if len(fields) <= last {
		return processTime{}, fmt.Errorf("stat of a process: %.40q", text)
	}
	var p processTime
	var err error
	if p.parent, err = strconv.Atoi(fields[parent]); err != nil {
		return processTime{}, fmt.Errorf("stat of a process: %w", err)
	}
	for i, f := range fields[user : last+1] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return processTime{}, fmt.Errorf("stat of a process: %w", err)
		}
		if i < 2 {
			p.own += n
		} else {
			p.waited += n
		}
	}
	return p, nil
}

// commandOf is the command line of a running process; empty where there is no
// /proc.
func commandOf(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "cmdline"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
}
