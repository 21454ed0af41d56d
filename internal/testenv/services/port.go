package services

import (
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
)

// Ports are drawn from below the range that Linux (32768 and up) and macOS
// (49152 and up) use for outgoing connections. Otherwise a client that dials
// a stopped service again and again can be given the service's own port, and
// the service cannot come back.
const (
	portFloor = 20000
	portCeil  = 32000
)

// FreePort returns a port p such that p and p+offset, for each offset, are
// free on 127.0.0.1 at this moment.
func FreePort(offsets ...int) (int, error) {
	for range 200 {
		p := portFloor + rand.IntN(portCeil-portFloor)
		if portFree(p) && allFree(p, offsets) {
			return p, nil
		}
	}
	return 0, fmt.Errorf("no free port found between %d and %d", portFloor, portCeil)
}

func allFree(p int, offsets []int) bool {
	for _, o := range offsets {
		if !portFree(p + o) {
			return false
		}
	}
	return true
}

func portFree(p int) bool {
	l, err := net.Listen("tcp", loopback(p))
	if err != nil {
		return false
	}
	return l.Close() == nil
}

func loopback(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
