package services

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"strings"
	"time"
)

// Request codes of RocketMQ's remoting protocol, and two more of its numbers.
const (
	codeUpdateBrokerConfig = 25
	codeRouteByTopic       = 105

	codeSuccess  = 0
	maxFrame     = 16 << 20
	probeTimeout = 3 * time.Second
)

// remotingHeader is the JSON head of a request or a response.
type remotingHeader struct {
	Code      int               `json:"code"`
	Language  string            `json:"language"`
	Version   int               `json:"version"`
	Opaque    int               `json:"opaque"`
	Flag      int               `json:"flag"`
	Remark    string            `json:"remark,omitempty"`
	ExtFields map[string]string `json:"extFields,omitempty"`
}

// remoting sends one request on a connection of its own and returns the body
// of the answer. Starting a whole client for a readiness check would bring
// its goroutines, its log and its cache of routes.
func remoting(ctx context.Context, addr string, code int, fields map[string]string, body []byte) ([]byte, error) {
	dialer := net.Dialer{Timeout: probeTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(probeTimeout)); err != nil {
		return nil, err
	}
	head, err := json.Marshal(remotingHeader{Code: code, Language: "GO", Opaque: 1, ExtFields: fields})
	if err != nil {
		return nil, err
	}
	// Length of the rest, length of the head (its top byte 0 means JSON).
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	if _, err := conn.Write(append(append(frame, head...), body...)); err != nil {
		return nil, err
	}
	return readRemoting(conn)
}

func readRemoting(r io.Reader) ([]byte, error) {
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return nil, err
	}
	total := int64(binary.BigEndian.Uint32(lengths[:4])) - 4
	head := int64(binary.BigEndian.Uint32(lengths[4:]) & 0xffffff)
	if total < head || total > maxFrame {
		return nil, fmt.Errorf("a frame of %d bytes with a head of %d", total, head)
	}
	frame := make([]byte, total)
	if _, err := io.ReadFull(r, frame); err != nil {
		return nil, err
	}
	var answer remotingHeader
	if err := json.Unmarshal(frame[:head], &answer); err != nil {
		return nil, fmt.Errorf("head of the answer: %w", err)
	}
	if answer.Code != codeSuccess {
		return nil, fmt.Errorf("code %d: %.200s", answer.Code, answer.Remark)
	}
	return frame[head:], nil
}

// BrokerRegistered returns nil when the name server sends clients to the
// broker, both given as host:port, and otherwise makes the broker register.
//
// The broker says "boot success" before that: its first registration goes
// only to name servers that a background thread has connected to already, and
// the next one comes ten seconds later. Touching a permission makes it
// register at once.
func BrokerRegistered(ctx context.Context, nameServer, broker string) error {
	route, err := remoting(ctx, nameServer, codeRouteByTopic, map[string]string{"topic": "SELF_TEST_TOPIC"}, nil)
	if err == nil && strings.Contains(string(route), broker) {
		return nil
	}
	if _, err := remoting(ctx, broker, codeUpdateBrokerConfig, nil, []byte("brokerPermission=6\n")); err != nil {
		return fmt.Errorf("ask the broker to register: %w", err)
	}
	return fmt.Errorf("the name server does not know the broker: %w", err)
}
