package rocketbus

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"
)

// The library has no public call for brokers' addresses and for offsets, so the
// few rare questions that need them speak the remoting protocol themselves: a
// length, the length of a JSON header, the header, a body.

// Request codes.
const (
	codeQueryOffset  = 14
	codeUpdateOffset = 15
	codeCreateTopic  = 17
	codeMaxOffset    = 30
	codeRoute        = 105
	codeClusterInfo  = 106
)

// Response codes.
const (
	codeSuccess       = 0
	codeTopicNotExist = 17
	codeQueryNotFound = 22
)

// askTimeout bounds one question.
const askTimeout = 3 * time.Second

// maxFrame bounds an answer; routes of thousands of topics fit.
const maxFrame = 16 << 20

var errFrame = errors.New("not a RocketMQ answer")

// remotingHeader is the header of requests and answers.
type remotingHeader struct {
	Code     int               `json:"code"`
	Language string            `json:"language"`
	Version  int               `json:"version"`
	Opaque   int               `json:"opaque"`
	Flag     int               `json:"flag"`
	Remark   string            `json:"remark,omitempty"`
	Ext      map[string]string `json:"extFields,omitempty"`
}

// answer is what a server said.
type answer struct {
	code   int
	remark string
	ext    map[string]string
	body   []byte
}

// err is nil for success.
func (a answer) err() error {
	if a.code == codeSuccess {
		return nil
	}
	return fmt.Errorf("RocketMQ answered code %d: %.200s", a.code, a.remark)
}

// number reads a field of the answer.
func (a answer) number(field string) (int64, error) {
	n, err := strconv.ParseInt(a.ext[field], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%w: field %s: %w", errFrame, field, err)
	}
	return n, nil
}

// ask sends one request over a connection of its own.
func ask(ctx context.Context, addr string, code int, ext map[string]string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = conn.Close() }()
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()
	request, err := encodeRequest(code, ext)
	if err != nil {
		return answer{}, err
	}
	if _, err := conn.Write(request); err != nil {
		return answer{}, errors.Join(err, ctx.Err())
	}
	a, err := readAnswer(conn)
	if err != nil {
		return answer{}, errors.Join(err, ctx.Err())
	}
	return a, nil
}

func encodeRequest(code int, ext map[string]string) ([]byte, error) {
	const javaVersion = 317 // the protocol level that the library claims
	header, err := json.Marshal(remotingHeader{Code: code, Language: "GO", Version: javaVersion, Opaque: 1, Ext: ext})
	if err != nil {
		return nil, err
	}
	frame := binary.BigEndian.AppendUint32(nil, uint32(4+len(header)))
	frame = binary.BigEndian.AppendUint32(frame, uint32(len(header))) // the high byte 0 says JSON
	return append(frame, header...), nil
}

// readAnswer reads one frame.
func readAnswer(r io.Reader) (answer, error) {
	var lengths [8]byte
	if _, err := io.ReadFull(r, lengths[:]); err != nil {
		return answer{}, err
	}
	total := int64(binary.BigEndian.Uint32(lengths[:4])) - 4
	headerWord := binary.BigEndian.Uint32(lengths[4:])
	headerLen := int64(headerWord & 0xffffff)
	if headerWord>>24 != 0 || total < headerLen || total > maxFrame {
		return answer{}, fmt.Errorf("%w: lengths %x", errFrame, lengths)
	}
	frame, err := io.ReadAll(io.LimitReader(r, total)) // grows with what really comes
	if err != nil {
		return answer{}, err
	}
	if int64(len(frame)) < total {
		return answer{}, io.ErrUnexpectedEOF
	}
	var h remotingHeader
	if err := json.Unmarshal(frame[:headerLen], &h); err != nil {
		return answer{}, fmt.Errorf("%w: header: %w", errFrame, err)
	}
	return answer{code: h.Code, remark: h.Remark, ext: h.Ext, body: frame[headerLen:]}, nil
}
