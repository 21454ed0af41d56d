package blobstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/aivedio/aivedio/ports"
)

// bodyLimits bounds a body.
type bodyLimits struct {
	// left is how many bytes may still come.
	left int64
	// idle is the longest pause.
	idle time.Duration
}

// body is a download under way: bounded in size and in pauses. A body that is cut
// short ends with an error, by net/http's own count.
type body struct {
	from    io.ReadCloser
	cancel  context.CancelFunc
	limits  bodyLimits
	max     int64
	timer   *time.Timer
	stalled atomic.Bool
}

func newBody(from io.ReadCloser, cancel context.CancelFunc, limits bodyLimits) *body {
	b := &body{from: from, cancel: cancel, limits: limits, max: limits.left}
	b.timer = time.AfterFunc(limits.idle, func() {
		b.stalled.Store(true)
		cancel()
	})
	b.timer.Stop() // it runs only while Read waits: a slow taker is no stalled sender
	return b
}

// Read reads on. Every error but io.EOF is a *ports.ProviderError.
func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.limits.idle)
	defer b.timer.Stop()
	// One byte more than allowed tells a file that just fits from one that does not.
	if int64(len(p)) > b.limits.left+1 {
		p = p[:b.limits.left+1]
	}
	n, err := b.from.Read(p)
	b.limits.left -= int64(n)
	switch {
	case b.limits.left < 0:
		b.limits.left = 0
		return 0, tooLarge(b.max)
	case err == nil:
		return n, nil
	case errors.Is(err, io.EOF):
		return n, io.EOF
	case b.stalled.Load():
		return n, cut(fmt.Errorf("no byte within %v", b.limits.idle))
	default:
		return n, cut(err)
	}
}

func cut(err error) error {
	return &ports.ProviderError{Class: ports.ClassTransport, Code: "cut_answer", Err: err}
}

// Close ends the download, finished or not.
func (b *body) Close() error {
	b.timer.Stop()
	b.cancel()
	return b.from.Close()
}
