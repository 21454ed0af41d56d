package pgstore

import "syscall"

// tcpUserTimeout is TCP_USER_TIMEOUT, which package syscall does not name.
const tcpUserTimeout = 0x12

// boundUnacknowledged ends a connection whose data stays unacknowledged: probes are
// not sent while there is some.
func boundUnacknowledged(_, _ string, conn syscall.RawConn) error {
	var fault error
	err := conn.Control(func(fd uintptr) {
		fault = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, tcpUserTimeout, int(peerTimeout.Milliseconds()))
	})
	if fault == syscall.ENOPROTOOPT || fault == syscall.EOPNOTSUPP { // a socket of another kind
		fault = nil
	}
	if err != nil {
		return err
	}
	return fault
}
