package pgstore

import (
	"net"
	"syscall"
	"testing"
)

// TestDialer: a peer that is gone without a word is noticed in seconds.
func TestDialer(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	conn, err := newDialer().DialContext(t.Context(), "tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	raw, err := conn.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	for name, option := range map[string]struct{ number, want int }{
		"unacknowledged, ms": {tcpUserTimeout, int(peerTimeout.Milliseconds())},
		"idle, s":            {syscall.TCP_KEEPIDLE, 5},
		"interval, s":        {syscall.TCP_KEEPINTVL, 5},
		"probes":             {syscall.TCP_KEEPCNT, 2},
	} {
		err := raw.Control(func(fd uintptr) {
			if got, err := syscall.GetsockoptInt(int(fd), syscall.IPPROTO_TCP, option.number); err != nil || got != option.want {
				t.Errorf("%s is %d, %v; want %d", name, got, err, option.want)
			}
		})
		if err != nil {
			t.Error(err)
		}
	}
}
