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

// answer is what is read of one.
type answer struct {
	// status is 0 when no whole answer came, which leaves open whether the delivery
	// was stored.
	status int
	// retryAfter: the head says when to come again.
	retryAfter bool
	reusable   bool
}

// send delivers one request and reads the answer.
func (c *conn) send(ctx context.Context, request []byte) (answer, error) {
	if c.net == nil {
		d := net.Dialer{Timeout: c.timeout}
		var err error
		if c.net, err = d.DialContext(ctx, "tcp", c.addr); err != nil {
			c.net = nil
			return answer{}, err
		}
	}
	a, err := c.exchange(request)
	if err != nil || !a.reusable {
		c.close()
	}
	return a, err
}

func (c *conn) close() {
	if c.net != nil {
		_ = c.net.Close() // nothing is expected of it any more
		c.net = nil
	}
}

func (c *conn) exchange(request []byte) (answer, error) {
	if err := c.net.SetDeadline(time.Now().Add(c.timeout)); err != nil {
		return answer{}, err
	}
	if _, err := c.net.Write(request); err != nil {
		return answer{}, err
	}
	n := 0
	for {
		if n == len(c.buf) {
			return answer{}, fmt.Errorf("%w: longer than %d bytes", errAnswer, n)
		}
		m, err := c.net.Read(c.buf[n:])
		if err != nil {
			return answer{}, err
		}
		n += m
		a, rest, err := parseAnswer(c.buf[:n])
		if rest > len(c.buf)-n { // a long body is seldom, and costs a connection
			a.reusable = false
		}
		if err != nil || a.status != 0 && (rest == 0 || !a.reusable) {
			return a, err
		}
	}
}

// parseAnswer reads as much of an answer as there is. A status of 0 says that its
// head is not whole yet; rest is how many bytes of the body are still to come. An
// answer whose end is not where Content-Length puts it costs the connection.
func parseAnswer(text []byte) (a answer, rest int, err error) {
	end := bytes.Index(text, endOfHead)
	if end < 0 {
		return answer{}, 0, nil
	}
	head, body := text[:end], text[end+len(endOfHead):]
	if a.status, err = statusOf(head); err != nil {
		return answer{}, 0, err
	}
	length := 0
	a.reusable = a.status == 204
	for line := range bytes.SplitSeq(head, []byte("\r\n")) {
		name, value, _ := bytes.Cut(line, []byte(":"))
		switch value = bytes.TrimSpace(value); {
		case bytes.EqualFold(name, []byte("Retry-After")):
			a.retryAfter = len(value) > 0
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(value))
			a.reusable = err == nil && length >= 0
			if !a.reusable {
				return answer{}, 0, fmt.Errorf("%w: length %.40q", errAnswer, value)
			}
		}
	}
	rest = max(length-len(body), 0)
	a.reusable = a.reusable && len(body) <= length
	return a, rest, nil
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
