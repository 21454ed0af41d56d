package services

import (
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"testing"
)

// answer builds a frame as a name server would send it.
func answer(head, body string) []byte {
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(head)+len(body)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(head)))
	return append(frame, head+body...)
}

func TestReadRemoting(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		frame []byte
		body  string
		fault string
	}{
		"success":   {answer(`{"code":0}`, "route"), "route", ""},
		"refused":   {answer(`{"code":17,"remark":"no topic"}`, ""), "", "code 17: no topic"},
		"not json":  {answer(`{`, ""), "", "head of the answer"},
		"cut":       {answer(`{"code":0}`, "route")[:12], "", io.ErrUnexpectedEOF.Error()},
		"too long":  {[]byte{0x7f, 0, 0, 0, 0, 0, 0, 1}, "", "a frame of"},
		"head only": {[]byte{0, 0, 0, 5, 0, 0, 0, 9}, "", "a frame of"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body, err := readRemoting(bytes.NewReader(tt.frame))
			if tt.fault == "" && (err != nil || string(body) != tt.body) {
				t.Errorf("got %q, %v, want %q", body, err, tt.body)
			}
			if tt.fault != "" && (err == nil || !strings.Contains(err.Error(), tt.fault)) {
				t.Errorf("got error %v, want one with %q", err, tt.fault)
			}
		})
	}
}

func TestBrokerRegisteredAsksTheBroker(t *testing.T) {
	t.Parallel()
	broker := serveOnce(t, answer(`{"code":0}`, ""))
	ignorant := serveOnce(t, answer(`{"code":17,"remark":"no route"}`, ""))
	if err := BrokerRegistered(t.Context(), ignorant, broker); err == nil || !strings.Contains(err.Error(), "no route") {
		t.Errorf("an unknown broker: got %v", err)
	}
	knowing := serveOnce(t, answer(`{"code":0}`, `{"brokerDatas":[{"brokerAddrs":{0:"`+broker+`"}}]}`))
	if err := BrokerRegistered(t.Context(), knowing, broker); err != nil {
		t.Errorf("a known broker: %v", err)
	}
}

// serveOnce answers the first request on a port of its own.
func serveOnce(t *testing.T, frame []byte) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		conn, err := l.Accept()
		if err != nil {
			return // the test has ended
		}
		defer conn.Close()
		var lengths [4]byte
		if _, err := io.ReadFull(conn, lengths[:]); err != nil {
			return // the client sees the connection close
		}
		if _, err := io.CopyN(io.Discard, conn, int64(binary.BigEndian.Uint32(lengths[:]))); err != nil {
			return
		}
		_, _ = conn.Write(frame) // the client's read tells
	}()
	return l.Addr().String()
}

func FuzzReadRemoting(f *testing.F) {
	f.Add(answer(`{"code":0}`, "route"))
	f.Add(answer(`{"code":17}`, ""))
	f.Add([]byte{0, 0, 0, 4, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, frame []byte) {
		body, err := readRemoting(bytes.NewReader(frame))
		if err == nil && len(body) > len(frame) {
			t.Errorf("%d bytes of body from a frame of %d", len(body), len(frame))
		}
	})
}
