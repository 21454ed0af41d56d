package pgstore

import (
	"net"
	"time"
)

// The server's time-outs are the server's: when the way to it is cut without a
// word, nobody on this side would notice for a quarter of an hour. connectTimeout
// bounds a new connection; peerTimeout is when a peer counts as gone that does not
// acknowledge what was sent or, while we wait for an answer, what probes it.
const (
	connectTimeout = 5 * time.Second
	peerTimeout    = 15 * time.Second
)

func newDialer() *net.Dialer {
	return &net.Dialer{
		KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: peerTimeout / 3, Interval: peerTimeout / 3, Count: 2},
		Control:         boundUnacknowledged,
	}
}
