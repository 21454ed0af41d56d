package services

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// childrenOf lists the processes whose parent is pid, from /proc.
func childrenOf(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var children []int
	for _, e := range entries {
		child, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", child))
		if err != nil {
			continue // it ended meanwhile
		}
		// The name, in brackets, may hold anything: state and parent come behind it.
		_, rest, _ := bytes.Cut(stat[max(0, bytes.LastIndexByte(stat, ')')):], []byte(" "))
		fields := bytes.Fields(rest)
		if len(fields) > 1 && string(fields[1]) == strconv.Itoa(pid) {
			children = append(children, child)
		}
	}
	return children, nil
}
