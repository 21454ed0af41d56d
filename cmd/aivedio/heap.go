package main

import "runtime"

// heapFloor is how much memory the collector takes as given, in bytes.
const heapFloor = 64 << 20

// holdHeap makes the garbage collector run when tens of megabytes of garbage have
// gathered instead of every few: a role whose live heap is small spent a quarter
// of its CPU in the collector when measured. The memory is never touched, so it
// costs address space and no RAM; what grows is the garbage between two runs, by
// as much at most. A large heap is collected as ever, which a higher GOGC would
// not do.
//
// The caller keeps it until release.
func holdHeap() (release func()) {
	floor := make([]byte, heapFloor)
	return func() { runtime.KeepAlive(floor) }
}
