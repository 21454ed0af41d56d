//go:build !linux

package pgstore

import "syscall"

// boundUnacknowledged leaves the bound to the system where it has no portable
// name.
func boundUnacknowledged(string, string, syscall.RawConn) error { return nil }
