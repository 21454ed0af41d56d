package load

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"
)

// conn is one keep-alive connection, redialled when it broke.
type conn struct {
	addr    string
	timeout time.Duration
	net     net.Conn
	buf     []byte
}

var errAnswer = errors.New("not an answer of HTTP/1.1")

// send delivers one request and returns the status; 0 when no whole answer came,
// which leaves open whether the delivery was stored.
func (c *conn) send(ctx context.Context, request []byte) (status int, err error) {
	if c.net == nil {
		d := net.Dialer{Timeout: c.timeout}
		if c.net, err = d.DialContext(ctx, "tcp", c.addr); err != nil {
			c.net = nil
			return 0, err
		}
	}
	status, reusable, err := c.exchange(request)
	if err != nil || !reusable {
		c.close()
	}
	return status, err
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close() // nothing is expected of it any more
		c.net = nil
	}
}

func (c *conn) exchange(request []byte) (status int, reusable bool, err error) {
	if err := c.net.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return 0, false, err
	}
	if _, err := c.net.Write(request); err != nil {
		return 0, false, err
	}
	n := 0
	for {
		if n == len(c.buf) {
			return 0, false, fmt.Errorf("%w: head longer than %d bytes", errAnswer, n)
		}
		m, err := c.net.Read(c.buf[n:])
		if err != nil {
			return 0, false, err
		}
		n += m
		if end := bytes.Index(c.buf[:n], endOfHead); end >= 0 {
			status, err := statusOf(c.buf[:end])
			// Only an answer without a body ends where its head ends; any other
			// is seldom, and costs a connection instead of a parser.
			return status, status == 204 && n == end+len(endOfHead), err
		}
	}
}

var endOfHead = []byte("\r\n\r\n")

// statusOf reads "HTTP/1.1 204 …".
func statusOf(head []byte) (int, error) {
	if len(head) < 12 || string(head[:9]) != "HTTP/1.1 " {
		return 0, fmt.Errorf("%w: %.40q", errAnswer, head)
	}
	status, err := strconv.Atoi(string(head[9:12]))
	if err != nil || status < 100 {
		return 0, fmt.Errorf("%w: %.40q", errAnswer, head)
	}
	return status, nil
}
